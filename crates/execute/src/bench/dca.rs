//! A simulated last-level cache with direct cache access as a run of its own phase. All its figures
//! are readings of origin `simulated`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cachesim::outcome::SimOutcome;
use model::signal::{
    MODELLED_ENERGY_DELAY, MODELLED_ENERGY_PER_PACKET, SIMULATED_BUSY, SIMULATED_DROPPED,
    SIMULATED_LATENCY, SIMULATED_LLC_MISS_RATIO, SIMULATED_MEMORY_READ, SIMULATED_MEMORY_TRAFFIC,
    SIMULATED_MEMORY_WRITTEN, SIMULATED_NEIGHBOUR_ACCESSES, SIMULATED_NEIGHBOUR_MISS_RATIO,
    SIMULATED_OFFERED, SIMULATED_READ_HIT_RATIO, SIMULATED_THROUGHPUT, SIMULATED_WRITE_HIT_RATIO,
    Signal,
};
use model::{Reading, ReadingValue, SIMULATE};
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

/// A simulation has no operations, only readings; what its accesses cost is modelled.
fn figures(outcome: &SimOutcome) -> RunFigures {
    let about = format!("{}, traffic {}", outcome.machine, outcome.traffic);
    let mut readings = Vec::new();
    let mut put = |signal: Signal, part: &str, value: Option<f64>| {
        let answer = match value {
            Some(value) => ReadingValue::Value(value),
            None => ReadingValue::Unavailable {
                reason: format!("the simulation of {about} has no {}", signal.source),
                remedy: None,
            },
        };
        readings.push(Reading {
            signal: signal.name_of(part),
            source: format!("{about}: {}", signal.source),
            ..signal.answered(answer, outcome.window_s)
        });
    };
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    put(SIMULATED_THROUGHPUT, "", Some(outcome.throughput_packets_s));
    put(SIMULATED_OFFERED, "", Some(outcome.offered_packets_s));
    put(SIMULATED_DROPPED, "", Some(outcome.drops.share));
    put(SIMULATED_LLC_MISS_RATIO, "", share(outcome.worker.llc_miss_percent));
    put(SIMULATED_WRITE_HIT_RATIO, "", share(outcome.pcie_write_hit_percent));
    put(SIMULATED_READ_HIT_RATIO, "", share(outcome.pcie_read_hit_percent));
    let memory = &outcome.memory;
    put(SIMULATED_MEMORY_READ, "", Some(memory.read_bytes_s));
    put(SIMULATED_MEMORY_WRITTEN, "", Some(memory.write_bytes_s));
    put(SIMULATED_MEMORY_TRAFFIC, "", Some(memory.read_bytes_s + memory.write_bytes_s));
    let latency = outcome.latency_us.as_ref();
    for (point, us) in [
        ("mean", latency.map(|latency| latency.mean)),
        ("p50", latency.map(|latency| latency.p50)),
        ("p99", latency.map(|latency| latency.p99)),
        ("p99_9", latency.map(|latency| latency.p999)),
    ] {
        put(SIMULATED_LATENCY, point, us.map(|us| us / 1e6));
    }
    put(SIMULATED_BUSY, "", Some(outcome.worker_busy));
    for neighbour in &outcome.neighbours {
        let (name, group) = (neighbour.name.as_str(), &neighbour.group);
        put(SIMULATED_NEIGHBOUR_MISS_RATIO, name, share(group.llc_miss_percent));
        put(SIMULATED_NEIGHBOUR_ACCESSES, name, Some(group.accesses_s));
    }
    let energy = outcome.energy.as_ref();
    put(MODELLED_ENERGY_PER_PACKET, "", energy.map(|energy| energy.nj_per_packet * 1e-9));
    put(MODELLED_ENERGY_DELAY, "", energy.map(|energy| energy.energy_delay_nj_us * 1e-15));
    RunFigures { threads: outcome.workers, readings, ..RunFigures::default() }
}

#[cfg(test)]
mod tests {
    use model::Origin;
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
    fn all_figures_have_origin_simulated_and_energy_is_modelled() {
        let job = job("traffic = \"flow\"\nstride = 256\npacket = 512\nrate = \"1M\"");
        let stop = AtomicBool::new(false);
        let figures = run(&job, 1, &stop).unwrap().unwrap();
        assert_eq!((figures.operations, figures.latency.is_some()), (0, false));
        assert!(!figures.readings.is_empty());
        for reading in &figures.readings {
            let is_modelled = reading.signal.starts_with("modelled.energy_");
            let origin = if is_modelled { Origin::Modelled } else { Origin::Simulated };
            assert_eq!(reading.origin, origin, "{}", reading.signal);
            assert!(is_modelled || reading.signal.starts_with("simulated."), "{}", reading.signal);
        }
        let value = |figures: &RunFigures, signal: &str| {
            figures.readings.iter().find(|reading| reading.signal == signal).unwrap().value()
        };
        let throughput = value(&figures, "simulated.throughput").unwrap();
        assert!((throughput / 1e6 - 1.0).abs() < 0.01, "{throughput}");
        let energy = value(&figures, "modelled.energy_per_packet").unwrap();
        // Between the eight lines of a packet in the cache and twice as many in memory.
        assert!((8.0 * 0.8e-9..2.0 * 10.0 * 17e-9).contains(&energy), "{energy}");
        let delay = value(&figures, "simulated.latency.mean").unwrap();
        let product = value(&figures, "modelled.energy_delay").unwrap();
        assert!((product / (energy * delay) - 1.0).abs() < 1e-6, "{product}");
    }

    #[test]
    fn a_stop_ends_the_simulation() {
        let job = job("");
        assert!(run(&job, 1, &AtomicBool::new(true)).unwrap().is_none());
    }
}
