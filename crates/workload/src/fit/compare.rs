//! A trace and what was generated like it, side by side.

use serde::Serialize;

use super::profile::{self, CHANCE, TOLERANCE as RATE};
use super::sizes::{mean, quantile};
use crate::describe::{EmpiricalTables, MissRatioPoint, TraceDescription};

/// Limits: of the difference of miss ratios, and of the relative difference of sizes.
const MISS_RATIO: f64 = 0.02;
pub(super) const SIZES: f64 = 0.02;

/// One figure of the trace and of the generated requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigure {
    pub figure: &'static str,
    /// Where the difference is the greatest: a share of the working set, or seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    pub trace: f64,
    pub generated: f64,
    /// Absolute for shares, else relative to the trace's figure.
    pub difference: f64,
    /// None: it is shown without a limit.
    pub limit: Option<f64>,
    pub holds: bool,
    /// Whether the figures are shares.
    pub is_share: bool,
}

impl ComparedFigure {
    /// The figure of a cache that is bounded in bytes.
    pub const BY_BYTES: &str = "miss ratio of a cache in bytes";
}

/// The miss ratio of an LRU cache of so many items.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ComparedMissRatio {
    pub share: f64,
    pub items: u64,
    pub trace: f64,
    pub generated: f64,
}

/// How far generated requests are like a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resemblance {
    pub holds: bool,
    pub figures: Vec<ComparedFigure>,
    pub miss_ratios: Vec<ComparedMissRatio>,
}

impl Resemblance {
    pub fn of(trace: &TraceDescription, generated: &TraceDescription) -> Resemblance {
        let miss_ratios = miss_ratios(trace, generated);
        let worst = miss_ratios.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        let mut figures: Vec<ComparedFigure> = worst
            .map(|worst| {
                let at = Some(worst.share);
                share("miss ratio", at, worst.trace, worst.generated, Some(MISS_RATIO))
            })
            .into_iter()
            .collect();
        figures.extend(by_bytes(trace, generated));
        let (of, like) = (&trace.tables, &generated.tables);
        for (names, of, like) in [
            (["mean size of keys", "p99 of the size of keys"], &of.key_bytes, &like.key_bytes),
            (
                ["mean size of values", "p99 of the size of values"],
                &of.value_bytes,
                &like.value_bytes,
            ),
        ] {
            if !of.is_empty() && !like.is_empty() {
                figures.push(part(names[0], None, mean(of), mean(like), Some(SIZES)));
                let p99 = |counts: &[(u64, u64)]| quantile(counts, 0.99) as f64;
                figures.push(part(names[1], None, p99(of), p99(like), Some(SIZES)));
            }
        }
        figures.extend(ttl(of, like));
        figures.extend(rate(trace, generated));
        figures.push(part("distinct keys", None, trace.keys.value, generated.keys.value, None));
        let reads = |of: &TraceDescription| of.reads as f64 / of.requests.max(1) as f64;
        figures.extend(drift(trace, generated));
        figures.push(share("share of reads", None, reads(trace), reads(generated), None));
        Resemblance { holds: figures.iter().all(|figure| figure.holds), figures, miss_ratios }
    }
}

/// The mean time to live of the writes that expire.
fn ttl(of: &EmpiricalTables, like: &EmpiricalTables) -> Option<ComparedFigure> {
    let both = !of.ttl_s.is_empty() && !like.ttl_s.is_empty();
    both.then(|| part("mean TTL", None, mean(&of.ttl_s), mean(&like.ttl_s), None))
}

/// Popular keys that intervals half of the trace apart have in common. A model without drift has as
/// many as two halves of one interval.
fn drift(trace: &TraceDescription, generated: &TraceDescription) -> Option<ComparedFigure> {
    let (of, like) = (trace.drift.as_ref()?, generated.drift.as_ref()?);
    Some(share("popular keys in common, far apart", None, of.far, like.far, None))
}

fn off(point: &ComparedMissRatio) -> f64 {
    (point.trace - point.generated).abs()
}

fn share(
    figure: &'static str,
    at: Option<f64>,
    trace: f64,
    generated: f64,
    limit: Option<f64>,
) -> ComparedFigure {
    let difference = (generated - trace).abs();
    let holds = limit.is_none_or(|limit| difference <= limit);
    ComparedFigure { figure, at, trace, generated, difference, limit, holds, is_share: true }
}

fn part(
    figure: &'static str,
    at: Option<f64>,
    trace: f64,
    generated: f64,
    limit: Option<f64>,
) -> ComparedFigure {
    let difference = match trace {
        0.0 => generated.abs(),
        trace => (generated / trace - 1.0).abs(),
    };
    let holds = limit.is_none_or(|limit| difference <= limit);
    ComparedFigure { figure, at, trace, generated, difference, limit, holds, is_share: false }
}

/// At the sizes of the trace's working set.
fn miss_ratios(trace: &TraceDescription, generated: &TraceDescription) -> Vec<ComparedMissRatio> {
    let Some(of) = &trace.miss_ratio else { return Vec::new() };
    let point = |point: &MissRatioPoint| ComparedMissRatio {
        share: point.share,
        items: point.items,
        trace: point.by_items,
        generated: between(&generated.tables.miss_ratios, point.items),
    };
    of.points.iter().map(point).collect()
}

/// The miss ratio of a size between those of the curve.
fn between(curve: &[(u64, f64)], items: u64) -> f64 {
    let above = curve.partition_point(|(size, _)| *size < items);
    let Some((right, below)) = curve.get(above) else {
        return curve.last().map_or(1.0, |(_, misses)| *misses);
    };
    let left = above.checked_sub(1).and_then(|left| curve.get(left));
    let (from, misses) = left.copied().unwrap_or((0, 1.0));
    let share = (items - from) as f64 / (right - from).max(1) as f64;
    misses + share * (below - misses)
}

/// The greatest difference of a cache in bytes, which depends on which items are large.
fn by_bytes(trace: &TraceDescription, generated: &TraceDescription) -> Option<ComparedFigure> {
    let (of, like) = (trace.miss_ratio.as_ref()?, generated.miss_ratio.as_ref()?);
    let pairs = of.points.iter().zip(&like.points);
    let (of, like) = pairs.max_by(|a, b| {
        let off = |(a, b): &(&MissRatioPoint, &MissRatioPoint)| (a.by_bytes - b.by_bytes).abs();
        off(a).total_cmp(&off(b))
    })?;
    Some(share(ComparedFigure::BY_BYTES, Some(of.share), of.by_bytes, like.by_bytes, None))
}

/// The rate where it differs most, against what chance may do to so few requests.
fn rate(trace: &TraceDescription, generated: &TraceDescription) -> Option<ComparedFigure> {
    let windows = profile::windows(trace);
    trace.duration_s?;
    let mut begin = 0.0;
    let figures = windows.into_iter().map(|(requests, length)| {
        let had = requests_between(generated, begin, begin + length);
        let limit = RATE + CHANCE / requests.max(1.0).sqrt();
        let figure =
            part("rate over time", Some(begin), requests / length, had / length, Some(limit));
        begin += length;
        figure
    });
    let excess = |figure: &ComparedFigure| figure.difference - figure.limit.unwrap_or(0.0);
    figures.max_by(|a, b| excess(a).total_cmp(&excess(b)))
}

fn requests_between(description: &TraceDescription, from: f64, to: f64) -> f64 {
    let points = description.timeline.iter().map(|point| {
        let overlap = to.min(point.begin + point.length) - from.max(point.begin);
        overlap.max(0.0) / point.length.max(1e-12) * point.requests as f64
    });
    points.sum()
}
