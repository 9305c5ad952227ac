//! Load from several client machines: assignments of agents and their results.

mod agent;
mod coordinator;
mod intervals;
mod measuring;
mod permissions;
mod readings;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drive::{LoadPlan, MeasuredTax, PhaseKind, PhaseOutcome};
use model::{Rate, Reading, RunSettings};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::StoreUrl;
use study::LoadConfig;

use crate::load_plan::{init_thread, load_plan};

pub use agent::{AgentMachine, AgentWork};
pub(crate) use coordinator::{AgentPool, AgentRun, AgentRunResult};
pub use permissions::{AgentPermissions, AllowedKnob, AllowedProbe, AllowedServer};

const TOO_SHORT: &str = "it ends too early";

/// The assignment of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assignment {
    store: StoreUrl,
    workload: workload::WorkloadSpec,
    loads: bool,
    /// The load of all agents together.
    #[serde(rename = "manner")]
    load_config: LoadConfig,
    agent: usize,
    agents: usize,
    /// Another client, which measures, takes its part of the stream too.
    measured: bool,
    /// This agent is that client, and this is its rate.
    measure_rate: Option<f64>,
    machine: MachineAssignment,
}

/// What is done to an agent's own machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineAssignment {
    /// Knobs and the levels at which they stand during the run.
    knobs: Vec<(String, String)>,
    /// Probes that are read besides those that always run.
    probes: Vec<String>,
}

impl Assignment {
    fn phase(&self) -> PhaseKind {
        if self.loads { PhaseKind::Load } else { PhaseKind::Mix }
    }

    /// This agent's part, on a machine with so many CPUs.
    fn plan(&self, cpus: &[u32], stop: &Arc<AtomicBool>) -> LoadPlan {
        if let Some(rate) = self.measure_rate {
            let own = measuring::load_config(&self.load_config, rate);
            let plan = load_plan(&own, self.phase(), self.workload.seed, stop);
            let share = measuring::share(&self.load_config, self.agents);
            return LoadPlan { share: Some(share), keep_intervals: true, ..plan };
        }
        let whole = load_plan(&self.load_config, self.phase(), self.workload.seed, stop);
        let mut part = whole.part(self.agent, self.agents);
        if let (true, Some(share)) = (self.measured, &mut part.share) {
            share.clients += 1;
            share.threads += 1;
        }
        let pin = self.load_config.pin && part.threads <= cpus.len();
        let load_config = LoadConfig { pin, ..self.load_config.clone() };
        part.on_start = init_thread(&load_config, &[]);
        part
    }

    /// One line for the agent's log.
    fn describe(&self) -> String {
        let verb = if self.loads { "load" } else { "measure" };
        let Assignment { store, workload, agent, agents, .. } = self;
        let part = match self.measure_rate {
            Some(rate) => format!("at {} beside the agents that load", Rate(rate)),
            None => format!("part {} of {agents}", agent + 1),
        };
        format!("{verb} {store}, {}, {part}", workload.describe())
    }
}

/// An agent's report, besides the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentReport {
    tax: MeasuredTax,
    /// Readings of its machine and process, over its window.
    readings: Vec<Reading>,
    /// The levels of its knobs and their effects, as settings.
    knobs: RunSettings,
}

fn pack(report: &AgentReport, outcome: &PhaseOutcome) -> Result<Vec<u8>, String> {
    with_head(report, &outcome.to_bytes().map_err(|error| error.to_string())?)
}

fn unpack(bytes: &[u8]) -> Result<(AgentReport, PhaseOutcome), String> {
    let (report, outcome) = split_head(bytes)?;
    let outcome = PhaseOutcome::from_bytes(outcome).map_err(|error| error.to_string())?;
    Ok((report, outcome))
}

/// Length of the head, the head as JSON, and the rest.
fn with_head(head: &impl Serialize, rest: &[u8]) -> Result<Vec<u8>, String> {
    let head = serde_json::to_vec(head).map_err(|error| error.to_string())?;
    let length = u32::try_from(head.len()).map_err(|error| error.to_string())?;
    Ok([&length.to_le_bytes()[..], &head, rest].concat())
}

