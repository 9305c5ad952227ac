//! The rate over time as a profile.

use crate::describe::{TimelinePoint, TraceDescription};

/// The most steps of a profile.
const STEPS: usize = 64;
/// A rate that stays within this is constant.
pub(super) const TOLERANCE: f64 = 0.05;
/// Standard deviations of a number of Poisson arrivals that are chance.
pub(super) const CHANCE: f64 = 3.0;

/// Requests and seconds of so many parts of the trace.
pub(super) fn windows(description: &TraceDescription) -> Vec<(f64, f64)> {
    let chunk = description.timeline.len().div_ceil(STEPS).max(1);
    let window = |points: &[TimelinePoint]| {
        let requests: u64 = points.iter().map(|point| point.requests).sum();
        (requests as f64, points.iter().map(|point| point.length).sum())
    };
    description.timeline.chunks(chunk).map(window).collect()
}

/// `steps:..`, where the rate moves by more than chance.
pub(super) fn of(description: &TraceDescription) -> Option<String> {
    let (seconds, mean) = (description.duration_s?, description.mean_rate_ops_s?);
    let steps = windows(description);
    let moves = steps.iter().any(|(requests, length)| {
        let due = mean * length;
        (requests - due).abs() > TOLERANCE * due + CHANCE * due.sqrt()
    });
    if !moves || steps.len() < 2 || seconds < 0.01 {
        return None;
    }
    let step = |(requests, length): &(f64, f64)| {
        let rate = super::significant(requests / length, 6);
        format!("{rate}@{}ms", (length * 1000.0).round().max(1.0))
    };
    let steps: Vec<String> = steps.iter().map(step).collect();
    Some(format!("steps:{}", steps.join(",")))
}
