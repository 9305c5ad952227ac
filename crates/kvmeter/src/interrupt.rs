//! Ctrl-C, SIGTERM and a terminal that goes away end the phase cleanly; a second one ends the process at once.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The one flag of the process, once it is wanted.
static STOP: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// A flag that the first signal raises. Finished runs are on disk, so a second signal may end the
/// process at any point.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let mut known = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = &*known {
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registered first, so that it acts on the flag as it was before this signal.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("signals cannot be handled")?;
    }
    *known = Some(Arc::clone(&stop));
    Ok(stop)
}
