//! Events of an execution, for progress display.

use drive::{CompleteInterval, PhaseProgress};
use model::{Reading, Run};
use study::{KnobLevels, Step};

use crate::error::ExecuteError;

/// What happens in an execution.
#[derive(Debug)]
pub enum Event<'a> {
    /// Data is loaded, not measured, because a step needs it.
    Preparing {
        step: &'a Step,
        why: &'a str,
    },
    Prepared {
        seconds: f64,
    },
    /// The data of an earlier invocation is reused.
    Reusing {
        step: &'a Step,
    },
    /// The data was restored from a copy of what was loaded earlier.
    Restored {
        step: &'a Step,
    },
    /// The loaded data was copied, or there was no space for a copy.
    Copied {
        done: bool,
    },
    /// The power of the idle machine is measured.
    Idling {
        seconds: f64,
    },
    /// The workload runs under a simulator, which is slow.
    Simulating {
        step: &'a Step,
    },
    /// The load runs again while its processes are sampled.
    Profiling {
        step: &'a Step,
    },
    /// That failed; the measured run stays.
    Unprofiled {
        step: &'a Step,
        why: &'a str,
    },
    /// The load runs once more while the pipeline's slots are counted.
    CountingSlots {
        step: &'a Step,
    },
    RunStarts {
        step: &'a Step,
    },
    Progress {
        step: &'a Step,
        progress: &'a PhaseProgress,
    },
    /// The CPUs on which the load runs; none where it may run anywhere, or elsewhere.
    Placed {
        cpus: &'a [u32],
    },
    /// An interval of the window is complete; only for listeners that watch.
    Interval {
        step: &'a Step,
        interval: &'a CompleteInterval<'a>,
    },
    /// CPU time, power and counters of the window until now, about once a second; only for
    /// listeners that watch.
    Readings {
        step: &'a Step,
        readings: &'a [Reading],
    },
    /// The store completes its background work.
    Settling {
        step: &'a Step,
    },
    /// The knobs cannot be turned to these levels; their runs are skipped.
    KnobsUnavailable {
        levels: &'a KnobLevels,
        why: &'a ExecuteError,
    },
    /// The run is in the file.
    Saved {
        step: &'a Step,
        run: &'a Run,
    },
}

pub trait Listener {
    fn on_event(&mut self, event: Event<'_>);

    /// Whether intervals and readings are wanted while a window is open. They cost the controlling
    /// thread some microseconds each second, and no thread of the load.
    fn watches(&self) -> bool {
        false
    }
}
