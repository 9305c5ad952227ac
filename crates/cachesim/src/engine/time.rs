//! Simulated time: whole picoseconds, so that the order of events never depends on rounding.

/// Picoseconds since the beginning of the simulation.
pub type Picos = u64;

pub const SECOND: f64 = 1e12;

pub fn of_seconds(seconds: f64) -> Picos {
    (seconds * SECOND).round() as Picos
}

pub fn of_span(span: model::Span) -> Picos {
    of_seconds(span.0.as_secs_f64())
}

pub fn seconds(time: Picos) -> f64 {
    time as f64 / SECOND
}
