//! Load from several client machines: assignments of agents and their results.

mod agent;
mod coordinator;
mod permissions;
mod readings;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drive::{LoadPlan, MeasuredTax, PhaseKind, PhaseOutcome};
use model::Reading;
use serde::{Deserialize, Serialize};
use store::StoreUrl;
use study::LoadConfig;

use crate::load_plan::{init_thread, load_plan};

pub use agent::AgentWork;
pub(crate) use coordinator::{AgentPool, AgentRun, AgentRunResult};
pub use permissions::{AgentPermissions, AllowedServer};

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
    /// Another client, the coordinator, takes its part of the stream too.
    measured: bool,
}

impl Assignment {
    fn phase(&self) -> PhaseKind {
        if self.loads { PhaseKind::Load } else { PhaseKind::Mix }
    }

    /// This agent's part, on a machine with so many CPUs.
    fn plan(&self, cpus: &[u32], stop: &Arc<AtomicBool>) -> LoadPlan {
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
        format!("{verb} {store}, {}, part {} of {agents}", workload.describe(), agent + 1)
    }
}

/// An agent's report, besides the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentReport {
    tax: MeasuredTax,
    /// Readings of its machine and process, over its window.
    readings: Vec<Reading>,
}

/// Length of the report, the report, and the outcome's bytes.
fn pack(report: &AgentReport, outcome: &PhaseOutcome) -> Result<Vec<u8>, String> {
    let head = serde_json::to_vec(report).map_err(|error| error.to_string())?;
    let length = u32::try_from(head.len()).map_err(|error| error.to_string())?;
    let outcome = outcome.to_bytes().map_err(|error| error.to_string())?;
    Ok([&length.to_le_bytes()[..], &head, &outcome].concat())
}

fn unpack(bytes: &[u8]) -> Result<(AgentReport, PhaseOutcome), String> {
    let short = || "it ends too early".to_owned();
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, outcome) = rest.split_at_checked(length).ok_or_else(short)?;
    let report = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    let outcome = PhaseOutcome::from_bytes(outcome).map_err(|error| error.to_string())?;
    Ok((report, outcome))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Arrivals, ConnectionConfig, Engine, Pacing, StopCondition};
    use workload::WorkloadSpec;

    use super::*;
    use study::{ServerSpec, ServerTiming};

    fn assignment() -> Assignment {
        let pacing = Pacing::Open { rate: 0.1 + 0.2, arrivals: Arrivals::Pareto { shape: 0.154 } };
        let load_config = LoadConfig {
            pacing,
            warm_up: Some(Duration::from_millis(1500)),
            warm_up_rate: Some(1e5 / 3.0),
            until: StopCondition {
                operations: None,
                time: Some(Duration::from_nanos(12_345_678_901)),
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
        let Pacing::Open { rate, .. } = part.pacing else { panic!("it is open") };
        assert!((rate - 0.3 * 2.0 / 5.0).abs() < 1e-12);
        assert!(part.keep_intervals);
    }

    #[test]
    fn impossible_runs_are_refused_with_the_key() {
        let agents = |count: usize| AgentsConfig {
            hosts: (0..count).map(|n| Address::Tcp { host: format!("h{n}"), port: 9377 }).collect(),
            secrets: CredentialFiles {
                files: TlsFiles::default(),
                token_file: None,
                token_variable: String::new(),
            },
            measure: None,
        };
        let plan = |store: &str, load_config: LoadConfig| {
            let spec = WorkloadSpec::preset("ycsb-c").unwrap();
            let load_configs = [load_config];
            Plan::single(
                (store.parse().unwrap(), None),
                "c",
                spec,
                Phase::Measure,
                &load_configs,
                1,
            )
            .unwrap()
        };
        let server = "memcached://192.0.2.1";
        let refused = |store: &str, load_config: LoadConfig, agents: AgentsConfig| {
            plan(store, load_config).with_agents(agents).unwrap_err().0
        };
        assert_eq!(refused("null", LoadConfig::closed(2), agents(2)), "agents");
        // A server that is started here, at an address that others reach, or not.
        let started = |listen: &str| {
            let wanted = server::launch::ServerSettings::default().with("listen", listen);
            let order = ServerSpec::new("memcached", wanted).unwrap();
            let named: StoreUrl = server.parse().unwrap();
            let store = StoreUrl { servers: Vec::new(), ..named };
            let (spec, load_configs) =
                (WorkloadSpec::preset("ycsb-c").unwrap(), [LoadConfig::closed(2)]);
            Plan::single((store, Some(order)), "c", spec, Phase::Measure, &load_configs, 1)
                .unwrap()
                .with_agents(agents(2))
        };
        assert!(started("192.0.2.7").is_ok());
        for listen in ["127.0.0.1", "0.0.0.0"] {
            let (key, why) = started(listen).unwrap_err();
            assert!(key == "agents" && why.contains("`listen`"), "{key}: {why}");
        }
        assert_eq!(refused(server, LoadConfig::closed(1), agents(2)), "threads");
        let steady = Some((Duration::from_secs(1), 25));
        assert_eq!(
            refused(server, LoadConfig { steady, ..LoadConfig::closed(2) }, agents(2)),
            "steady"
        );
        let until = StopCondition { operations: Some(100), time: None };
        let counted = LoadConfig { until, ..LoadConfig::closed(2) };
        assert_eq!(refused(server, counted.clone(), agents(2)), "operations");
        let measuring = AgentsConfig { measure: Some(100.0), ..agents(1) };
        assert_eq!(refused(server, counted, measuring), "measure_rate");
        let plan = plan(server, LoadConfig::closed(3)).with_agents(agents(2)).unwrap();
        let settings = &plan.segments[0].steps[0].settings;
        assert_eq!(settings["agents"], "h0:9377,h1:9377");
        assert_eq!(settings["agents.count"], "2");
    }

    #[test]
    fn hosts_are_parsed_and_mistakes_named() {
        let hosts = AgentsConfig::hosts(["a", "b:1"]).unwrap();
        assert_eq!(hosts[0].to_string(), "a:9377");
        for (texts, why) in
            [(&["a", "a"][..], "twice"), (&["/x"], "TCP"), (&["a:x"], "port"), (&[], "no agent")]
        {
            let error = AgentsConfig::hosts(texts.iter().copied()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_report_survives_packing() {
        let report = AgentReport {
            tax: MeasuredTax { ns_per_op: 0.1 + 0.2, clock_ns: 3.0, verify_ns: 1e-9 },
            readings: Vec::new(),
        };
        let outcome = PhaseOutcome { operations: 7, seconds: 1.0 / 3.0, ..PhaseOutcome::default() };
        let bytes = pack(&report, &outcome).unwrap();
        assert_eq!(unpack(&bytes).unwrap(), (report, outcome));
        for length in 0..bytes.len() {
            assert!(unpack(&bytes[..length]).is_err());
        }
    }
}
