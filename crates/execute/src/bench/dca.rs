//! A simulated last-level cache with direct cache access as a run of its own phase. All its figures
//! are readings of origin `simulated`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cachesim::outcome::SimOutcome;
use model::{Origin, Reading, ReadingValue, SIMULATE, Scope, Unit};
use study::DcaJob;

use super::outcome::RunFigures;
use crate::error::ExecuteError;

/// How often a stop is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Simulates; None where it was stopped.
///
/// # Errors
/// The simulation is invalid.
pub(super) fn run(
    job: &DcaJob,
    repeat: u32,
    stop: &AtomicBool,
) -> Result<Option<RunFigures>, ExecuteError> {
    let (machine, policy) = (job.machine.clone(), job.policy);
    let mut traffic = job.traffic.clone();
    traffic.seed = job.seed.wrapping_add(u64::from(repeat.saturating_sub(1)));
    let (sender, receiver) = channel();
    // The simulation cannot be interrupted: after a stop its thread runs on until the process ends.
    thread::spawn(move || {
        // The receiver is gone after a stop.
        let _ = sender.send(cachesim::simulate(&machine, &traffic, policy));
    });
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match receiver.recv_timeout(LOOK) {
            Ok(Ok(outcome)) => return Ok(Some(figures(&outcome))),
            Ok(Err(error)) => {
                return Err(ExecuteError::Request(format!("[{SIMULATE}.dca]: {error}")));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let words = format!("[{SIMULATE}.dca]: the simulation ended without a result");
                return Err(ExecuteError::Failed(words));
            }
        }
    }
}

/// A simulation has no operations, only readings.
fn figures(outcome: &SimOutcome) -> RunFigures {
    let about = format!("{}, traffic {}", outcome.machine, outcome.traffic);
    let mut readings = Vec::new();
    let mut put = |signal: &str, value: Option<f64>, unit, what: &str| {
        readings.push(Reading {
            signal: format!("simulated.{signal}"),
            answer: match value {
                Some(value) => ReadingValue::Value(value),
                None => ReadingValue::Unavailable {
                    reason: format!("nothing in the simulation of {about} has {what}"),
                    remedy: None,
                },
            },
            unit,
            scope: Scope::Component,
            source: format!("{about}: {what}"),
            window_s: outcome.window_s,
            origin: Origin::Simulated,
        });
    };
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    let (ratio, rate) = (Unit::Ratio, Unit::OpsPerSecond);
    put("throughput", Some(outcome.throughput_packets_s), rate, "packets that were finished");
    put("offered", Some(outcome.offered_packets_s), rate, "packets that arrived");
    put("dropped", Some(outcome.drops.share), ratio, "packets that found no room");
    let missed = share(outcome.worker.llc_miss_percent);
    put("llc.miss_ratio", missed, ratio, "accesses of the workers to the last-level cache");
    let found = share(outcome.pcie_write_hit_percent);
    put("pcie.write_hit_ratio", found, ratio, "lines that the card wrote");
    let found = share(outcome.pcie_read_hit_percent);
    put("pcie.read_hit_ratio", found, ratio, "lines that the card read");
    let memory = &outcome.memory;
    let bytes_s = Unit::BytesPerSecond;
    put("memory.read", Some(memory.read_bytes_s), bytes_s, "bytes read from memory");
    put("memory.written", Some(memory.write_bytes_s), bytes_s, "bytes written to memory");
    let traffic = memory.read_bytes_s + memory.write_bytes_s;
    put("memory.traffic", Some(traffic), bytes_s, "bytes to and from memory");
    let latency = outcome.latency_us.as_ref();
    for (point, us) in [
        ("mean", latency.map(|latency| latency.mean)),
        ("p50", latency.map(|latency| latency.p50)),
        ("p99", latency.map(|latency| latency.p99)),
        ("p99_9", latency.map(|latency| latency.p999)),
    ] {
        let seconds = us.map(|us| us / 1e6);
        put(&format!("latency.{point}"), seconds, Unit::Seconds, "packets that were finished");
    }
    put("busy", Some(outcome.worker_busy), ratio, "time of the workers");
    for neighbour in &outcome.neighbours {
        let name = format!("neighbour.{}", neighbour.name);
        let missed = share(neighbour.group.llc_miss_percent);
        put(&format!("{name}.llc.miss_ratio"), missed, ratio, "accesses of the neighbour");
        let accesses = Some(neighbour.group.accesses_s);
        put(&format!("{name}.accesses"), accesses, rate, "accesses of the neighbour");
    }
    RunFigures { threads: outcome.workers, readings, ..RunFigures::default() }
}

#[cfg(test)]
mod tests {
    use study::{Activity, Bench, Plan, StudyText};

    use super::*;

    fn job(table: &str) -> DcaJob {
        let text = format!("name = \"s\"\n[simulate.dca]\n{table}\n");
        let source = StudyText::new("s.toml", &text);
        let plan = Plan::of(&source, "data".as_ref(), &host::Root::live()).unwrap();
        let (_, step) = plan.steps().next().unwrap();
        match &step.activity {
            Activity::Bench(Bench::Simulate(job)) => (**job).clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_figures_have_origin_simulated() {
        let job = job("traffic = \"flow\"\nstride = 256\npacket = 512\nrate = \"1M\"");
        let stop = AtomicBool::new(false);
        let figures = run(&job, 1, &stop).unwrap().unwrap();
        assert_eq!((figures.operations, figures.latency.is_some()), (0, false));
        assert!(!figures.readings.is_empty());
        for reading in &figures.readings {
            assert_eq!(reading.origin, Origin::Simulated, "{}", reading.signal);
            assert!(reading.signal.starts_with("simulated."), "{}", reading.signal);
        }
        let value = |figures: &RunFigures, signal: &str| {
            figures.readings.iter().find(|reading| reading.signal == signal).unwrap().value()
        };
        let throughput = value(&figures, "simulated.throughput").unwrap();
        assert!((throughput / 1e6 - 1.0).abs() < 0.01, "{throughput}");
    }

    #[test]
    fn a_stop_ends_the_simulation() {
        let job = job("");
        assert!(run(&job, 1, &AtomicBool::new(true)).unwrap().is_none());
    }
}
