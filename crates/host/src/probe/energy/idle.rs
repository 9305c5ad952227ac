//! What the machine draws when it does nothing, measured before a study.

use std::thread;
use std::time::{Duration, Instant};

use model::{Answer, Reading, Unit};

use crate::probe::energy::NAMES;
use crate::probe::watch::Watch;
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

/// Watches the idle machine for `time` with the energy probes of a run; ends early, with
/// what it has, when `stop` answers true.
pub fn idle_power(
    root: &Root,
    context: &Context,
    time: Duration,
    mut stop: impl FnMut() -> bool,
) -> IdlePower {
    let used = |name: &str| name == "machine" || NAMES.contains(&name);
    let specs = PROBES.iter().filter(|spec| used(spec.name));
    let watch = Watch::over(specs, root, context).begin();
    let until = Instant::now() + time;
    while let left = until.saturating_duration_since(Instant::now())
        && !left.is_zero()
        && !stop()
    {
        thread::sleep(left.min(LOOK));
    }
    let observed = watch.end().readings;
    IdlePower { readings: observed.into_iter().filter_map(idle).collect() }
}

fn idle(mut reading: Reading) -> Option<Reading> {
    if reading.signal == "machine.busy" {
        reading.signal = "idle.machine.busy".to_owned();
        return Some(reading);
    }
    let name = reading.signal.strip_prefix("energy.")?;
    reading.signal = format!("power.idle.{name}");
    reading.unit = Unit::Watts;
    if let Answer::Value(joules) = reading.answer {
        reading.answer = match reading.window_s > 0.0 {
            true => Answer::Value(joules / reading.window_s),
            false => Unavailable::new("the window has no length", "measure for longer").into(),
        };
    }
    Some(reading)
}

impl IdlePower {
    /// Joules of a run beyond those that the idle machine would have drawn in its window.
    /// `energy` is a reading called `energy.NAME`; it and the idle power must have the same
    /// boundary and origin. May be below zero, where a run drew less than the idle machine.
    pub fn net_joules(&self, energy: &Reading) -> Result<f64, Unavailable> {
        let gross = value(energy)?;
        let wanted = energy.signal.strip_prefix("energy.").unwrap_or(&energy.signal);
        let idle = self.readings.iter().find(|idle| {
            idle.signal.strip_prefix("power.idle.") == Some(wanted)
                && (idle.scope, idle.origin) == (energy.scope, energy.origin)
        });
        let idle = idle.ok_or_else(|| {
            Unavailable::new(
                format!("the idle power of {} was not measured", energy.signal),
                "measure it with the same probes, before the study",
            )
        })?;
        Ok(gross - value(idle)? * energy.window_s)
    }
}

fn value(reading: &Reading) -> Result<f64, Unavailable> {
    match &reading.answer {
        Answer::Value(value) => Ok(*value),
        Answer::Unavailable { reason, remedy } => Err(Unavailable::new(
            reason.clone(),
            remedy.clone().unwrap_or_else(|| "see the reason".to_owned()),
        )),
    }
}
