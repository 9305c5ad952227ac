//! Sizes of values that go with popularity: another law for each class of popular keys.

use std::collections::BTreeMap;

use super::sizes;
use crate::describe::TraceDescription;
use crate::{LengthSpec, Popularity, ValueSpec, WorkloadSpec};

/// Classes of keys, each with about the same part of the requests.
const CLASSES: usize = 16;
/// Sizes go with popularity where the mean of a class differs so much from that of all requests.
const DIFFERENCE: f64 = 0.05;

/// A class of keys that are about equally popular.
struct PopularityClass {
    keys: usize,
    requests: u64,
    /// Keys with values of so many bytes.
    sizes: BTreeMap<u64, u64>,
}

impl PopularityClass {
    fn mean(&self) -> f64 {
        let bytes: u64 = self.sizes.iter().map(|(bytes, keys)| bytes * keys).sum();
        bytes as f64 / self.keys as f64
    }

    fn law(&self) -> Option<LengthSpec> {
        let counts: Vec<(u64, u64)> =
            self.sizes.iter().map(|(bytes, keys)| (*bytes, *keys)).collect();
        sizes::fit(&counts)
    }
}

/// The values of a workload whose first records have the sizes of the trace's popular keys. None
/// where sizes do not go with popularity, or its records are not in the order of popularity.
pub(super) fn fit(spec: &WorkloadSpec, description: &TraceDescription) -> Option<ValueSpec> {
    if !matches!(spec.popularity, Popularity::Ranks { .. } | Popularity::Zipfian { .. }) {
        return None;
    }
    let sized = &description.tables.popular_sizes;
    let classes = classes(sized);
    let requests: u64 = classes.iter().map(|class| class.requests).sum();
    let weighted = classes.iter().map(|class| class.mean() * class.requests as f64);
    let mean = weighted.sum::<f64>() / requests.max(1) as f64;
    let differs = |class: &PopularityClass| (class.mean() / mean - 1.0).abs() > DIFFERENCE;
    let (last, first) = classes.split_last()?;
    if !classes.iter().any(differs) {
        return None;
    }
    // A law may have more records than the trace has keys; those are its least popular ones.
    let keys = description.keys.value.min(spec.records.0 as f64);
    let part = |class: &PopularityClass| {
        super::significant(class.keys as f64 / sized.len() as f64 * keys / spec.records.0 as f64, 6)
    };
    let rows = first.iter().map(|class| Some((part(class), class.law()?)));
    Some(ValueSpec {
        size: last.law()?,
        size_of_first: rows.collect::<Option<_>>()?,
        ..spec.value.clone()
    })
}

/// `sized`: requests and size of keys, by falling requests. The most popular key may be a class.
fn classes(sized: &[(u64, u32)]) -> Vec<PopularityClass> {
    let all: u64 = sized.iter().map(|(requests, _)| requests).sum();
    let due = all as f64 / CLASSES as f64;
    let mut classes: Vec<PopularityClass> = Vec::new();
    let mut done = 0;
    for (requests, bytes) in sized {
        let is_full = classes.len() < CLASSES && done as f64 >= due * classes.len() as f64;
        if is_full {
            classes.push(PopularityClass { keys: 0, requests: 0, sizes: BTreeMap::new() });
        }
        if let Some(class) = classes.last_mut() {
            class.keys += 1;
            class.requests += requests;
            *class.sizes.entry(u64::from(*bytes)).or_insert(0) += 1;
        }
        done += requests;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_equal_parts_of_the_requests() {
        let sized: Vec<(u64, u32)> = (0..10_000).map(|rank| (10_000 / (rank + 1), 100)).collect();
        let classes = classes(&sized);
        assert_eq!(classes.iter().map(|class| class.keys).sum::<usize>(), sized.len());
        let all: u64 = sized.iter().map(|(requests, _)| requests).sum();
        let largest = classes.iter().map(|class| class.requests).max().unwrap();
        // The most popular key alone is more than a class.
        assert!(classes.len() <= CLASSES && largest >= 10_000, "{largest} of {all}");
        assert!(classes.iter().skip(1).all(|class| class.requests < all / 10));
        assert!(super::classes(&[]).is_empty());
    }
}
