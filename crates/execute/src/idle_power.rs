//! The power of the idle machine, before the first run.

use std::sync::atomic::{AtomicBool, Ordering};

use model::Reading;
use study::ProbesConfig;

use crate::event::{Event, Listener};

/// `power.idle.NAME` for every energy source, and how idle the machine was; empty where the study
/// disables it. Without a working source it takes no time.
pub(crate) fn measure_idle(
    probes: &ProbesConfig,
    listener: &mut dyn Listener,
    stop: &AtomicBool,
) -> Vec<Reading> {
    if probes.idle.is_zero() {
        return Vec::new();
    }
    let context = probes.context(&[], Vec::new(), Vec::new());
    let mut reported = false;
    let stopped = || {
        if !std::mem::replace(&mut reported, true) {
            listener.on_event(Event::Idling { seconds: probes.idle.as_secs_f64() });
        }
        stop.load(Ordering::Relaxed)
    };
    let idle = host::idle_power(&probes.root, &context, probes.idle, stopped);
    // Unavailable sources are reported once, under the name of the energy itself.
    idle.readings.into_iter().filter(|reading| reading.value().is_some()).collect()
}
