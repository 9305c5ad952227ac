//! Events of an execution, for progress display.

use drive::PhaseProgress;
use model::Run;
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
    RunStarts {
        step: &'a Step,
    },
    Progress {
        step: &'a Step,
        progress: &'a PhaseProgress,
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
}
