//! Whether the probes can read what a study cannot do without.

use std::time::Duration;

use host::{Context, PROBES, RunWatch};
use model::{Reading, ReadingValue};
use study::ProbesConfig;

use crate::error::ExecuteError;
use crate::profiled_pass;

/// Signals of a server's process.
const OF_SERVERS: &str = "server.";
/// Long enough for a counter of energy to move.
const TRIAL: Duration = Duration::from_millis(120);

/// Whether what is required can be read at all, before anything is loaded or started.
pub(crate) fn check_required(probes: &ProbesConfig) -> Result<(), ExecuteError> {
    if probes.profiling.is_some() {
        profiled_pass::check()?;
    }
    check(probes, &probes.context(&[], Vec::new(), Vec::new()), CheckTime::Everything)
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
) -> Result<(), ExecuteError> {
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
        Some(words) => Err(ExecuteError::Failed(words)),
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
