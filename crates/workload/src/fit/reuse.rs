//! Finds the workload that has the trace's miss ratio at every size of an LRU cache.

use super::candidates::{self, Candidate};
use super::generated::for_each;
use crate::describe::{CacheAccess, KeySample, MOST_SAMPLED_KEYS, TraceDescription, by_step};
use crate::{Workload, WorkloadSpec};
use model::Op;
use model::random::mix;

/// The simplest workload that differs no more than this is taken.
const NEAR: f64 = 0.01;
/// The most requests that are generated for a candidate; one round is always made.
const BUDGET: u64 = 10_000_000;
const MOST_ROUNDS: u64 = 16;
/// Longer traces are compared by a smaller sample of keys.
const LONG: u64 = 4_000_000;
const FEW_KEYS: usize = 1 << 14;
/// The part of a difference that a round corrects, and the factor by which a weight falls at most.
const STEP: f64 = 0.8;
const MOST_FACTOR: f64 = 4.0;

/// Candidates that were tried, of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitProgress {
    pub done: usize,
    pub of: usize,
}

pub(super) struct FittedReuse {
    pub spec: WorkloadSpec,
    pub difference: Option<f64>,
}

/// Sizes of a cache in items, and its miss ratio.
struct Target {
    requests: u64,
    /// Distinct keys: the largest cache misses each of them once.
    keys: f64,
    sizes: Vec<u64>,
    misses: Vec<f64>,
    /// Reuse times that give these misses: `(most, requests)`.
    times: Vec<(u64, f64)>,
}

/// Generates from each candidate, the distances of which are corrected round by round until
/// requests come back after the same times as in the trace.
pub(super) fn fit(
    description: &TraceDescription,
    base: &WorkloadSpec,
    mut progress: impl FnMut(FitProgress),
) -> FittedReuse {
    let candidates = candidates::of(description, base);
    let Some(curve) = &description.miss_ratio else {
        let plain = candidates.into_iter().next();
        let spec = plain.map_or_else(|| base.clone(), |candidate| candidate.spec);
        return FittedReuse { spec, difference: None };
    };
    let last_miss = curve.points.last().map_or(0.0, |point| point.by_items);
    let target = Target {
        requests: description.requests,
        keys: last_miss * description.requests as f64,
        sizes: curve.points.iter().map(|point| point.items).collect(),
        misses: curve.points.iter().map(|point| point.by_items).collect(),
        times: times(description),
    };
    let mut best: Option<(f64, WorkloadSpec)> = None;
    let of = candidates.len();
    for (done, candidate) in candidates.iter().enumerate() {
        progress(FitProgress { done, of });
        if let Some((difference, spec)) = rounds(candidate, &target)
            && best.as_ref().is_none_or(|(least, _)| difference < *least)
        {
            best = Some((difference, spec));
        }
        if best.as_ref().is_some_and(|(least, _)| *least <= NEAR) {
            break;
        }
    }
    match best {
        Some((difference, spec)) => FittedReuse { spec, difference: Some(difference) },
        None => FittedReuse { spec: base.clone(), difference: None },
    }
}

/// The times between requests of a key that give the trace's miss ratio m: a cache of s items keeps
/// what comes back within the integral of 1 / m up to s (Hu et al., USENIX ATC 2016). They differ
/// from the trace's own times where its pace of new keys changes.
fn times(description: &TraceDescription) -> Vec<(u64, f64)> {
    let tables = &description.tables;
    let requests = description.requests as f64;
    let mut times: Vec<(u64, f64)> =
        tables.reuse_times.iter().map(|(most, _)| (*most, 0.0)).collect();
    let (mut size, mut misses, mut time) = (0, 1.0f64, 0.0);
    for (items, ratio) in &tables.miss_ratios {
        let width = (items - size) as f64;
        let kept = if width <= 1.0 { misses } else { (misses + ratio) / 2.0 };
        let until = (time + width / kept.max(1e-9)).min(requests);
        spread(&mut times, time, until, (misses - ratio).max(0.0) * requests);
        (size, misses, time) = (*items, *ratio, until);
    }
    times
}

