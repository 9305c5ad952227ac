//! Tables, pages and JSON of simulations, of stored outcomes.
#![allow(clippy::unwrap_used)]

#[path = "pages/simulated.rs"]
mod simulated;

use cachesim::trace::TraceOutcome;
use report::{Style, simulation, table::Table, terminal};

use simulated::{outcome, point, validation};

fn text(table: &Table) -> String {
    terminal::table(table, &Style { color: false, width: 140, unicode: true })
}

#[test]
fn a_sweep_is_a_table_a_page_and_an_object() {
    let points = [point("2"), point("4")];
    let outcomes = [outcome(60.0, &[]), outcome(90.5, &[2e8, 3e8])];
    let table = simulation::outcomes(&points, &outcomes);
    insta::assert_snapshot!("sweep", text(&table));
    let page = simulation::swept_page(Some("ways"), &points, &outcomes);
    for words in ["Every number is simulated", "By ways", "latency, 99th percentile, µs", "90.50"]
    {
        assert!(page.contains(words), "{words}");
    }
    let object = simulation::object(&points, &outcomes).unwrap();
    assert_eq!(object["kind"], "simulated");
    assert_eq!(object["runs"][1]["at"]["ways"], "4");
    assert_eq!(object["runs"][1]["outcome"]["pcie_write_hit_percent"], 90.5);
}

#[test]
fn a_validation_shows_errors_beyond_its_limit() {
    let validation = validation();
    insta::assert_snapshot!("validation", text(&simulation::validation(&validation)));
    let page = simulation::validation_page(&validation);
    assert!(page.contains("PCIe write hits by ways") && page.contains("Published: a paper."));
}

#[test]
fn a_trace_counts_lines() {
    let outcome = TraceOutcome {
        kind: "simulated",
        machine: "m".to_owned(),
        accesses: 12,
        lines: 2048,
        core_lines: 2000,
        private_hits: 1000,
        llc_hits: 600,
        peer_hits: 0,
        llc_misses: 400,
        card_write_hits: 40,
        card_write_misses: 8,
        card_read_hits: 0,
        card_read_misses: 0,
        memory_read_bytes: 25_600,
        memory_write_bytes: 640,
    };
    let shown = text(&simulation::trace(&outcome));
    assert!(shown.contains("last-level misses") && shown.contains("Every number is simulated."));
}
