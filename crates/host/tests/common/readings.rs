//! Looking things up in readings, and saying what was there instead.

use model::{Reading, ReadingValue};

#[track_caller]
pub fn find<'a>(readings: &'a [Reading], signal: &str) -> &'a Reading {
    let reading = readings.iter().find(|reading| reading.signal == signal);
    reading.unwrap_or_else(|| panic!("no reading of {signal} in {readings:#?}"))
}

#[track_caller]
pub fn value(readings: &[Reading], signal: &str) -> f64 {
    let reading = find(readings, signal);
    reading.value().unwrap_or_else(|| panic!("{reading:?}"))
}

/// Reason and remedy of a signal that must be unavailable.
#[track_caller]
pub fn why<'a>(readings: &'a [Reading], signal: &str) -> (&'a str, &'a str) {
    match &find(readings, signal).answer {
        ReadingValue::Unavailable { reason, remedy } => (reason, remedy.as_deref().unwrap()),
        ReadingValue::Value(value) => panic!("{signal} has the value {value}"),
    }
}

#[track_caller]
pub fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
}
