//! Signals that a study cannot do without.

use std::time::Duration;

use host::{Context, PROBES, Watch};
use model::suggest::hint;
use model::{Reading, ReadingValue};

use super::ProbesConfig;
use crate::error::StudyError;

/// What follows from probes' readings when a run has ended.
const DERIVED: [&str; 5] =
    ["cpu_s_per_mop", "ops_per_joule", "joules_per_op", "ops_per_joule_net", "joules_per_op_net"];
/// Names that go on with what only the machine or the study can name.
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

/// When it is looked at whether a required signal is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckTime {
    /// Anything is loaded or started: what speaks of a server is not known then.
    Everything,
    /// One run.
    Run,
}

/// Probes that speak of a server's process where there is one.
const OF_PROCESSES: [&str; 2] = ["counters", "software"];

/// Looks whether the probes can read what is required of them. What is derived from them is known
/// only when a run has ended.
pub(crate) fn check(
    probes: &ProbesConfig,
    context: &Context,
    before: CheckTime,
) -> Result<(), StudyError> {
    let known = PROBES
        .iter()
        .filter(|spec| before == CheckTime::Run || !OF_PROCESSES.contains(&spec.name))
        .flat_map(|spec| spec.signals);
    let named = |signal: &&String| known.clone().any(|known| known.name == signal.as_str());
    let of_probes: Vec<String> = probes.require.iter().filter(named).cloned().collect();
    if of_probes.is_empty() {
        return Ok(());
    }
    let watch = Watch::begin(&probes.root, context);
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
                "no server was watched for it; ask a server that runs on this machine, and see \
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
