//! The workloads that may resemble a trace, the simplest first.

use model::Count;

use super::poisson_mixture::table_behind;
use super::popularity::{records_behind, table};
use super::significant;
use crate::describe::TraceDescription;
use crate::{Popularity, ReuseSpec, WorkloadSpec};

/// Keys with at most so many requests are swept; the last limit sweeps every key.
const SWEPT: [u64; 6] = [1, 2, 4, 16, 64, u64::MAX];
/// Shares of repeated requests that are tried without a sweep.
const REPEAT: [f64; 3] = [0.25, 0.5, 0.75];
/// Above this a request would be traced back through too many others.
const MOST_REPEAT: f64 = 0.96;
/// Rows with less than this are empty.
const LEAST_SHARE: f64 = 1e-5;
/// Rows that may be joined with unlike ones.
const SMALL: f64 = 0.002;
/// The greatest distance of a joined row is so many times its least one.
const WIDEST: f64 = 1.42;

/// A workload whose distances are still to be fitted.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub spec: WorkloadSpec,
}

impl Candidate {
    pub fn repeats(&self) -> bool {
        self.spec.reuse.as_ref().is_some_and(|reuse| reuse.repeat > 0.0)
    }

    /// The part of the requests that repeats.
    pub fn repeat(&self) -> f64 {
        self.spec.reuse.as_ref().map_or(0.0, |reuse| reuse.repeat)
    }

    /// The part of the requests that is swept.
    pub fn sweep(&self) -> f64 {
        self.spec.reuse.as_ref().map_or(0.0, |reuse| reuse.sweep)
    }

    /// The workload with these weights of distances and these shares, for a trace of `requests`.
    pub fn with(
        &self,
        distances: &[(u64, f64)],
        sweep: f64,
        repeat: f64,
        requests: u64,
    ) -> WorkloadSpec {
        let mut spec = self.spec.clone();
        let Some(reuse) = spec.reuse.as_mut() else { return spec };
        if reuse.repeat > 0.0 {
            reuse.distances = rows(distances);
            reuse.repeat = round(repeat.min(MOST_REPEAT));
        }
        if reuse.sweep > 0.0 {
            // Distances reach back before the first request, where records are swept too.
            let before = reuse.distances.last().map_or(0, |(most, _)| *most).min(requests);
            let popular = (spec.records.0 as f64 * (1.0 - reuse.swept)).round();
            reuse.sweep = round(sweep);
            let swept = (reuse.sweep * (requests + before) as f64).ceil().max(1.0);
            spec.records = Count((popular + swept) as u64);
            if reuse.swept == 1.0 {
                reuse.repeat = round(1.0 - reuse.sweep);
            } else {
                reuse.swept = super::significant(swept / (popular + swept), 10);
                reuse.repeat = reuse.repeat.min(round(1.0 - reuse.sweep));
            }
        }
        spec
    }
}

/// Shares with five digits. Rows are joined while they are small and evenly filled, which a range
/// that repeats after the same time is not.
fn rows(distances: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let all: f64 = distances.iter().map(|(_, weight)| weight.max(0.0)).sum();
    let mut rows: Vec<(u64, f64)> = Vec::new();
    let (mut from, mut begin) = (0, 0);
    for (most, weight) in distances {
        let share = weight.max(0.0) / all;
        let joined = match rows.last_mut() {
            Some(last) if last.1 < LEAST_SHARE && share < LEAST_SHARE => Some(last),
            Some(last) => {
                let (before, now) = (last.1 / (from - begin) as f64, share / (most - from) as f64);
                let even = before < 1.5 * now && now < 1.5 * before;
                let narrow = *most as f64 <= begin as f64 * WIDEST;
                let small = last.1 + share < SMALL;
                ((even || small) && narrow).then_some(last)
            }
            None => None,
        };
        match joined {
            Some(last) => *last = (*most, last.1 + share),
            None => {
                rows.push((*most, share));
                begin = from;
            }
        }
        from = *most;
    }
    while rows.len() > 1 && rows.last().is_some_and(|row| row.1 < LEAST_SHARE) {
        rows.pop();
    }
    rows.into_iter().map(|(most, share)| (most, significant(share, 4))).collect()
}

