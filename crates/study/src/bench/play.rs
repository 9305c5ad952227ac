//! Runs benches as runs of a study, one after the other.

use analyse::{IdleContext, efficiency};
use hdrhistogram::Histogram;
use host::{Observed, Prepared, Watch};
use micro::window::Edge;
use model::{Reading, Scope};
use record::{Failures, LatencyClock, LatencyScope, LoopKind, Run, RunLatency, RunSettings};

use super::said::{self, RunFigures};
use super::{Activity, dca};
use crate::engine::{Event, Listener, RunContext, now};
use crate::error::StudyError;
use crate::findings::findings;
use crate::plan::Step;
use crate::session::StepAgenda;

/// All that was busy less this process, which here only waits for another one.
const NEIGHBOURS: &str = "machine.neighbours";

impl RunContext<'_> {
    /// Runs a step that asks no store and what the agenda has after it; the answer says whether
    /// it came to the agenda's end.
    pub(crate) fn play_benches(
        &mut self,
        first: Step,
        agenda: &mut dyn StepAgenda,
        keep: &mut dyn FnMut(&Run) -> Result<(), StudyError>,
        listener: &mut dyn Listener,
    ) -> Result<bool, StudyError> {
        let mut next = Some(first);
        while let Some(step) = next {
            let Some(bench) = &step.bench else {
                let words = format!("{}: a store's run among microbenchmarks", step.label);
                return Err(StudyError::Failed(words));
            };
            listener.hear(Event::Begins { step: &step });
            let started_at = now();
            let mut around = WindowProbes::default();
            let figures = match bench {
                Activity::Micro(order) => {
                    let program = self.probes.pass.first();
                    let context = self.probes.context(&[], Vec::new(), Vec::new());
                    around.prepared = Some(Watch::prepare(&self.probes.root, &context));
                    let said = order.run(program, self.stop, &mut |edge| around.come_to(edge))?;
                    let read = |text: String| {
                        let failed = |why| StudyError::Failed(format!("{}: {why}", step.label));
                        said::read(&text).map_err(failed)
                    };
                    said.map(read).transpose()?
                }
                Activity::Dca(order) => order.run(step.repeat, self.stop)?,
            };
            let Some(mut figures) = figures else { return Ok(false) };
            let operations = figures.operations;
            let seen = around.observed.map(|seen| self.of_the_machine(seen, operations));
            for reading in seen.unwrap_or_default() {
                if figures.readings.iter().all(|own| own.signal != reading.signal) {
                    figures.readings.push(reading);
                }
            }
            let mut run = self.assemble(&step, bench, started_at, figures);
            let findings = findings(&self.execution.design.checks, &run);
            run.warnings.extend(findings);
            keep(&run)?;
            listener.hear(Event::Kept { step: &step, run: &run });
            next = agenda.next(&run);
        }
        Ok(true)
    }

    /// What was seen of the machine around a window of another process, and what follows from it.
    fn of_the_machine(&self, seen: Observed, operations: u64) -> Vec<Reading> {
        let mut readings = seen.readings;
        readings.retain(|reading| is_of_the_machine(reading.scope) && reading.signal != NEIGHBOURS);
        let around = IdleContext { idle: self.idle, here: true };
        let figures = efficiency(&readings, operations, around);
        readings.extend(self.idle.iter().cloned());
        readings.extend(figures);
        readings
    }

    fn assemble(
        &self,
        step: &Step,
        bench: &Activity,
        started_at: String,
        figures: RunFigures,
    ) -> Run {
        let mut settings: RunSettings = step.settings.clone();
        self.seen.settings(&mut settings);
        let version = env!("CARGO_PKG_VERSION");
        let corrupt = |count: u64| Failures {
            kind: "corrupt".to_owned(),
            count,
            first: "a message was not what was sent".to_owned(),
        };
        // Whatever was sent: messages have no kinds.
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
            phase: step.phase,
            settings,
            store_version: match bench {
                Activity::Micro(_) => format!("kvmeter {version}"),
                Activity::Dca(_) => format!("{} {version}", dca::SIMULATOR),
            },
            threads: figures.threads,
            // Latencies count from the sending, whatever the pace.
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
            tax: None,
            stream: Default::default(),
        }
    }
}

/// The probes around the window of a microbenchmark, which is that of another process.
#[derive(Default)]
struct WindowProbes {
    prepared: Option<Prepared>,
    watch: Option<Watch>,
    observed: Option<Observed>,
}

impl WindowProbes {
    fn come_to(&mut self, edge: Edge) {
        match edge {
            Edge::Opens => self.watch = self.prepared.take().map(Prepared::begin),
            Edge::Closes => self.observed = self.watch.take().map(Watch::end),
        }
    }
}

/// Whether a boundary holds whatever runs on the machine, and not this process or a store alone: a
/// microbenchmark tells of its own processes itself.
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
