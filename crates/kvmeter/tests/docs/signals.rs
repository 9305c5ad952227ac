//! The catalogue of signals, the pages that document it, and the reports that show it.

use std::collections::BTreeSet;

use study::signals::catalogue;

use crate::tree::{document, documents};

/// The names in code of a text. One that begins with a point goes on the name before it:
/// `mpki.branch`, `.l1d` is `mpki.branch`, `mpki.l1d`.
fn names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let mut group = String::new();
        for code in line.split('`').skip(1).step_by(2) {
            match code.starts_with('.') {
                true => found.insert(format!("{group}{code}")),
                false => {
                    group = code.rsplit_once('.').map_or(code, |(group, _)| group).to_owned();
                    found.insert(code.to_owned())
                }
            };
        }
    }
    found
}

#[test]
fn every_signal_is_documented() {
    let documented: BTreeSet<String> =
        documents().iter().flat_map(|document| names(&document.text)).collect();
    let missing: Vec<&str> =
        catalogue().map(|signal| signal.name).filter(|name| !documented.contains(*name)).collect();
    assert!(missing.is_empty(), "in no document: {missing:?}");
}

#[test]
fn every_documented_signal_is_in_the_catalogue() {
    let page = document("docs/signals.md");
    let first_cells =
        page.text.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    for cell in first_cells {
        for name in names(&format!("`{cell}")) {
            let known = catalogue().any(|signal| signal.name == name || signal.is_named(&name));
            assert!(known, "docs/signals.md documents `{name}`, which no run has");
        }
    }
}

#[test]
fn reports_show_signals_of_the_catalogue() {
    let headlines = report::tables::HEADLINE_SIGNALS.map(|(_, signal)| signal);
    for shown in report::SHOWN.into_iter().chain(headlines) {
        let known = catalogue().any(|signal| match shown.strip_suffix('*') {
            Some(group) => signal.name.starts_with(group),
            None => signal.is_named(shown),
        });
        assert!(known, "{shown}");
    }
}
