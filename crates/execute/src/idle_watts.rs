//! What the machine draws before anything runs, for an estimate of energy.

use std::time::Duration;

use analyse::BOUNDARIES;
use model::ReadingValue;

use study::ProbesConfig;

/// Long enough for a counter of energy to move, and short enough to be waited for.
const LOOK: Duration = Duration::from_millis(300);

/// Watts, and what they are of.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleWatts {
    pub watts: f64,
    /// `energy.total`: the widest boundary that can be read here.
    pub signal: String,
}

/// The current power of the machine at the widest readable boundary: a lower bound on its power
/// under load.
///
/// # Errors
/// No energy can be read here, with the reason.
pub fn watts_now(probes: &ProbesConfig) -> Result<IdleWatts, String> {
    let context = probes.context(&[], Vec::new(), Vec::new());
    let readings = host::idle_power(&probes.root, &context, LOOK, || false).readings;
    let mut why = None;
    for name in BOUNDARIES {
        let signal = format!("power.idle.{name}");
        let Some(power) = readings.iter().find(|reading| reading.signal == signal) else {
            continue;
        };
        match &power.answer {
            ReadingValue::Value(watts) => {
                return Ok(IdleWatts { watts: *watts, signal: format!("energy.{name}") });
            }
            // The reason of the widest boundary is the most useful one.
            ReadingValue::Unavailable { reason, .. } if name == "total" => {
                why = Some(reason.clone())
            }
            ReadingValue::Unavailable { .. } => {}
        }
    }
    Err(why.unwrap_or_else(|| "no source of energy is read".to_owned()))
}
