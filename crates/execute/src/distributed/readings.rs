//! Readings of the client machines of a run.

use std::time::Duration;

use agents::AgentInfo;
use drive::PhaseOutcome;
use host::ProbeChoice;
use model::signal::{CLIENT_LLC_MISS_RATIO, CLIENT_LLC_MISSES, CLIENT_LLC_REFERENCES, Signal};
use model::{Address, Origin, Reading, ReadingValue, RunSettings, Scope, Unit};

use super::AgentReport;

/// One agent of a run.
#[derive(Debug, Clone)]
pub(crate) struct AgentReadings {
    pub(crate) address: Address,
    /// Its machine's name.
    pub(crate) machine: String,
    /// Completed operations in its last progress report.
    pub(crate) operations: u64,
    /// None where the run did not end.
    pub(crate) result: Option<(AgentReport, PhaseOutcome)>,
}

impl AgentReadings {
    /// Of an agent that has not run yet.
    pub(crate) fn of(info: &AgentInfo) -> AgentReadings {
        AgentReadings {
            address: info.address.clone(),
            machine: info.machine.clone(),
            operations: 0,
            result: None,
        }
    }
}

fn reading(signal: String, (unit, value): (Unit, f64), source: String, window_s: f64) -> Reading {
    Reading {
        signal,
        answer: ReadingValue::Value(value),
        unit,
        scope: Scope::Client,
        source,
        window_s,
        origin: Origin::Measured,
    }
}

/// Each agent's own figures, by its number as in the setting `agents`, from 1, and the bound on
/// the spread of the start.
pub(super) fn of_each(
    agents: &[AgentReadings],
    bound: Option<Duration>,
    probes: &ProbeChoice,
) -> Vec<Reading> {
    let mut all = Vec::new();
    if let Some(bound) = bound {
        let what = "half of the longest of the agents' shortest round trips: no agent started \
                    further from the common instant";
        let value = (Unit::Seconds, bound.as_secs_f64());
        all.push(reading("agents.clock_bound".to_owned(), value, what.to_owned(), 0.0));
    }
    for (number, agent) in (1..).zip(agents) {
        let agent_name = format!("agent {} on `{}`", agent.address, agent.machine);
        let seconds = agent.result.as_ref().map_or(0.0, |(_, outcome)| outcome.seconds);
        let mut put = |name: &str, unit, what: &str, value: f64| {
            let signal = format!("agent.{number}.{name}");
            all.push(reading(signal, (unit, value), format!("{agent_name}: {what}"), seconds));
        };
        let Some((report, outcome)) = &agent.result else {
            let what = "operations in its last progress report";
            put("operations", Unit::Count, what, agent.operations as f64);
            continue;
        };
        let what = "operations that ended in its window";
        put("operations", Unit::Count, what, outcome.operations as f64);
        let what = "share of its threads' time not spent waiting for a request to be due";
        put("busy", Unit::Ratio, what, outcome.busy_share);
        put("achieved_rate", Unit::OpsPerSecond, "answers / its window", rate(outcome));
        const OWN: [&str; 4] = ["cpu.user", "cpu.system", "machine.steal", "machine.neighbours"];
        let shown = |reading: &&Reading| {
            OWN.contains(&reading.signal.as_str()) || probes.names(&reading.signal)
        };
        for found in report.readings.iter().filter(shown) {
            let source = format!("{agent_name}: {}", found.source);
            let signal = format!("agent.{number}.{}", found.signal);
            all.push(Reading { signal, source, ..found.clone() });
        }
    }
    all
}

fn rate(outcome: &PhaseOutcome) -> f64 {
    let (answers, seconds) = match outcome.due {
        0 => (outcome.operations, outcome.seconds),
        _ => (outcome.answered_in_time, outcome.window_s),
    };
    answers as f64 / seconds.max(1e-9)
}

/// The agents' load where the coordinator measures, each signal under `load.`.
pub(super) fn of_load(load: &PhaseOutcome) -> Vec<Reading> {
    let put = |name: &str, unit, what: &str, value: f64| {
        let source = format!("all agents together; this run does not count their requests: {what}");
        reading(format!("load.{name}"), (unit, value), source, load.seconds)
    };
    vec![
        put("operations", Unit::Count, "operations", load.operations as f64),
        put("achieved_rate", Unit::OpsPerSecond, "answers / their window", rate(load)),
        put("busy", Unit::Ratio, "share of their threads' time", load.busy_share),
    ]
}

