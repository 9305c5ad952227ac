//! The client that measures beside the agents' load.

use drive::{LoadShare, PhaseOutcome};
use model::{Arrivals, LoadShape, Pacing, StopCondition};
use study::LoadConfig;

/// Its own load: a low rate over one connection without pipelining.
pub(super) fn load_config(agents: &LoadConfig, rate: f64) -> LoadConfig {
    let arrivals = match agents.shape.pacing {
        Pacing::Open { arrivals, .. } => arrivals,
        Pacing::Closed { .. } | Pacing::Recorded { .. } => Arrivals::Poisson,
    };
    let mut connections = agents.connections;
    (connections.count, connections.depth) = (1, 1);
    LoadConfig {
        threads: 1,
        shape: LoadShape {
            pacing: Pacing::Open { rate, arrivals },
            profile: None,
            warm_up: agents.shape.warm_up,
            warm_up_rate: None,
            until: StopCondition { operations: None, time: agents.length() },
        },
        connections,
        ..agents.clone()
    }
}

/// Its share of the stream: one thread beside those of so many agents.
pub(super) fn share(of_agents: &LoadConfig, agents: usize) -> LoadShare {
    let threads = of_agents.threads as usize;
    LoadShare { client: agents, clients: agents + 1, first_thread: threads, threads: threads + 1 }
}

/// The outcome of the client of this name, with the verdict and changes of the agents' load.
pub(super) fn with_load(name: &str, mut own: PhaseOutcome, load: &PhaseOutcome) -> PhaseOutcome {
    let invalid = load.invalid_because.iter().map(|reason| format!("load: {reason}"));
    own.invalid_because.extend(invalid);
    own.warnings.extend(load.warnings.iter().map(|reason| format!("load: {reason}")));
    own.warnings.push(format!(
        "latency and throughput are of {name}'s own connection; the agents' load of \
         {:.1} operations a second beside it is in load.*",
        load.operations as f64 / load.seconds.max(1e-9)
    ));
    own.stopped |= load.stopped;
    // Both changed the data.
    own.changes.inserted += load.changes.inserted;
    own.changes.deleted += load.changes.deleted;
    own.changes.refused += load.changes.refused;
    own
}
