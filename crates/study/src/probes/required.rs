//! Signals that a study cannot do without.

use std::time::Duration;

use host::{Context, PROBES, RunWatch};
use model::suggest::hint;
use model::{Reading, ReadingValue};

use super::ProbesConfig;
use crate::error::StudyError;

/// Signals derived from readings when a run has ended.
const DERIVED: [&str; 5] =
    ["cpu_s_per_mop", "ops_per_joule", "joules_per_op", "ops_per_joule_net", "joules_per_op_net"];
/// Prefixes whose rest depends on the machine or the study.
const OPEN: [&str; 8] = [
    "residency.",
    "event.",
    "ipc.",
    "energy.",
    "power.",
    "simulated.",
    "ops_per_joule",
    "joules_per_op",
];
/// Signals of a server's process.
const OF_SERVERS: &str = "server.";

/// Long enough for a counter of energy to move.
const TRIAL: Duration = Duration::from_millis(120);

/// Refuses a name that no run has.
pub(crate) fn check_name(signal: &str) -> Result<(), String> {
    let known = PROBES.iter().flat_map(|spec| spec.signals).map(|signal| signal.name);
    let known = known.chain(DERIVED).chain(crate::server_side::signals());
    let open = OPEN.iter().any(|open| signal.starts_with(open) && signal.len() > open.len());
    match open || known.clone().any(|name| name == signal) {
        true => Ok(()),
        false => Err(format!("there is no signal `{signal}`; {}", hint(signal, known))),
    }
}

/// When required signals are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckTime {
    /// Before anything is loaded or started: signals of servers are not known yet.
    Everything,
    /// Before one run.
    Run,
}

/// Probes that read a server's process where there is one.
const OF_PROCESSES: [&str; 2] = ["counters", "software"];

/// Checks that the probes can read required signals. Derived signals are known only when a run has
/// ended.
pub(crate) fn check(
    probes: &ProbesConfig,
    context: &Context,
    time: CheckTime,
) -> Result<(), StudyError> {
    let known = PROBES
        .iter()
        .filter(|spec| time == CheckTime::Run || !OF_PROCESSES.contains(&spec.name))
        .flat_map(|spec| spec.signals);
    let named = |signal: &&String| known.clone().any(|known| known.name == signal.as_str());
    let of_probes: Vec<String> = probes.require.iter().filter(named).cloned().collect();
    if of_probes.is_empty() {
        return Ok(());
    }
    let watch = RunWatch::begin(&probes.root, context);
    std::thread::sleep(TRIAL);
    let readings = watch.end().readings;
    match missing(&of_probes, &readings) {
        Some(words) => Err(StudyError::Failed(words)),
        None => Ok(()),
    }
}

/// The first required signal that is not among the readings, or has no value, in words.
pub(crate) fn missing(required: &[String], readings: &[Reading]) -> Option<String> {
    required.iter().find_map(|signal| {
        let found = readings.iter().find(|reading| reading.signal == *signal);
        let why = match found.map(|reading| &reading.answer) {
            Some(ReadingValue::Value(_)) => return None,
            Some(ReadingValue::Unavailable { reason, remedy: Some(remedy) }) => {
                format!("{reason}; to do: {remedy}")
            }
            Some(ReadingValue::Unavailable { reason, remedy: None }) => reason.clone(),
            None if signal.starts_with(OF_SERVERS) => {
                "no server was watched for it; measure a server that runs on this machine, and see \
                 --server-latency (`server_latency` of a study)"
                    .to_owned()
            }
            None => "this machine has no such signal".to_owned(),
        };
        Some(format!("`{signal}` is required and unavailable: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_signals_are_checked() {
        for name in [
            "energy.total",
            "ipc",
            "residency.C6",
            "event.stalls",
            "ops_per_joule",
            "nic.sent",
            "server.cpu",
            "server.latency",
            "server.syscalls_per_mop",
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let why = check_name("server.latncy").unwrap_err();
        assert!(why.contains("did you mean `server.latency`?"), "{why}");
        let why = check_name("ipcc").unwrap_err();
        assert!(why.contains("did you mean `ipc`?"), "{why}");
        assert!(check_name("residency.").is_err());
    }
}