/// The reports of all agents; none where an agent's is missing.
fn reports(agents: &[AgentReadings]) -> Option<Vec<&AgentReport>> {
    agents.iter().map(|agent| agent.result.as_ref().map(|(report, _)| report)).collect()
}

/// The levels and effects of the agents' knobs. Effects that differ are all named.
pub(super) fn knobs_of_agents(agents: &[AgentReadings]) -> RunSettings {
    let mut settings = RunSettings::new();
    let reports = agents.iter().filter_map(|agent| agent.result.as_ref());
    for (name, value) in reports.flat_map(|(report, _)| &report.knobs) {
        let all: &mut String = settings.entry(format!("agents.{name}")).or_default();
        if !all.split(", ").any(|known| known == value) {
            let parted = if all.is_empty() { "" } else { ", " };
            all.push_str(&format!("{parted}{value}"));
        }
    }
    settings
}

/// The last-level misses of all clients together, where their counters were requested.
pub(super) fn of_clients(agents: &[AgentReadings], probes: &ProbeChoice) -> Vec<Reading> {
    let Some(reports) = reports(agents) else { return Vec::new() };
    let Some((first, others)) = reports.split_first() else { return Vec::new() };
    let sum = |name: &str| {
        let one = first.readings.iter().find(|one| one.signal == name && probes.names(name));
        one.map(|one| with_others(one, others))
    };
    let (Some(references), Some(misses)) = (sum(LLC_REFERENCES), sum(LLC_MISSES)) else {
        return Vec::new();
    };
    let ratio = match (misses.value(), references.value()) {
        (Some(misses), Some(references)) if references > 0.0 => {
            ReadingValue::Value(misses / references)
        }
        (Some(_), Some(_)) => ReadingValue::Unavailable {
            reason: "the clients' caches counted no references".to_owned(),
            remedy: None,
        },
        (None, _) => misses.answer.clone(),
        (_, None) => references.answer.clone(),
    };
    let put = |signal: &Signal, answer: &ReadingValue| Reading {
        source: misses.source.clone(),
        ..signal.answered(answer.clone(), misses.window_s)
    };
    vec![
        put(&CLIENT_LLC_REFERENCES, &references.answer),
        put(&CLIENT_LLC_MISSES, &misses.answer),
        put(&CLIENT_LLC_MISS_RATIO, &ratio),
    ]
}

/// Signals of the counters.
const LLC_REFERENCES: &str = "llc.references";
const LLC_MISSES: &str = "llc.misses";

/// Combines the agents' readings: counts are added, of shares the largest is taken. Empty where an
/// agent's readings are missing. Those of probes that were requested are each agent's own.
pub(super) fn sum_of_agents(agents: &[AgentReadings], probes: &ProbeChoice) -> Vec<Reading> {
    let Some(reports) = reports(agents) else { return Vec::new() };
    let Some((first, others)) = reports.split_first() else { return Vec::new() };
    let of_clients = |reading: &&Reading| {
        matches!(reading.scope, Scope::Process | Scope::Machine | Scope::Harness)
            && !probes.names(&reading.signal)
    };
    first.readings.iter().filter(of_clients).map(|one| with_others(one, others)).collect()
}

fn with_others(one: &Reading, others: &[&AgentReport]) -> Reading {
    let share = one.unit == Unit::Ratio;
    let mut whole = one.clone();
    for report in others {
        let other = report.readings.iter().find(|other| other.signal == one.signal);
        whole.answer = match (&whole.answer, other.map(|other| &other.answer)) {
            (ReadingValue::Value(a), Some(ReadingValue::Value(b))) => {
                ReadingValue::Value(if share { a.max(*b) } else { a + b })
            }
            (ReadingValue::Value(_), Some(unavailable)) => unavailable.clone(),
            (ReadingValue::Value(_), None) => ReadingValue::Unavailable {
                reason: format!("an agent did not read {}", one.signal),
                remedy: None,
            },
            (unavailable, _) => unavailable.clone(),
        };
    }
    let how = if share { "the largest of the agents'" } else { "sum of the agents'" };
    whole.source = format!("{how}: {}", one.source);
    whole.scope = Scope::Client;
    whole
}

#[cfg(test)]
mod tests {
    use drive::MeasuredTax;

    use super::*;

