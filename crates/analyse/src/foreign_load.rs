//! CPU time of the machine that was used by others than the measurement.

use model::{Reading, Run};

use crate::busy_time::BusyTime;

/// The share of the machine's CPU time that other programs used and, where the hypervisor reports
/// it, other virtual machines. None where it was not read.
pub fn foreign_load_share(run: &Run) -> Option<f64> {
    Some(other_programs_share(&run.readings)?.max(0.0) + run.value("machine.steal").unwrap_or(0.0))
}

/// The share that other programs used. None where it is unknown: the part of a local server that
/// could not be read would count as theirs.
pub fn other_programs_share(readings: &[Reading]) -> Option<f64> {
    BusyTime::of(readings).map(|busy| busy.others)
}