fn split_head<H: DeserializeOwned>(bytes: &[u8]) -> Result<(H, &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(TOO_SHORT)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, rest) = rest.split_at_checked(length).ok_or(TOO_SHORT)?;
    Ok((serde_json::from_slice(head).map_err(|error| error.to_string())?, rest))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{
        Arrivals, ConnectionConfig, Engine, LoadShape, Pacing, RateProfile, StopCondition,
    };
    use workload::WorkloadSpec;

    use super::*;
    use study::ServerTiming;

    fn assignment() -> Assignment {
        let pacing = Pacing::Open { rate: 0.1 + 0.2, arrivals: Arrivals::Pareto { shape: 0.154 } };
        let load_config = LoadConfig {
            shape: LoadShape {
                pacing,
                profile: RateProfile::parse("steps:0.5x@30s,2x@10s").ok(),
                warm_up: Some(Duration::from_millis(1500)),
                warm_up_rate: Some(1e5 / 3.0),
                until: StopCondition {
                    operations: None,
                    time: Some(Duration::from_nanos(12_345_678_901)),
                },
            },
            connections: ConnectionConfig {
                engine: Some(Engine::Epoll),
                ..ConnectionConfig::default()
            },
            // Only the coordinator times the servers.
            server_timing: ServerTiming::default(),
            ..LoadConfig::closed(5)
        };
        Assignment {
            store: "memcached://192.0.2.1:11211?protocol=binary".parse().unwrap(),
            workload: WorkloadSpec { seed: u64::MAX, ..WorkloadSpec::preset("etc").unwrap() },
            loads: false,
            load_config,
            agent: 1,
            agents: 2,
            measured: true,
            measure_rate: None,
            machine: MachineAssignment {
                knobs: vec![("ddio".to_owned(), "off".to_owned())],
                probes: vec!["counters".to_owned()],
            },
        }
    }

    #[test]
    fn an_assignment_survives_serialisation() {
        for name in WorkloadSpec::preset_names() {
            let given =
                Assignment { workload: WorkloadSpec::preset(name).unwrap(), ..assignment() };
            let text = serde_json::to_vec(&given).unwrap();
            assert_eq!(serde_json::from_slice::<Assignment>(&text).unwrap(), given, "{name}");
        }
    }

    #[test]
    fn an_agent_runs_its_share() {
        let stop = Arc::new(AtomicBool::new(false));
        let part = assignment().plan(&[0], &stop);
        assert_eq!(part.threads, 2);
        let share = part.share.unwrap();
        assert_eq!((share.client, share.clients), (1, 3));
        assert_eq!((share.first_thread, share.threads), (3, 6));
        let Pacing::Open { rate, .. } = part.shape.pacing else { panic!("it is open") };
        assert!((rate - 0.3 * 2.0 / 5.0).abs() < 1e-12);
        assert_eq!(part.shape.profile, assignment().load_config.shape.profile);
        assert!(part.keep_intervals);
    }

    #[test]
    fn an_agent_that_measures_is_one_more_client_at_its_own_rate() {
        let stop = Arc::new(AtomicBool::new(false));
        let plan = Assignment { measure_rate: Some(7.0), ..assignment() }.plan(&[0], &stop);
        assert_eq!(plan.threads, 1);
        let share = plan.share.unwrap();
        assert_eq!((share.client, share.clients), (2, 3));
        assert_eq!((share.first_thread, share.threads), (5, 6));
        let Pacing::Open { rate, arrivals } = plan.shape.pacing else { panic!("it is open") };
        assert_eq!((rate, arrivals), (7.0, Arrivals::Pareto { shape: 0.154 }));
        assert_eq!((plan.connections.count, plan.connections.depth), (1, 1));
        assert_eq!(
            (plan.shape.profile, plan.shape.until.time),
            (None, assignment().load_config.shape.until.time)
        );
    }

    #[test]
    fn a_report_survives_packing() {
        let report = AgentReport {
            tax: MeasuredTax { ns_per_op: 0.1 + 0.2, clock_ns: 3.0, verify_ns: 1e-9 },
            readings: Vec::new(),
            knobs: RunSettings::from([("knob.ddio".to_owned(), "off".to_owned())]),
        };
        let outcome = PhaseOutcome { operations: 7, seconds: 1.0 / 3.0, ..PhaseOutcome::default() };
        let bytes = pack(&report, &outcome).unwrap();
        assert_eq!(unpack(&bytes).unwrap(), (report, outcome));
        for length in 0..bytes.len() {
            assert!(unpack(&bytes[..length]).is_err());
        }
    }
}
