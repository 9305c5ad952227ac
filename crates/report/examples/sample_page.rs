//! Writes the sample report: `cargo run --release -p report --example sample_page > sample.html`, with
//! `-- sweep` behind it that of a sweep of rates, with `-- factorial` that of a study with a design, with
//! `-- servers` that of a run over several servers.

#[allow(dead_code)]
#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() {
    let study = match std::env::args().nth(1).as_deref() {
        Some("sweep") => sample::sweep(),
        Some("factorial") => sample::factorial(),
        Some("servers") => sample::servers(),
        _ => sample::study(),
    };
    let executions = study.iter().map(|(execution, _)| execution);
    for own in report::study::studies(executions, &sample::pairs(&study)) {
        eprint!("{}", report::terminal::study(&own, &report::Style::default()));
    }
    // The tables go to stderr, so that the page can be piped away.
    eprint!("{}", report::terminal::runs(&sample::pairs(&study), &report::Style::default()));
    print!("{}", report::html::page(&study));
}
