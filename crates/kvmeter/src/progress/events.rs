//! Progress for a program that reads it: one JSON object a line.

use std::time::{Duration, Instant};

use drive::PhaseStage;
use execute::Event;
use serde::{Deserialize, Serialize};

use super::Bar;
use crate::output::write_stderr;

/// How often progress is written.
const EVERY: Duration = Duration::from_secs(1);

/// What happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// Run number `run` of `runs` (0: not known beforehand) begins.
    Begins {
        run: usize,
        runs: usize,
        label: String,
    },
    Progress {
        /// Before the measured window.
        warming_up: bool,
        /// Of the last interval; 0 before the first.
        rate_ops_s: f64,
        p99_us: f64,
        /// Of all runs, as far as it is known.
        left_s: Option<u64>,
    },
    Ended {
        run: usize,
        runs: usize,
        label: String,
        rate_ops_s: f64,
        seconds: f64,
        valid: bool,
    },
}

/// When a line was last written.
#[derive(Debug, Default)]
pub struct EventLines {
    written: Option<Instant>,
}

impl Bar {
    /// Writes the line of an event that has one; false if it has none.
    pub(super) fn write_event(&mut self, event: &Event<'_>) -> bool {
        let runs = self.expected.len();
        let line = match event {
            Event::RunStarts { step } => {
                self.step += usize::from(!step.is_trial());
                RunEvent::Begins { run: self.step, runs, label: step.label.clone() }
            }
            Event::Progress { step, progress } => {
                let events = self.events.get_or_insert_default();
                if events.written.is_some_and(|at| at.elapsed() < EVERY) {
                    return true;
                }
                events.written = Some(Instant::now());
                let left = self.seconds_left(step, progress);
                RunEvent::Progress {
                    warming_up: !matches!(progress.stage, PhaseStage::Measure),
                    rate_ops_s: progress.live.operations_s,
                    p99_us: progress.live.p99_ns as f64 / 1e3,
                    left_s: left.map(|(run, rest)| run + rest.as_secs()),
                }
            }
            Event::Saved { step, run } => RunEvent::Ended {
                run: self.step,
                runs,
                label: step.label.clone(),
                rate_ops_s: run.throughput(),
                seconds: run.seconds,
                valid: run.valid(),
            },
            _ => return false,
        };
        if let Ok(line) = serde_json::to_string(&line) {
            write_stderr(&line);
        }
        true
    }
}
