//! A distribution of sizes: a family where one fits, else a table.

use std::collections::BTreeMap;

use model::Bytes;

use super::compare::SIZES;
use super::generated::for_each;
use super::popular_sizes;
use crate::describe::TraceDescription;
use crate::length::{LengthLimits, LengthSampler};
use crate::{LengthSource, LengthSpec, TtlSpec, ValueSpec, Workload, WorkloadSpec};

/// What a family may differ in mean and percentiles.
const TOLERANCE: f64 = 0.02;
/// A trace keeps the sizes of its keys where so many values have the size of the one before.
const SAME_SIZES: f64 = 0.9;
/// Requests from which the sizes of a workload are counted, at most.
const MOST_COUNTED: u64 = 1_000_000;
/// Seeds that are tried.
const SEEDS: u64 = 64;
/// What a seed loses whose values do not keep the size of their key, where the trace's do.
const MISSED: f64 = 0.005;

/// `(bytes, requests)`, rising.
type Counts = Vec<(u64, u64)>;
/// So many distinct sizes are listed one by one.
const LISTED: usize = 24;
/// The parts of a table, finer around p99.
const PARTS: [f64; 12] =
    [0.9, 0.92, 0.94, 0.96, 0.975, 0.985, 0.989, 0.991, 0.995, 0.998, 0.999, 1.0];
/// Parts below the first of them.
const EVEN_PARTS: u32 = 30;

/// `counts`: `(bytes, requests)`, rising. None without any.
pub(super) fn fit(counts: &[(u64, u64)]) -> Option<LengthSpec> {
    let (first, last) = (counts.first()?.0, counts.last()?.0);
    if first == last {
        return Some(LengthSpec::fixed(first));
    }
    if counts.len() > LISTED
        && let Some(family) = families(counts).into_iter().find(|family| fits(family, counts))
    {
        return Some(family);
    }
    Some(LengthSpec::Discrete { values: shares(&rows(counts)), tail: None })
}

fn requests(counts: &[(u64, u64)]) -> f64 {
    counts.iter().map(|(_, requests)| *requests as f64).sum()
}

pub(super) fn mean(counts: &[(u64, u64)]) -> f64 {
    counts.iter().map(|(bytes, count)| *bytes as f64 * *count as f64).sum::<f64>()
        / requests(counts)
}

pub(super) fn quantile(counts: &[(u64, u64)], share: f64) -> u64 {
    let due = share * requests(counts);
    let mut sum = 0.0;
    for (bytes, count) in counts {
        sum += *count as f64;
        if sum >= due {
            return *bytes;
        }
    }
    counts.last().map_or(0, |(bytes, _)| *bytes)
}

/// Families whose parameters follow from mean, variance, minimum and maximum.
fn families(counts: &[(u64, u64)]) -> Vec<LengthSpec> {
    let (min, max) = (counts[0].0, counts[counts.len() - 1].0);
    let mean = mean(counts);
    let squares: f64 =
        counts.iter().map(|(bytes, count)| (*bytes as f64 - mean).powi(2) * *count as f64).sum();
    let variance = squares / requests(counts);
    let round = |number: f64| super::significant(number, 5);
    let ends = (Some(Bytes(min)), Some(Bytes(max)));
    let above = (mean - min as f64).max(0.5);
    let ratio = above * above / variance;
    vec![
        LengthSpec::Uniform { min: Bytes(min), max: Bytes(max) },
        LengthSpec::Exponential { mean: round(mean), min: ends.0, max: ends.1 },
        LengthSpec::Normal {
            mean: round(mean),
            sd: round(variance.sqrt()),
            min: ends.0,
            max: ends.1,
        },
        LengthSpec::Pareto {
            location: min as f64,
            scale: round(0.5 * above * (ratio + 1.0)),
            shape: round(0.5 * (1.0 - ratio)),
            min: None,
            max: ends.1,
        },
    ]
}

