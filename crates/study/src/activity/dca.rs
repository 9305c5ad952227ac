//! A simulated last-level cache with direct cache access as a run of its own phase. All its figures
//! are readings of origin `simulated`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cachesim::outcome::SimOutcome;
use cachesim::{Policy, SimError, SimulatedMachine, Traffic};
use model::suggest::hint;
use model::{Origin, Reading, ReadingValue, Scope, Unit};
use toml::Spanned;

use super::outcome::RunFigures;
use super::{BenchTable, SIMULATE};
use crate::error::StudyError;
use crate::spec::option_text;
use crate::study_text::StudyText;

pub(super) const NAME: &str = "dca";
/// Display name of the simulator.
pub(super) const SIMULATOR: &str = "kvmeter's cache simulator";
/// Estimated seconds of one simulation.
pub(super) const SECONDS: f64 = 2.0;
/// How often a stop is checked.
const LOOK: Duration = Duration::from_millis(20);

const MACHINE: &str = "machine";
const TRAFFIC: &str = "traffic";
const POLICY: &str = "policy";
const WAYS: &str = "ways";
const SEED: &str = "seed";
/// Defaults, as for the command.
const DEFAULTS: [(&str, &str); 3] =
    [(MACHINE, "xeon-gold-6140"), (TRAFFIC, "forward"), (POLICY, "on")];

/// One simulation.
#[derive(Debug, Clone)]
pub struct DcaJob {
    machine: SimulatedMachine,
    traffic: Traffic,
    policy: Policy,
    /// Seed of the first repeat; each has its own arrivals.
    seed: u64,
    pub(super) settings: Vec<(String, String)>,
}

/// Parses a table. Its keys are `machine`, `traffic`, `policy` and what the command sweeps.
pub(super) fn parse(
    source: &StudyText,
    seed: u64,
    name: &Spanned<String>,
    table: &BenchTable,
) -> Result<DcaJob, StudyError> {
    if name.get_ref() != NAME {
        let words = format!(
            "there is no simulation `{}`; {}",
            name.get_ref(),
            hint(name.get_ref(), [NAME])
        );
        return Err(source.at(name.span(), &words));
    }
    let known = || DEFAULTS.iter().map(|(key, _)| *key).chain([WAYS]).chain(Traffic::KEYS);
    let mut settings: Vec<(String, String)> =
        DEFAULTS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    for (key, value) in table {
        let wrong = key.get_ref();
        if !known().any(|known| known == wrong) {
            let hint = hint(wrong, known().collect::<Vec<_>>());
            let words = format!("`{NAME}` has no setting `{wrong}`; {hint}");
            return Err(source.at(key.span(), &words));
        }
        let text = option_text(value.get_ref()).map_err(|words| source.at(value.span(), &words))?;
        match settings.iter_mut().find(|(known, _)| known == wrong) {
            Some((_, default)) => *default = text,
            None => settings.push((wrong.clone(), text)),
        }
    }
    let at = |key: &str, error: &SimError| {
        let value = table.iter().find(|(known, _)| known.get_ref() == key);
        let place = value.map_or(name.span(), |(_, value)| value.span());
        source.at(place, error.to_string().trim_end())
    };
    let text = |key: &str| {
        let found = settings.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, text)| text.as_str())
    };
    let mut machine = SimulatedMachine::open(text(MACHINE)).map_err(|error| at(MACHINE, &error))?;
    let mut traffic = Traffic::open(text(TRAFFIC), &machine).map_err(|e| at(TRAFFIC, &e))?;
    let policy = Policy::parse(text(POLICY)).map_err(|error| at(POLICY, &error))?;
    policy.start(machine.choice()).map_err(|error| at(POLICY, &error))?;
    let mut last = TRAFFIC.to_owned();
    for (key, text) in &settings {
        match key.as_str() {
            MACHINE | TRAFFIC | POLICY => continue,
            WAYS => machine.set_ways(text),
            _ => traffic.set(key, text),
        }
        .map_err(|error| at(key, &error))?;
        last.clone_from(key);
    }
    traffic.recheck(&machine).map_err(|error| at(&last, &error))?;
    let given = settings.iter().any(|(key, _)| key == SEED);
    let seed = if given { traffic.seed } else { seed };
    Ok(DcaJob { machine, traffic, policy, seed, settings })
}

impl DcaJob {
    /// Simulates; None where it was stopped.
    ///
    /// # Errors
    /// The simulation is invalid.
    pub(super) fn run(
        &self,
        repeat: u32,
        stop: &AtomicBool,
    ) -> Result<Option<RunFigures>, StudyError> {
        let (machine, policy) = (self.machine.clone(), self.policy);
        let mut traffic = self.traffic.clone();
        traffic.seed = self.seed.wrapping_add(u64::from(repeat.saturating_sub(1)));
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
                Ok(Ok(outcome)) => return Ok(Some(self.figures(&outcome))),
                Ok(Err(error)) => {
                    return Err(StudyError::Request(format!("[{SIMULATE}.{NAME}]: {error}")));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let words =
                        format!("[{SIMULATE}.{NAME}]: the simulation ended without a result");
                    return Err(StudyError::Failed(words));
                }
            }
        }
    }

    /// A simulation has no operations, only readings.
    fn figures(&self, outcome: &SimOutcome) -> RunFigures {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::of_study;

    fn parsed(table: &str) -> Result<DcaJob, String> {
        let text = format!("name = \"s\"\n[simulate.dca]\n{table}\n");
        let source = StudyText::new("s.toml", &text);
        let words = |error: StudyError| error.to_string();
        let spec = source.spec().map_err(words)?;
        let mut benches = of_study(&source, &spec, &|_, _| true).map_err(words)?;
        match benches.pop() {
            Some(super::super::Activity::Dca(job)) => Ok(*job),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn mistakes_are_shown_at_their_place() {
        for (table, place, words) in [
            ("machine = \"xeon\"", "3:11", "there is no file `xeon`"),
            ("traffic = \"flo\"", "3:11", "flow"),
            ("policy = \"onn\"", "3:10", "no policy `onn`"),
            ("policy = \"ways:99\"", "3:10", "ways"),
            ("stride = 64", "3:10", "do not read packets"),
            ("traffic = \"flow\"\nstride = 0", "4:10", "above 0"),
            ("packt = 64", "3:1", "did you mean `packet`?"),
        ] {
            let error = parsed(table).unwrap_err();
            assert!(error.contains(words), "{table}: {error}");
            assert!(error.contains(place), "{table}: {error}");
        }
    }

    #[test]
    fn all_figures_have_origin_simulated() {
        let job = parsed("traffic = \"flow\"\nstride = 256\npacket = 512\nrate = \"1M\"");
        let job = job.unwrap();
        let stop = AtomicBool::new(false);
        let figures = job.run(1, &stop).unwrap().unwrap();
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
        let job = parsed("").unwrap();
        assert!(job.run(1, &AtomicBool::new(true)).unwrap().is_none());
    }
}
