//! What the machine draws when it does nothing, measured before a study.

use std::thread;
use std::time::{Duration, Instant};

use model::{Origin, Reading, ReadingValue, Unit};

use crate::probe::energy::{MODEL, NAMES, Quantity};
use crate::probe::watch::{PreparedWatch, RunWatch};
use crate::probe::{Context, PROBES};
use crate::root::Root;
use crate::unavailable::Unavailable;

/// The power of the idle machine, by each boundary that can be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct IdlePower {
    /// `power.idle.NAME` in watts for every `energy.NAME`, and `idle.machine.busy`: how
    /// idle the machine really was.
    pub readings: Vec<Reading>,
}

/// How often `stop` is asked.
const LOOK: Duration = Duration::from_millis(100);

/// Long enough for a counter of the hardware to move, and for one that a program reads, which
/// may be refreshed every second.
const TRIAL: Duration = Duration::from_millis(120);
const SLOW_TRIAL: Duration = Duration::from_millis(1500);

/// Watches the idle machine for `time` with the energy probes of a run; ends early, with
/// what it has, when `stop` answers true. Whether anything here measures energy is found out
/// first: where nothing does, there is no waiting, and `stop` is never asked. The idle power of
/// the model is the one that it was given.
pub fn idle_power(
    root: &Root,
    context: &Context,
    time: Duration,
    mut stop: impl FnMut() -> bool,
) -> IdlePower {
    let used = |name: &str| name == "machine" || NAMES.contains(&name);
    let prepare = || RunWatch::over(PROBES.iter().filter(|spec| used(spec.name)), root, context);
    let measures: Vec<&str> = NAMES.into_iter().filter(|name| *name != MODEL.name).collect();
    let prepared = prepare();
    let trial = if prepared.has(&measures) { trial_of(context).min(time) } else { Duration::ZERO };
    let watch = prepared.begin();
    thread::sleep(trial);
    // A probe that can be made may still read nothing: a counter that no hardware moves, a plug
    // with nothing in it.
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

fn watched(prepared: PreparedWatch, time: Duration, stop: &mut dyn FnMut() -> bool) -> Vec<Reading> {
    let watch = prepared.begin();
    let until = Instant::now() + time;
    while let left = until.saturating_duration_since(Instant::now())
        && !left.is_zero()
        && !stop()
    {
        thread::sleep(left.min(LOOK));
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
        reading.signal = "idle.machine.busy".to_owned();
        return Some(reading);
    }
    let name = reading.signal.strip_prefix("energy.")?;
    reading.signal = format!("power.idle.{name}");
    reading.unit = Unit::Watts;
    if let ReadingValue::Value(joules) = reading.answer {
        reading.answer = match reading.window_s > 0.0 {
            true => ReadingValue::Value(joules / reading.window_s),
            false => Unavailable::new("the window has no length", "measure for longer").into(),
        };
    }
    Some(reading)
}
