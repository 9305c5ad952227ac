use std::collections::{BTreeMap, BTreeSet};

use super::CellObservations;

/// Cells with their coefficients in a contrast.
pub(super) type Terms<'a> = Vec<(f64, &'a CellObservations)>;

/// One corner of a contrast: its sign, and the levels of its cells.
pub(super) type Corner<'l> = (f64, Vec<(&'l str, &'l str)>);

/// The combinations of the other factors in which all corners of a contrast were measured.
pub(super) struct Crossed<'a> {
    pub(super) blocks: Vec<(BTreeMap<&'a str, &'a str>, Terms<'a>)>,
    /// Combinations that lack some of the corners.
    pub(super) left_out: usize,
}

impl<'a> Crossed<'a> {
    /// Corners that name the same factors, each at other levels.
    ///
    /// A factor that some corner lacks belongs to the levels that have it, as the cache of one of
    /// two stores. It does not separate cells of different corners; the corner is the mean over it.
    pub(super) fn of(cells: &'a [CellObservations], corners: &[Corner<'_>]) -> Crossed<'a> {
        let stands = |cell: &CellObservations, levels: &[(&str, &str)]| {
            levels
                .iter()
                .all(|(factor, level)| cell.at.get(*factor).is_some_and(|own| own == level))
        };
        let names = |(_, levels): &Corner<'_>| -> BTreeSet<&str> {
            let of_it = cells.iter().filter(|cell| stands(cell, levels));
            of_it.flat_map(|cell| cell.at.keys().map(String::as_str)).collect()
        };
        let common = corners.iter().map(names).reduce(|a, b| &a & &b).unwrap_or_default();
        let contrasted: BTreeSet<&str> = corners
            .iter()
            .flat_map(|(_, levels)| levels.iter().map(|(factor, _)| *factor))
            .collect();
        let mut all: BTreeMap<_, Vec<Vec<&CellObservations>>> = BTreeMap::new();
        for cell in cells {
            let Some(at) = corners.iter().position(|(_, levels)| stands(cell, levels)) else {
                continue;
            };
            let rest = cell.at.iter().map(|(name, level)| (name.as_str(), level.as_str()));
            let rest: BTreeMap<&str, &str> = rest
                .filter(|(name, _)| common.contains(name) && !contrasted.contains(name))
                .collect();
            all.entry(rest).or_insert_with(|| vec![Vec::new(); corners.len()])[at].push(cell);
        }
        let combinations = all.len();
        let whole = all.into_iter().filter(|(_, sides)| sides.iter().all(|side| !side.is_empty()));
        let blocks: Vec<_> = whole
            .map(|(rest, sides)| {
                let terms = corners.iter().zip(sides).flat_map(|((sign, _), side)| {
                    let share = sign / side.len() as f64;
                    side.into_iter().map(move |cell| (share, cell))
                });
                (rest, terms.collect())
            })
            .collect();
        Crossed { left_out: combinations - blocks.len(), blocks }
    }

    /// All cells, every combination weighing the same.
    pub(super) fn terms(&self) -> Terms<'a> {
        let weight = 1.0 / self.blocks.len() as f64;
        let all = self.blocks.iter().flat_map(|(_, terms)| terms);
        all.map(|(share, cell)| (share * weight, *cell)).collect()
    }
}

/// The number of runs of the terms whose coefficient `counts` accepts.
pub(super) fn runs(terms: &Terms<'_>, counts: fn(f64) -> bool) -> usize {
    terms.iter().filter(|(share, _)| counts(*share)).map(|(_, cell)| cell.values.len()).sum()
}