/// Adds a weight evenly to the rows between two times.
fn spread(times: &mut [(u64, f64)], from: f64, to: f64, weight: f64) {
    let first = times.partition_point(|(most, _)| (*most as f64) < from + 1e-6);
    let mut begin = from;
    let last = times.len().saturating_sub(1);
    for (row, (most, sum)) in times.iter_mut().enumerate().skip(first.min(last)) {
        let end = if row == last { to } else { to.min(*most as f64) };
        let share = if to > from { (end - begin).max(0.0) / (to - from) } else { 1.0 };
        *sum += weight * share;
        begin = end;
        if end >= to {
            return;
        }
    }
}

/// The best round of a candidate: its difference and its workload.
fn rounds(candidate: &Candidate, target: &Target) -> Option<(f64, WorkloadSpec)> {
    let mut distances = target.times.clone();
    if candidate.repeats() && distances.iter().all(|(_, weight)| *weight <= 0.0) {
        return None;
    }
    let rounds = match candidate.repeats() || candidate.sweep() > 0.0 {
        true => (BUDGET / target.requests.max(1)).clamp(1, MOST_ROUNDS),
        false => 1,
    };
    let mut best: Option<(f64, WorkloadSpec)> = None;
    let least_sweep = 1.0 / target.requests.max(1) as f64;
    let (mut sweep, mut repeat) = (candidate.sweep(), candidate.repeat());
    for _ in 0..rounds {
        let spec = candidate.with(&distances, sweep, repeat, target.requests);
        repeat = spec.reuse.as_ref().map_or(0.0, |reuse| reuse.repeat);
        let tried = tried(&spec, target)?;
        if best.as_ref().is_none_or(|(least, _)| tried.difference < *least) {
            best = Some((tried.difference, spec));
        }
        correct(&mut distances, repeat, target, &tried.times);
        let due: f64 = distances.iter().map(|(_, weight)| weight).sum();
        repeat = (due / target.requests as f64).clamp(0.0, 1.0 - sweep);
        let missing = (target.keys - tried.keys) / target.requests as f64;
        sweep = (sweep + STEP * missing).clamp(least_sweep, 1.0);
    }
    best
}

/// Adds what is missing at each distance; weights become numbers of requests.
fn correct(distances: &mut [(u64, f64)], repeat: f64, target: &Target, times: &[(u64, f64)]) {
    let all: f64 = distances.iter().map(|(_, weight)| weight).sum();
    let requests = repeat * target.requests as f64;
    for ((distance, due), had) in distances.iter_mut().zip(&target.times).zip(times) {
        let now = distance.1 / all * requests;
        distance.1 = (now + STEP * (due.1 - had.1)).max(now / MOST_FACTOR);
    }
}

/// What the requests of a candidate are like.
struct Tried {
    difference: f64,
    times: Vec<(u64, f64)>,
    keys: f64,
}

/// The greatest difference from the curve, and after how many requests keys come back.
fn tried(spec: &WorkloadSpec, target: &Target) -> Option<Tried> {
    let workload = Workload::new(spec).ok()?;
    let limit = if target.requests > LONG { FEW_KEYS } else { MOST_SAMPLED_KEYS };
    let mut sample = KeySample::new(limit);
    for_each(&workload, target.requests, |operation| {
        let access = match operation.op {
            Op::Read | Op::Scan => CacheAccess::Read,
            Op::Delete => CacheAccess::Delete,
            _ => CacheAccess::Write,
        };
        sample.request(mix(operation.record), access, 1, None);
    });
    let misses = sample.miss_ratios(&sample.items, &target.sizes);
    let differences = misses.iter().zip(&target.misses).map(|(a, b)| (a - b).abs());
    let times = by_step(&sample.times, sample.requests);
    Some(Tried { difference: differences.fold(0.0, f64::max), times, keys: sample.all_keys() })
}
