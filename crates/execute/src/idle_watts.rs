//! What the machine draws before anything runs, for an estimate of energy.

use std::time::Duration;

use analyse::widest_first;
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
    let widest = widest_first(&readings, "power.idle").into_iter().next();
    if let Some((name, watts)) = widest.and_then(|(name, power)| Some((name, power.value()?))) {
        return Ok(IdleWatts { watts, signal: format!("energy.{name}") });
    }
    // The reason of the sensor that most machines have is the most useful one.
    let total = readings.iter().find(|reading| reading.signal == "power.idle.total");
    Err(match total.map(|reading| &reading.answer) {
        Some(ReadingValue::Unavailable { reason, .. }) => reason.clone(),
        _ => "no source of energy is read".to_owned(),
    })
}
