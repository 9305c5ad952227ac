//! The shortest names that distinguish cells.

use std::collections::{BTreeMap, BTreeSet};

use model::RunSettings;

/// The value of a setting that a run lacks.
pub(super) const ABSENT: &str = "(not set)";
/// Settings that come first; others follow by name.
const LEADING: [&str; 9] = [
    "workload",
    "phase",
    "store",
    "store_version",
    "threads",
    "rate",
    "loop",
    "arrivals",
    "workload.records",
];
/// Derived from other settings.
const OMITTED: [&str; 2] = ["workload.is", "workload.data_bytes"];
/// Repeats `rate`, `loop` and `arrivals`.
const TRAILING: &str = "pacing";

/// A title for each cell: its workload, and as few other settings as distinguish it. `ycsb-a`,
/// `ycsb-a, threads=2`, `ycsb-a, load`.
pub(super) fn titles<'a>(
    cells: impl Iterator<Item = &'a RunSettings>,
) -> BTreeMap<&'a RunSettings, String> {
    let cells: BTreeSet<&RunSettings> = cells.collect();
    let order = order(&cells);
    let mut titles: BTreeMap<&RunSettings, String> = BTreeMap::new();
    // Groups of cells with the same title so far, and its parts.
    let mut pending: Vec<(Vec<&RunSettings>, Vec<String>)> = Vec::new();
    for (workload, group) in by_value(&cells.iter().copied().collect::<Vec<_>>(), "workload") {
        pending.push((group, workload.map(str::to_owned).into_iter().collect()));
    }
    while let Some((group, parts_so_far)) = pending.pop() {
        let splits = order.iter().map(|name| (*name, by_value(&group, name)));
        let splits: Vec<_> = splits.filter(|(_, parts)| parts.len() > 1).collect();
        // `loop=closed` says more than `rate=(not set)`.
        let set = splits.iter().position(|(_, parts)| !parts.contains_key(&None));
        match splits.into_iter().nth(set.unwrap_or(0)) {
            Some((name, parts)) => {
                for (value, members) in parts {
                    let mut title_parts = parts_so_far.clone();
                    title_parts.extend(part(name, value));
                    pending.push((members, title_parts));
                }
            }
            _ => insert_titles(&group, &parts_so_far, &mut titles),
        }
    }
    titles
}

/// One title for one cell; cells that cannot be distinguished are numbered.
fn insert_titles<'a>(
    group: &[&'a RunSettings],
    parts: &[String],
    titles: &mut BTreeMap<&'a RunSettings, String>,
) {
    let title = if parts.is_empty() { "all runs".to_owned() } else { parts.join(", ") };
    for (i, cell) in group.iter().enumerate() {
        let title = if group.len() > 1 { format!("{title} #{}", i + 1) } else { title.clone() };
        titles.insert(*cell, title);
    }
}

/// All names of settings that may stand in a title.
fn order<'a>(cells: &BTreeSet<&'a RunSettings>) -> Vec<&'a str> {
    let names: BTreeSet<&str> =
        cells.iter().flat_map(|cell| cell.keys()).map(String::as_str).collect();
    let first = LEADING.into_iter().filter_map(|name| names.get(name).copied());
    let others = names
        .iter()
        .copied()
        .filter(|name| !LEADING.contains(name) && !OMITTED.contains(name) && *name != TRAILING);
    first.chain(others).chain(names.get(TRAILING).copied()).collect()
}

type Parts<'a> = BTreeMap<Option<&'a str>, Vec<&'a RunSettings>>;

fn by_value<'a>(group: &[&'a RunSettings], name: &str) -> Parts<'a> {
    let mut parts = Parts::new();
    for cell in group {
        parts.entry(cell.get(name).map(String::as_str)).or_default().push(cell);
    }
    parts
}

/// A setting in a title. Only the load phase is named.
fn part(name: &str, value: Option<&str>) -> Option<String> {
    match (name, value) {
        ("phase", Some("measure")) => None,
        ("phase", Some(phase)) => Some(phase.to_owned()),
        _ => Some(format!("{name}={}", value.unwrap_or(ABSENT))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pairs: &[(&str, &str)]) -> RunSettings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Titles in the order of the cells given.
    fn named(cells: &[RunSettings]) -> Vec<String> {
        let titles = titles(cells.iter());
        cells.iter().map(|cell| titles[cell].clone()).collect()
    }

    #[test]
    fn titles_are_workloads_if_these_differ() {
        let is = "1M records, hashed ycsb keys, 50 % read, 50 % update";
        let cells = [
            cell(&[("phase", "load"), ("workload", "load"), ("workload.is", "1M records")]),
            cell(&[("phase", "measure"), ("time", "10s"), ("workload", "a"), ("workload.is", is)]),
            cell(&[("phase", "measure"), ("time", "10s"), ("workload", "b"), ("workload.is", "x")]),
        ];
        assert_eq!(named(&cells), ["load", "a", "b"]);
    }

    #[test]
    fn titles_name_as_few_settings_as_needed() {
        let cells = [
            cell(&[("workload", "a"), ("threads", "1"), ("cache", "1GiB"), ("z", "1")]),
            cell(&[("workload", "a"), ("threads", "2"), ("cache", "1GiB"), ("z", "2")]),
            cell(&[("workload", "a"), ("threads", "2"), ("cache", "2GiB"), ("z", "3")]),
            cell(&[("workload", "b"), ("threads", "2"), ("cache", "2GiB"), ("z", "4")]),
        ];
        assert_eq!(
            named(&cells),
            ["a, threads=1", "a, threads=2, cache=1GiB", "a, threads=2, cache=2GiB", "b"]
        );
    }

    #[test]
    fn rates_before_pacing_and_the_phase_of_the_load_only() {
        let open = |rate| {
            cell(&[("workload", "a"), ("phase", "measure"), ("rate", rate), ("pacing", rate)])
        };
        let load = cell(&[("workload", "a"), ("phase", "load"), ("pacing", "closed")]);
        assert_eq!(
            named(&[open("1k"), open("2k"), load.clone()]),
            ["a, rate=1k", "a, rate=2k", "a, load"]
        );
        assert_eq!(named(&[open("1k"), load]), ["a", "a, load"]);
        let closed = cell(&[("workload", "a"), ("loop", "closed")]);
        let open = |rate| cell(&[("workload", "a"), ("loop", "open"), ("rate", rate)]);
        assert_eq!(named(&[closed.clone(), open("1k")]), ["a, loop=closed", "a, loop=open"]);
        assert_eq!(
            named(&[closed, open("1k"), open("2k")]),
            ["a, loop=closed", "a, loop=open, rate=1k", "a, loop=open, rate=2k"]
        );
    }

    #[test]
    fn indistinguishable_cells_are_numbered() {
        let cells = ["1M records", "2M records"].map(|is| cell(&[("workload.is", is)]));
        assert_eq!(named(&cells), ["all runs #1", "all runs #2"]);
        assert_eq!(named(&[cell(&[("threads", "1")])]), ["all runs"]);
    }
}
