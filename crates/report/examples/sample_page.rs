//! Writes the sample report: `cargo run --release -p report --example sample_page > sample.html`, with
//! `-- sweep` behind it that of a sweep of rates.

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() {
    let sweep = std::env::args().nth(1).as_deref() == Some("sweep");
    let study = if sweep { sample::sweep() } else { sample::study() };
    // The tables go to stderr, so that the page can be piped away.
    eprint!("{}", report::terminal::runs(&sample::pairs(&study), &report::Style::default()));
    print!("{}", report::html::page(&study));
}
