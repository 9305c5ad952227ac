//! Progress of a preconditioning.

use std::time::{Duration, Instant};

use micro::precondition::{JobPhase, JobProgress};

use crate::output::Output;

/// Prints a line of progress at intervals.
pub struct PreconditionProgress<'a> {
    show: &'a Output,
    next: Instant,
    begun: Instant,
}

/// The interval of lines.
const EVERY: Duration = Duration::from_secs(5);

impl<'a> PreconditionProgress<'a> {
    pub fn new(show: &'a Output) -> Self {
        PreconditionProgress { show, next: Instant::now() + EVERY, begun: Instant::now() }
    }

    pub fn update(&mut self, progress: &JobProgress) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let JobProgress { phase, done, bytes, bytes_s } = progress;
        let phase = match phase {
            JobPhase::Purging => "purging".to_owned(),
            JobPhase::Erasing => "erasing".to_owned(),
            JobPhase::Sequential => "sequential".to_owned(),
            JobPhase::Random { round, most } => format!("random, round {round} of at most {most}"),
        };
        let share = done.map_or(String::new(), |done| format!("  {:5.1} %", done * 100.0));
        // The remaining time at the present speed.
        let remaining = match done {
            Some(done) if *done > 0.0 && *bytes_s > 0.0 => {
                let all = *bytes as f64 / done;
                format!("  {:.0} s left", (all - *bytes as f64) / bytes_s)
            }
            _ => String::new(),
        };
        self.show.note(&format!(
            "{phase}{share}  {}  {:.1} MB/s  {:.0} s{remaining}",
            report::format::bytes(*bytes as f64),
            bytes_s / 1e6,
            self.begun.elapsed().as_secs_f64()
        ));
    }
}
