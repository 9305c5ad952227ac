//! The power of the idle machine, before the first run.

use std::sync::atomic::{AtomicBool, Ordering};

use model::Reading;

use super::ProbesConfig;
use crate::engine::{Event, Listener};

/// `power.idle.NAME` for every source of energy, and how idle the machine was meanwhile; nothing
/// where the study does not want it. Where no source works it takes no time.
pub(crate) fn measure(
    probes: &ProbesConfig,
    listener: &mut dyn Listener,
    stop: &AtomicBool,
) -> Vec<Reading> {
    if probes.idle.is_zero() {
        return Vec::new();
    }
    let context = probes.context(&[], Vec::new(), Vec::new());
    let mut told = false;
    let stopped = || {
        if !std::mem::replace(&mut told, true) {
            listener.hear(Event::Idling { seconds: probes.idle.as_secs_f64() });
        }
        stop.load(Ordering::Relaxed)
    };
    let idle = host::idle_power(&probes.root, &context, probes.idle, stopped);
    // What could not be read says so once, under the name of the energy itself.
    idle.readings.into_iter().filter(|reading| reading.value().is_some()).collect()
}
