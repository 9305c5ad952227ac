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
    let tables = &description.tables;
    let records = spec.records.0 as f64;
    // Keys that are swept lie behind the popular ones, in no order.
    let swept = spec.reuse.as_ref().map_or(0.0, |reuse| reuse.swept);
    let ordered = match swept > 0.0 {
        true => ((1.0 - swept) * records * tables.share).round() as usize,
        false => tables.popular_sizes.len(),
    };
    let (popular, swept) = tables.popular_sizes.split_at(ordered.min(tables.popular_sizes.len()));
    let mut classes = classes(popular);
    let rest = match swept {
        [] => classes.pop()?.law()?,
        swept => {
            let mut sizes = BTreeMap::new();
            for (requests, bytes) in swept {
                *sizes.entry(u64::from(*bytes)).or_insert(0) += requests;
            }
            sizes::fit(&sizes.into_iter().collect::<Vec<_>>())?
        }
    };
    let mean = mean(&tables.popular_sizes);
    if !classes.iter().any(|class| (class.mean() / mean - 1.0).abs() > DIFFERENCE) {
        return None;
    }
    let part =
        |class: &PopularityClass| super::significant(class.keys as f64 / tables.share / records, 6);
    let rows = classes.iter().map(|class| Some((part(class), class.law()?)));
    let size_of_first = rows.collect::<Option<_>>()?;
    Some(ValueSpec { size: rest, size_of_first, ..spec.value.clone() })
}

/// Bytes, over the requests.
fn mean(sized: &[(u64, u32)]) -> f64 {
    let (bytes, requests) = sized.iter().fold((0, 0), |(sum, all), (requests, bytes)| {
        (sum + requests * u64::from(*bytes), all + requests)
    });
    bytes as f64 / requests.max(1) as f64
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