fn fits(family: &LengthSpec, counts: &[(u64, u64)]) -> bool {
    let limits = LengthLimits { key: "size", lowest: 0, highest: u64::MAX, cut: u64::MAX };
    let Ok(sampler) = LengthSampler::new(family, limits) else { return false };
    let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * b.max(1.0);
    near(sampler.mean(), mean(counts))
        && [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
            .iter()
            .all(|share| near(sampler.quantile(*share) as f64, quantile(counts, *share) as f64))
}

/// Each part of the requests by its mean size; few sizes one by one.
fn rows(counts: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let all = requests(counts);
    let mut rows: Vec<(f64, f64)> = Vec::new();
    if counts.len() <= LISTED {
        rows.extend(counts.iter().map(|(bytes, count)| (*bytes as f64, *count as f64)));
    } else {
        let even = (1..EVEN_PARTS).map(|part| 0.9 * f64::from(part) / f64::from(EVEN_PARTS));
        let mut index = 0;
        let (mut left, mut before) = (counts[0].1 as f64, 0.0);
        for part in even.chain(PARTS) {
            let begin = std::mem::replace(&mut before, part);
            let mut due = (part - begin) * all;
            let (mut sum, mut weight) = (0.0, 0.0);
            while due > 1e-9 && index < counts.len() {
                let taken = left.min(due);
                sum += taken * counts[index].0 as f64;
                weight += taken;
                due -= taken;
                left -= taken;
                if left <= 1e-9 {
                    index += 1;
                    left = counts.get(index).map_or(0.0, |(_, count)| *count as f64);
                }
            }
            if weight > 0.0 {
                // In a long tail the mean of this narrow part is not p99.
                let bytes = match (begin, part) {
                    (..0.99, 0.99..) => quantile(counts, 0.99) as f64,
                    _ => sum / weight,
                };
                rows.push((bytes.round(), weight));
            }
        }
    }
    rows
}

/// Gives the values the sizes of the trace, by popularity where they go with it, and chooses the seed.
pub(super) fn choose(spec: &mut WorkloadSpec, description: &TraceDescription) {
    if let Some(value) = popular_sizes::fit(spec, description) {
        let mut sized = WorkloadSpec { value, ..spec.clone() };
        if choose_seed(&mut sized, description) <= SIZES {
            *spec = sized;
            return;
        }
    }
    choose_seed(spec, description);
}

/// Chooses the seed with which the few most popular keys draw sizes like those of the trace: a size
/// is a property of a key, and the mean over the requests is theirs. Values keep the size of their
/// key where they do so in the trace and a seed suits them.
/// Returns how much they differ.
fn choose_seed(spec: &mut WorkloadSpec, description: &TraceDescription) -> f64 {
    let tables = &description.tables;
    let stays = tables.same_sizes.is_some_and(|share| share >= SAME_SIZES)
        && (!matches!(spec.value.size, LengthSpec::Fixed(_))
            || !spec.value.size_of_first.is_empty());
    let sources: &[LengthSource] = match stays {
        true => &[LengthSource::Key, LengthSource::Write],
        false => &[LengthSource::Write],
    };
    let requests = description.requests.min(MOST_COUNTED);
    let mut best: Option<(f64, u64, LengthSource)> = None;
    for (seed, length_by) in (1..=SEEDS).flat_map(|seed| sources.iter().map(move |by| (seed, *by)))
    {
        let tried = WorkloadSpec {
            seed,
            value: ValueSpec { length_by, ..spec.value.clone() },
            ..spec.clone()
        };
        let Ok(workload) = Workload::new(&tried) else { return f64::INFINITY };
        let (keys, values) = drawn_sizes(&workload, requests);
        let off =
            difference(&keys, &tables.key_bytes).max(difference(&values, &tables.value_bytes));
        let worst = if length_by == sources[0] { off } else { off + MISSED };
        if best.is_none_or(|(least, ..)| worst < least) {
            best = Some((worst, seed, length_by));
        }
        if worst <= SIZES / 2.0 {
            break;
        }
    }
    let Some((worst, seed, length_by)) = best else { return f64::INFINITY };
    spec.seed = seed;
    spec.value.length_by = length_by;
    worst
}

/// The sizes of keys and values of the first requests.
fn drawn_sizes(workload: &Workload, requests: u64) -> (Counts, Counts) {
    let (mut key, mut keys, mut values) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for_each(workload, requests, |operation| {
        workload.key(operation.record, &mut key);
        *keys.entry(key.len() as u64).or_insert(0) += 1;
        *values.entry(workload.value_length(&key, operation.salt)).or_insert(0) += 1;
    });
    (keys.into_iter().collect(), values.into_iter().collect())
}

/// The greater relative difference of mean and p99; 0 where the trace has no sizes.
fn difference(drawn: &[(u64, u64)], trace: &[(u64, u64)]) -> f64 {
    if drawn.is_empty() || trace.is_empty() {
        return 0.0;
    }
    let relative = |a: f64, b: f64| (a - b).abs() / b.max(1.0);
    let p99 = |counts| quantile(counts, 0.99) as f64;
    relative(mean(drawn), mean(trace)).max(relative(p99(drawn), p99(trace)))
}

/// The times to live of a trace's writes, of which some never expire. None where none does.
pub(super) fn ttl(counts: &[(u64, u64)], never: u64) -> Option<TtlSpec> {
    let expire = requests(counts);
    let share = expire / (expire + never as f64);
    let row = |(Bytes(seconds), of): (Bytes, f64)| {
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX).max(1);
        (seconds, super::significant(of * share, 6))
    };
    let seconds: Vec<(u32, f64)> = shares(&rows(counts)).into_iter().map(row).collect();
    (!counts.is_empty()).then_some(TtlSpec { seconds })
}

