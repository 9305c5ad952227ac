//! Idle power of the machine, measured before a study.

use std::thread;
use std::time::{Duration, Instant};

use model::signal::{IDLE_BUSY, IDLE_POWER};
use model::{Origin, Reading, ReadingValue, Unavailable, Unit};

use crate::probe::energy::{Quantity, probes};
use crate::probe::watch::{PreparedWatch, RunWatch};
use crate::probe::{Context, PROBES, ProbeSpec, Signal};
use crate::root::Root;

/// Idle power by every energy source that works.
#[derive(Debug, Clone, PartialEq)]
pub struct IdlePower {
    /// `power.idle.NAME` in watts for every `energy.NAME`, and `idle.machine.busy`, the share of
    /// CPU time that was busy meanwhile.
    pub readings: Vec<Reading>,
}

/// How often `stop` is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Long enough for a hardware counter to move, and for a source that is refreshed every second.
const TRIAL: Duration = Duration::from_millis(120);
const SLOW_TRIAL: Duration = Duration::from_millis(1500);

/// Measures the idle machine for `time` with the energy probes of a run; ends early when `stop`
/// returns true. If a short trial finds no working source, it returns at once and never calls
/// `stop`. The idle power of the model is its setting.
pub fn idle_power(
    root: &Root,
    context: &Context,
    time: Duration,
    mut stop: impl FnMut() -> bool,
) -> IdlePower {
    let used = |spec: &&ProbeSpec| spec.name == "machine" || spec.reads_energy();
    let prepare = || RunWatch::over(PROBES.iter().filter(used), root, context);
    let is_measured = |signal: &Signal| signal.origin == Origin::Measured;
    let measures = probes().filter(|spec| spec.signals.iter().all(is_measured));
    let measures: Vec<&str> = measures.map(|spec| spec.name).collect();
    let prepared = prepare();
    let trial = if prepared.has(&measures) { trial_of(context).min(time) } else { Duration::ZERO };
    let watch = prepared.begin();
    thread::sleep(trial);
    // A probe that can be made may still read nothing: a counter that stands still, an unused plug.
    let mut observed = watch.end().readings;
    if !trial.is_zero() && observed.iter().any(measured) {
        observed = watched(prepare(), time, &mut stop);
    }
    let mut readings: Vec<Reading> = observed.into_iter().filter_map(idle).collect();
    if let Some(model) = context.energy.model
        && let Some(given) = readings.iter_mut().find(|r| r.signal == "power.idle.model")
    {
        given.answer = ReadingValue::Value(model.idle_w);
        given.source = "the model's idle watts, as given".to_owned();
        given.window_s = 0.0;
    }
    IdlePower { readings }
}

fn watched(
    prepared: PreparedWatch,
    time: Duration,
    stop: &mut dyn FnMut() -> bool,
) -> Vec<Reading> {
    let watch = prepared.begin();
    let until = Instant::now() + time;
    while let remaining = until.saturating_duration_since(Instant::now())
        && !remaining.is_zero()
        && !stop()
    {
        thread::sleep(remaining.min(POLL_INTERVAL));
    }
    watch.end().readings
}

fn trial_of(context: &Context) -> Duration {
    let command = context.energy.command.as_ref();
    match command.is_some_and(|command| command.answers == Quantity::Joules) {
        true => SLOW_TRIAL,
        false => TRIAL,
    }
}

fn measured(reading: &Reading) -> bool {
    reading.signal.starts_with("energy.")
        && reading.origin == Origin::Measured
        && reading.value().is_some()
}

fn idle(mut reading: Reading) -> Option<Reading> {
    if reading.signal == "machine.busy" {
        reading.signal = IDLE_BUSY.name.to_owned();
        return Some(reading);
    }
    let name = reading.signal.strip_prefix("energy.")?;
    reading.signal = IDLE_POWER.name_of(name);
    reading.unit = Unit::Watts;
    if let ReadingValue::Value(joules) = reading.answer {
        reading.answer = match reading.window_s > 0.0 {
            true => ReadingValue::Value(joules / reading.window_s),
            false => Unavailable::new("the window has no length", "measure for longer").into(),
        };
    }
    Some(reading)
}