    fn agent(readings: Vec<Reading>) -> AgentReadings {
        let tax = MeasuredTax { ns_per_op: 1.0, clock_ns: 1.0, verify_ns: 1.0 };
        let outcome = PhaseOutcome {
            operations: 30,
            seconds: 2.0,
            busy_share: 0.25,
            ..PhaseOutcome::default()
        };
        AgentReadings {
            address: Address::Tcp { host: "h".to_owned(), port: 1 },
            machine: "box".to_owned(),
            operations: 0,
            result: Some((AgentReport { tax, readings, knobs: RunSettings::new() }, outcome)),
        }
    }

    fn of(signal: &str, unit: Unit, value: f64) -> Reading {
        let scope = if unit == Unit::Ratio { Scope::Machine } else { Scope::Process };
        let made = reading(signal.to_owned(), (unit, value), "/proc".to_owned(), 2.0);
        Reading { scope, ..made }
    }

    #[test]
    fn counts_are_added_and_the_largest_share_is_taken() {
        let agents = [(1.0, 0.1), (2.0, 0.05)].map(|(cpu, steal)| {
            let steal = of("machine.steal", Unit::Ratio, steal);
            agent(vec![of("cpu.user", Unit::Seconds, cpu), steal])
        });
        let both = sum_of_agents(&agents, &ProbeChoice::Off);
        assert_eq!(both[0].value(), Some(3.0));
        assert_eq!(
            (both[0].scope, both[0].source.as_str()),
            (Scope::Client, "sum of the agents': /proc")
        );
        assert_eq!(both[1].value(), Some(0.1));
    }

    #[test]
    fn missing_readings_are_unavailable() {
        let agents = [agent(vec![of("cpu.user", Unit::Seconds, 1.0)]), agent(Vec::new())];
        assert_eq!(sum_of_agents(&agents, &ProbeChoice::Off)[0].value(), None);
        let lost = AgentReadings { result: None, operations: 5, ..agent(Vec::new()) };
        let with_lost = [agent(Vec::new()), lost.clone()];
        assert!(sum_of_agents(&with_lost, &ProbeChoice::Off).is_empty());
        let readings = of_each(&[lost], None, &ProbeChoice::Off);
        assert_eq!(
            (readings[0].signal.as_str(), readings[0].value()),
            ("agent.1.operations", Some(5.0))
        );
    }

    #[test]
    fn every_agent_has_its_own_readings() {
        let agents = [agent(Vec::new()), agent(Vec::new())];
        let readings = of_each(&agents, Some(Duration::from_micros(20)), &ProbeChoice::Off);
        let value =
            |signal: &str| readings.iter().find(|r| r.signal == signal).and_then(Reading::value);
        assert_eq!(value("agents.clock_bound"), Some(2e-5));
        assert_eq!(value("agent.2.busy"), Some(0.25));
        assert_eq!(value("agent.1.achieved_rate"), Some(15.0));
        assert!(readings[1].source.starts_with("agent h:1 on `box`: "));
    }

    #[test]
    fn requested_probes_are_of_the_clients() {
        let agents = [(100.0, 30.0), (300.0, 10.0)].map(|(references, misses)| {
            agent(vec![
                of("cpu.user", Unit::Seconds, 1.0),
                of("llc.references", Unit::Count, references),
                of("llc.misses", Unit::Count, misses),
            ])
        });
        let mut requested = ProbeChoice::Off;
        assert!(of_clients(&agents, &requested).is_empty());
        requested.take("counters").unwrap();
        let all = of_clients(&agents, &requested);
        let values: Vec<(&str, Option<f64>)> =
            all.iter().map(|one| (one.signal.as_str(), one.value())).collect();
        assert_eq!(
            values,
            [
                ("client.llc.references", Some(400.0)),
                ("client.llc.misses", Some(40.0)),
                ("client.llc.miss_ratio", Some(0.1)),
            ]
        );
        // The server's machine has signals of these names.
        let names: Vec<String> =
            sum_of_agents(&agents, &requested).into_iter().map(|one| one.signal).collect();
        assert_eq!(names, ["cpu.user"]);
        let each = of_each(&agents, None, &requested);
        assert!(each.iter().any(|one| one.signal == "agent.2.llc.misses"));
    }

    #[test]
    fn effects_that_differ_are_all_named() {
        let with = |effect: &str| {
            let mut one = agent(Vec::new());
            if let Some((report, _)) = &mut one.result {
                report.knobs.insert("knob.ddio.effect".to_owned(), effect.to_owned());
            }
            one
        };
        let settings = knobs_of_agents(&[with("proven"), with("unverified"), with("proven")]);
        assert_eq!(settings["agents.knob.ddio.effect"], "proven, unverified");
    }
}
