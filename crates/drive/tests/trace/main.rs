//! Replays of generated traces against a store that logs its operations, and real servers.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

mod embedded;
mod file;
mod operation_log;
mod pipe;
mod servers;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drive::{
    DriveError, LoadPlan, NoObserver, PhaseKind, PhaseOutcome, Replay, Target, Ticks, drive,
};
use model::{LoadShape, Pacing};
use workload::trace::{ArrivalSpread, TraceOptions};
use workload::{SizedValues, Workload, WorkloadSpec};

/// Unused: a trace replaces it.
fn workload() -> Arc<Workload> {
    Arc::new(Workload::new(&WorkloadSpec::default()).unwrap())
}

fn plan(file: &Path, threads: usize, pacing: Pacing) -> LoadPlan {
    let replay = Replay {
        file: file.to_owned(),
        options: TraceOptions::default(),
        spread: ArrivalSpread::Poisson { seed: 1 },
        most: None,
        values: Arc::new(SizedValues::new(1, 0.0).unwrap()),
        refill: false,
    };
    let shape = LoadShape { pacing, ..LoadShape::default() };
    LoadPlan { trace: Some(Arc::new(replay)), shape, ..LoadPlan::closed(PhaseKind::Mix, threads) }
}

fn changed(plan: LoadPlan, change: impl FnOnce(&mut Replay)) -> LoadPlan {
    let mut replay = plan.trace.as_deref().unwrap().clone();
    change(&mut replay);
    LoadPlan { trace: Some(Arc::new(replay)), ..plan }
}

fn max() -> Pacing {
    Pacing::Closed { think: Duration::ZERO }
}

fn run_phase(target: Arc<dyn Target>, plan: &LoadPlan) -> Result<PhaseOutcome, DriveError> {
    drive(&Ticks::new(), target, &workload(), plan, &mut NoObserver)
}