/// The candidates for a trace; `base` has sizes, mix and expiry.
pub(super) fn of(description: &TraceDescription, base: &WorkloadSpec) -> Vec<Candidate> {
    let tables = &description.tables;
    let spectrum = tables.spectrum.as_slice();
    let all = Candidate {
        spec: WorkloadSpec { popularity: table(spectrum, tables.share), ..base.clone() },
    };
    let mut candidates = Vec::new();
    if is_even(spectrum) {
        let records = records_behind(0.0, description.requests, description.keys.value);
        candidates.push(Candidate {
            spec: WorkloadSpec {
                popularity: Popularity::Uniform,
                records: Count(records),
                ..base.clone()
            },
        });
    }
    if let Some(zipf) = description.popularity.zipf.filter(|zipf| zipf.is_zipf) {
        let theta = significant(zipf.theta, 4);
        let records = records_behind(theta, description.requests, description.keys.value);
        candidates.push(Candidate {
            spec: WorkloadSpec {
                popularity: Popularity::Zipfian { theta },
                records: Count(records),
                ..base.clone()
            },
        });
    }
    if is_loop(spectrum) {
        let spec = WorkloadSpec { popularity: Popularity::Sequential, ..base.clone() };
        candidates.push(Candidate { spec });
    }
    if let Some((popularity, records)) = table_behind(spectrum, tables.share) {
        let spec = WorkloadSpec { popularity, records, ..base.clone() };
        candidates.push(Candidate { spec });
    }
    candidates.push(all.clone());
    let mut before = 0;
    for most in SWEPT {
        let swept = spectrum.partition_point(|(requests, _)| *requests <= most);
        if swept > before {
            before = swept;
            candidates.extend(sweeping(spectrum, swept, tables.share, base));
        }
    }
    candidates.extend(REPEAT.map(|repeat| {
        let mut more = all.clone();
        more.spec.reuse = Some(ReuseSpec { repeat, ..ReuseSpec::default() });
        more
    }));
    candidates
}

/// Whether every key is requested equally often, give or take one.
fn is_loop(spectrum: &[(u64, u64)]) -> bool {
    matches!((spectrum.first(), spectrum.last()), (Some(first), Some(last)) if last.0 - first.0 <= 1)
}

/// Whether chance alone makes some keys more popular: their requests vary as Poisson numbers do.
fn is_even(spectrum: &[(u64, u64)]) -> bool {
    let sum = |power: i32| -> f64 {
        spectrum.iter().map(|(times, keys)| (*times as f64).powi(power) * *keys as f64).sum()
    };
    let (keys, mean) = (sum(0), sum(1) / sum(0));
    (sum(2) / keys - mean * mean) / mean < 1.2
}

/// The first keys of the spectrum are swept and come back by repeats alone.
fn sweeping(
    spectrum: &[(u64, u64)],
    swept: usize,
    share: f64,
    base: &WorkloadSpec,
) -> Option<Candidate> {
    let sums = |part: &[(u64, u64)]| {
        let keys: u64 = part.iter().map(|(_, keys)| keys).sum();
        let requests: u64 = part.iter().map(|(requests, keys)| requests * keys).sum();
        (keys as f64, requests as f64)
    };
    let (rare, popular) = spectrum.split_at(swept);
    let ((keys, requests), (other_keys, other_requests)) = (sums(rare), sums(popular));
    let repeat = 1.0 - keys / requests;
    if repeat > MOST_REPEAT {
        return None;
    }
    let sweep = keys / (requests + other_requests);
    let popularity = match popular {
        [] => Popularity::Uniform,
        popular => table(popular, share),
    };
    let repeat = if popular.is_empty() { 1.0 - sweep } else { repeat };
    let (sweep, repeat) = (round(sweep), round(repeat));
    let swept = if popular.is_empty() { 1.0 } else { round(keys / (keys + other_keys)) };
    // Six digits cannot hold the share of one key of very many.
    if sweep == 0.0 || swept == 0.0 {
        return None;
    }
    let reuse = ReuseSpec { sweep, swept, repeat, distances: Vec::new() };
    Some(Candidate { spec: WorkloadSpec { popularity, reuse: Some(reuse), ..base.clone() } })
}

fn round(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}
