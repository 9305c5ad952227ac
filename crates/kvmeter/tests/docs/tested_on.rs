//! The matrix of what was shown on which machine has a row for each knob and each probe.

use std::collections::BTreeSet;

use host::knob::KNOBS;
use host::probe::PROBES;

use crate::tree::{document, root};

const PAGE: &str = "docs/tested-on.md";

/// What a cell may say, with the page's explanation of it.
const KINDS: [&str; 6] = ["proven", "turned", "read", "missing", "refused", "none"];

/// The rows of the page's section: the name of the first cell, and the other cells.
fn rows(heading: &str) -> Vec<(String, Vec<String>)> {
    let page = document(PAGE);
    let section = page.text.split("\n## ").find(|part| part.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("{PAGE} has no section `{heading}`"));
    let lines = section.lines().filter_map(|line| line.strip_prefix("| `"));
    lines
        .map(|line| {
            let mut cells =
                line.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned());
            let name = cells.next().unwrap().trim_end_matches('`').to_owned();
            (name, cells.collect())
        })
        .collect()
}

fn check(heading: &str, expected: BTreeSet<&str>) {
    let rows = rows(heading);
    let found: BTreeSet<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, expected, "{PAGE}, {heading}");
    assert_eq!(rows.len(), expected.len(), "a row of {heading} is there twice");
    for (name, cells) in &rows {
        assert_eq!(cells.len(), 4, "{name}: {cells:?}");
        for cell in cells {
            let kind = cell.split([' ', ',', ':', ';']).next().unwrap();
            assert!(KINDS.contains(&kind), "{name}: `{cell}` is none of {KINDS:?}");
        }
    }
}

#[test]
fn each_knob_says_where_it_was_shown() {
    check("Knobs", KNOBS.iter().map(|knob| knob.info().name).collect());
}

#[test]
fn each_probe_says_where_it_was_shown() {
    check("Probes", PROBES.iter().map(|probe| probe.name).collect());
}

#[test]
fn each_case_of_the_laboratory_has_its_figures() {
    let folder = root().join("scripts/lab/cases");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let named: BTreeSet<String> =
        rows("The laboratory").into_iter().map(|(name, _)| name).collect();
    assert_eq!(named, cases, "{PAGE}, The laboratory");
}
