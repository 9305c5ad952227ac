//! Traces replayed from end to end, from generated files: against a store that keeps a record of
//! what it is asked, and against real servers.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

mod embedded;
mod file;
mod ledger;
mod pipe;
mod servers;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drive::{DriveError, Outcome, Pacing, Plan, Quiet, Replay, Target, Ticks, What, drive};
use workload::trace::Spread;
use workload::{SizedValues, Spec, Workload};

/// Not asked: a trace stands in its place.
fn workload() -> Arc<Workload> {
    Arc::new(Workload::new(&Spec::default()).unwrap())
}

fn plan(file: &Path, threads: usize, pacing: Pacing) -> Plan {
    let replay = Replay {
        file: file.to_owned(),
        spread: Spread::Poisson { seed: 1 },
        most: None,
        values: Arc::new(SizedValues::new(1, 0.0).unwrap()),
        refill: false,
    };
    Plan { trace: Some(Arc::new(replay)), pacing, ..Plan::closed(What::Mix, threads) }
}

fn changed(plan: Plan, change: impl FnOnce(&mut Replay)) -> Plan {
    let mut replay = plan.trace.as_deref().unwrap().clone();
    change(&mut replay);
    Plan { trace: Some(Arc::new(replay)), ..plan }
}

fn max() -> Pacing {
    Pacing::Closed { think: Duration::ZERO }
}

fn ask<T: Target>(target: &Arc<T>, plan: &Plan) -> Result<Outcome, DriveError> {
    drive(&Ticks::new(), target, &workload(), plan, &mut Quiet)
}