/// Sizes with probabilities of six digits that sum to 1.
fn shares(rows: &[(f64, f64)]) -> Vec<(Bytes, f64)> {
    const UNITS: f64 = 1e6;
    let all: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let mut units: Vec<(u64, i64)> = Vec::new();
    for (bytes, weight) in rows {
        let (bytes, share) = (*bytes as u64, (weight / all * UNITS).round() as i64);
        match units.last_mut() {
            Some((same, sum)) if *same == bytes => *sum += share,
            _ => units.push((bytes, share)),
        }
    }
    let missing = UNITS as i64 - units.iter().map(|(_, share)| share).sum::<i64>();
    if let Some((_, most)) = units.iter_mut().max_by_key(|(_, share)| *share) {
        *most += missing;
    }
    let rows = units.into_iter().filter(|(_, share)| *share > 0);
    rows.map(|(bytes, share)| (Bytes(bytes), share as f64 / UNITS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LengthLimits =
        LengthLimits { key: "size", lowest: 0, highest: 1 << 40, cut: 1 << 40 };

    #[test]
    fn times_to_live_keep_their_shares() {
        assert_eq!(ttl(&[], 5), None);
        let spec = ttl(&[(60, 30), (3600, 10)], 60).unwrap();
        assert_eq!(spec, TtlSpec { seconds: vec![(60, 0.3), (3600, 0.1)] });
        let many: Vec<(u64, u64)> = (1..=1000).map(|seconds| (seconds, 7)).collect();
        let spec = ttl(&many, 0).unwrap();
        assert_eq!(spec.check(), Ok(()));
        let of = |(seconds, share): &(u32, f64)| f64::from(*seconds) * share;
        let mean: f64 = spec.seconds.iter().map(of).sum();
        assert!(spec.seconds.len() < 50 && (mean / 500.5 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_table_of_a_long_tail_keeps_p99() {
        let counts: Vec<(u64, u64)> =
            (0..400).map(|step| (10 + step * step, 200_000 / (1 + step * step))).collect();
        let table = fit(&counts).unwrap();
        assert!(matches!(table, LengthSpec::Discrete { .. }), "{table:?}");
        let sampler = LengthSampler::new(&table, LIMITS).unwrap();
        assert_eq!(sampler.quantile(0.99), quantile(&counts, 0.99));
        assert!((sampler.mean() / mean(&counts) - 1.0).abs() < 0.01);
    }

    /// Counts of so many draws.
    fn drawn(text: &str) -> Vec<(u64, u64)> {
        let sampler = LengthSampler::new(&text.parse().unwrap(), LIMITS).unwrap();
        let random = model::random::RandomStream::new(3, 3);
        let mut counts = std::collections::BTreeMap::new();
        for index in 0..200_000 {
            *counts.entry(sampler.draw(random.at(index))).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    #[test]
    fn a_family_is_named_where_it_fits() {
        for (text, family) in [
            ("100", "100"),
            ("uniform:100..2000", "uniform"),
            ("exponential:2000", "exponential"),
            ("normal:1000,100", "normal"),
            ("discrete:5=0.5,9=0.5", "discrete"),
        ] {
            let fitted = fit(&drawn(text)).unwrap().to_string();
            assert!(fitted.starts_with(family), "{text}: {fitted}");
        }
    }

    #[test]
    fn every_fit_has_the_mean_and_the_percentiles() {
        for text in [
            "pareto:15,214.476,0.348238,max=1000000",
            "gev:30.7984,8.20449,0.078688,max=250",
            "discrete:10=0.9,tail=uniform:100000..900000",
            "discrete:10=0.5,100=0.2,tail=exponential:5000",
        ] {
            let counts = drawn(text);
            let fitted = fit(&counts).unwrap();
            let sampler = LengthSampler::new(&fitted, LIMITS).unwrap();
            let off = sampler.mean() / mean(&counts) - 1.0;
            assert!(off.abs() < 0.02, "{text}: {off} {fitted}");
            let off = sampler.quantile(0.99) as f64 / quantile(&counts, 0.99) as f64 - 1.0;
            assert!(off.abs() < 0.02, "{text}: {off} {fitted}");
        }
        assert_eq!(fit(&[]), None);
    }
}
