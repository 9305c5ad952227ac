//! Facts and readings of a replayed trace.

use drive::ReplaySummary;
use model::Reading;
use model::signal::{TRACE_PEAK_RATE, TRACE_RATE, TRACE_WORST_SECOND};

/// Maximum number of seconds that are listed one by one.
const MAX_SECONDS: usize = 600;

/// Requests of a trace that were due a second.
pub(crate) fn rate(due: u64, seconds: f64) -> f64 {
    let rate = due as f64 / seconds.max(1e-9);
    if rate.is_finite() { rate } else { 0.0 }
}

/// Facts about the replayed requests.
pub(crate) fn facts(replayed: &ReplaySummary, put: &mut impl FnMut(&str, String)) {
    put("trace.requests", replayed.requests.to_string());
    put("trace.keys_cut", replayed.cut.to_string());
    put("trace.keys_lengthened", replayed.lengthened.to_string());
    put("trace.keys_hashed", replayed.hashed.to_string());
    put("trace.records_skipped", replayed.skipped.to_string());
    put("trace.records_ignored", replayed.ignored.to_string());
    if let Some(header) = &replayed.header {
        put("trace.header_skipped", header.clone());
    }
    if replayed.read_late > 0 {
        put("trace.read_late", replayed.read_late.to_string());
    }
    if !replayed.seconds.is_empty() {
        let shown = &replayed.seconds[..replayed.seconds.len().min(MAX_SECONDS)];
        let row = |of: fn(&(u64, u64)) -> u64| {
            let numbers: Vec<String> = shown.iter().map(|second| of(second).to_string()).collect();
            numbers.join(" ")
        };
        put("trace.due_each_second", row(|second| second.0));
        put("trace.answered_each_second", row(|second| second.1));
    }
}

/// Readings of recorded and achieved rates; empty without recorded times.
pub(crate) fn readings(replayed: &ReplaySummary, window_s: f64) -> Vec<Reading> {
    let seconds = &replayed.seconds;
    if seconds.is_empty() {
        return Vec::new();
    }
    let due: u64 = seconds.iter().map(|(due, _)| due).sum();
    let peak = seconds.iter().map(|(due, _)| *due).max().unwrap_or(0);
    let shares = seconds.iter().filter(|(due, _)| *due > 0);
    let worst = shares.map(|(due, answered)| *answered as f64 / *due as f64).fold(1.0, f64::min);
    vec![
        TRACE_RATE.value(due as f64 / seconds.len() as f64, window_s),
        TRACE_PEAK_RATE.value(peak as f64, window_s),
        TRACE_WORST_SECOND.value(worst, window_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_slow_trace_has_a_rate() {
        for (due, seconds, expected) in [
            (0, 3.0, 0.0),
            (2, 5.0, 0.4),
            (1, 86_400.0, 1.0 / 86_400.0),
            (2400, 3.0, 800.0),
            (1_234_567, 1.0, 1_234_567.0),
        ] {
            assert_eq!(rate(due, seconds), expected, "{due} in {seconds} s");
        }
    }
}
