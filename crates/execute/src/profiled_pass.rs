//! A pass after the measured runs of a cell: the same load again, while the stacks of client and
//! servers are sampled. Its figures are never those of a run.

use drive::{Observer, PhaseProgress};
use model::{Execution, ProfiledSide, Run, RunProfile, RunSettings};
use profile::{Profiler, Target};
use study::Step;

use crate::co_runner::RunningHog;
use crate::error::ExecuteError;

/// Checks that processes can be sampled, before anything is loaded or started.
///
/// # Errors
/// Why not, and what helps.
pub(crate) fn check() -> Result<(), ExecuteError> {
    profile::check().map_err(|error| {
        let why = model::Unavailable::from(error);
        ExecuteError::Request(format!("where the time goes cannot be sampled: {why}"))
    })
}

/// Whether no planned run of the same cell comes after this step.
pub(crate) fn is_last_of_cell(execution: &Execution, step: &Step) -> bool {
    let same_cell = |settings: &RunSettings| {
        let of_cell = |settings: &RunSettings| {
            let mut settings = settings.clone();
            settings.retain(|key, _| !Run::REPEAT_SETTINGS.contains(&key.as_str()));
            settings
        };
        of_cell(settings) == of_cell(&step.settings)
    };
    let mut later = execution.plan.iter().filter(|planned| planned.ordinal > step.ordinal);
    !later.any(|planned| same_cell(&planned.settings))
}

/// kvmeter itself and the servers, by their programs' names.
pub(crate) fn targets(servers: Vec<u32>) -> Vec<Target> {
    let named = |pid, side| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Target { pid, side, name: name.trim().to_owned() }
    };
    std::iter::once(named(std::process::id(), ProfiledSide::Client))
        .chain(servers.into_iter().map(|pid| named(pid, ProfiledSide::Server)))
        .collect()
}

/// Samples while the window is open.
pub(crate) struct ProfilingObserver {
    pub targets: Vec<Target>,
    pub frequency: u64,
    pub co_runner: Option<RunningHog>,
    pub profiler: Option<Profiler>,
    pub result: Result<RunProfile, String>,
}

impl ProfilingObserver {
    pub fn new(
        targets: Vec<Target>,
        frequency: u64,
        co_runner: Option<RunningHog>,
    ) -> ProfilingObserver {
        let result = Err("its window did not open".to_owned());
        ProfilingObserver { targets, frequency, co_runner, profiler: None, result }
    }
}

impl Observer for ProfilingObserver {
    fn window_opens(&mut self) {
        if let Some(co_runner) = &mut self.co_runner {
            co_runner.window_opens();
        }
        match Profiler::start(std::mem::take(&mut self.targets), self.frequency) {
            Ok(profiler) => self.profiler = Some(profiler),
            Err(error) => self.result = Err(model::Unavailable::from(error).to_string()),
        }
    }

    fn window_closes(&mut self) {
        if let Some(profiler) = self.profiler.take() {
            self.result = profiler.stop().ok_or_else(|| "its thread failed".to_owned());
        }
        if let Some(co_runner) = &mut self.co_runner {
            co_runner.window_closes();
        }
    }

    fn progress(&mut self, _: &PhaseProgress) {}
}
