//! Writes the sample report: `cargo run --release -p report --example sample_page > sample.html`.

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() {
    let study = sample::study();
    // The tables go to stderr, so that the page can be piped away.
    eprint!("{}", report::terminal::runs(&sample::pairs(&study), &report::Style::default()));
    print!("{}", report::html::page(&study));
}
