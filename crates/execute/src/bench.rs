//! Runs microbenchmarks and simulations as runs of a study, one after the other.

mod dca;
mod micro;
mod outcome;

use ::micro::window::WindowEdge;
use analyse::{IdleContext, efficiency};
use hdrhistogram::Histogram;
use host::{PreparedWatch, RunWatch, WatchReadings};
use model::{
    Failures, LatencyClock, LatencyScope, LoopKind, Reading, Run, RunLatency, RunSettings, Scope,
};
use study::{Activity, Bench, SIMULATOR, Step};

use self::outcome::{RunFigures, figures};
use crate::check_findings::findings;
use crate::error::ExecuteError;
use crate::event::{Event, Listener};
use crate::execution::now;
use crate::run_context::RunContext;
use crate::run_record;
use crate::session::StepAgenda;

/// Busy time of other processes; not meaningful here, because this process only waits.
const NEIGHBOURS: &str = "machine.neighbours";

impl RunContext<'_> {
    /// Runs a step without a store and the steps that follow in the agenda; returns whether it
    /// reached the agenda's end.
    pub(crate) fn run_benches(
        &mut self,
        first: Step,
        agenda: &mut dyn StepAgenda,
        keep: &mut dyn FnMut(&Run) -> Result<(), ExecuteError>,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecuteError> {
        let mut next = Some(first);
        while let Some(step) = next {
            let Activity::Bench(bench) = &step.activity else {
                let words = format!("{}: a store's run among microbenchmarks", step.label);
                return Err(ExecuteError::Failed(words));
            };
            listener.on_event(Event::RunStarts { step: &step });
            let started_at = now();
            let mut probes = WindowProbes::default();
            let figures = match bench {
                Bench::Micro(job) => {
                    let program = self.probes.pass.first();
                    let context = self.probes.context(&[], Vec::new(), Vec::new());
                    probes.prepared = Some(RunWatch::prepare(&self.probes.root, &context));
                    let outcome =
                        micro::run(job, program, self.stop, &mut |edge| probes.on_edge(edge))?;
                    let failed = |why| ExecuteError::Failed(format!("{}: {why}", step.label));
                    outcome.map(figures).transpose().map_err(failed)?
                }
                Bench::Simulate(job) => dca::run(job, step.repeat, self.stop)?,
            };
            let Some(mut figures) = figures else { return Ok(false) };
            let operations = figures.operations;
            let observed =
                probes.observed.map(|observed| self.of_the_machine(observed, operations));
            for reading in observed.unwrap_or_default() {
                if figures.readings.iter().all(|own| own.signal != reading.signal) {
                    figures.readings.push(reading);
                }
            }
            let mut run = self.assemble(&step, bench, started_at, figures);
            let findings = findings(&self.execution.design.checks, &run);
            run.warnings.extend(findings);
            let contradictions = run_record::contradictions(&run.readings, true);
            run.warnings.extend(contradictions);
            keep(&run)?;
            listener.on_event(Event::Saved { step: &step, run: &run });
            next = agenda.next(&run);
        }
        Ok(true)
    }

    /// Machine-wide readings around the window of another process, and derived figures.
    fn of_the_machine(&self, observed: WatchReadings, operations: u64) -> Vec<Reading> {
        let mut readings = observed.readings;
        readings.retain(|reading| is_of_the_machine(reading.scope) && reading.signal != NEIGHBOURS);
        let probes = IdleContext {
            idle: self.idle,
            is_local: true,
            may_be_elsewhere: host::probe::energy::may_be_elsewhere,
        };
        let figures = efficiency(&readings, operations, probes);
        readings.extend(self.idle.iter().cloned());
        readings.extend(figures);
        readings
    }

    fn assemble(&self, step: &Step, bench: &Bench, started_at: String, figures: RunFigures) -> Run {
        let mut settings: RunSettings = step.settings.clone();
        self.knob_effects.settings(&mut settings);
        let version = env!("CARGO_PKG_VERSION");
        let corrupt = |count: u64| Failures {
            kind: "corrupt".to_owned(),
            count,
            first: "a message was not what was sent".to_owned(),
        };
        // Messages have no kinds of operation.
        let latency = |histogram: Histogram<u64>| RunLatency {
            op: LatencyScope::Any,
            clock: LatencyClock::Service,
            histogram: histogram.into(),
        };
        Run {
            id: uuid::Uuid::new_v4().to_string(),
            execution: self.execution.id.clone(),
            ordinal: step.ordinal,
            label: step.label.clone(),
            phase: step.phase(),
            settings,
            store_version: match bench {
                Bench::Micro(_) => format!("kvmeter {version}"),
                Bench::Simulate(_) => format!("{} {version}", SIMULATOR),
            },
            threads: figures.threads,
            // Latencies count from sending, whatever the pacing.
            pacing: LoopKind::Closed { think_s: 0.0 },
            started_at,
            seconds: figures.seconds,
            operations: figures.operations,
            verified: figures.verified,
            misses: 0,
            failures: Some(figures.corrupt)
                .filter(|count| *count > 0)
                .map(corrupt)
                .into_iter()
                .collect(),
            invalid_because: figures.invalid_because,
            warnings: figures.warnings,
            latencies: figures.latency.into_iter().map(latency).collect(),
            series: Vec::new(),
            readings: figures.readings,
            samples: Vec::new(),
            profile: None,
            tax: None,
            stream: Default::default(),
        }
    }
}

/// The probes around the window of a microbenchmark, which is that of another process.
#[derive(Default)]
struct WindowProbes {
    prepared: Option<PreparedWatch>,
    watch: Option<RunWatch>,
    observed: Option<WatchReadings>,
}

impl WindowProbes {
    fn on_edge(&mut self, edge: WindowEdge) {
        match edge {
            WindowEdge::Opens => self.watch = self.prepared.take().map(PreparedWatch::begin),
            WindowEdge::Closes => self.observed = self.watch.take().map(RunWatch::end),
        }
    }
}

/// Whether a scope covers the machine rather than this process or a store: a microbenchmark reports
/// its own processes itself.
fn is_of_the_machine(scope: Scope) -> bool {
    !matches!(
        scope,
        Scope::Process
            | Scope::Device
            | Scope::Store
            | Scope::Harness
            | Scope::Server
            | Scope::Client
    )
}
