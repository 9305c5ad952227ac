//! The progress of an evaluation.

use analyse::mbwu::EvaluationRound;
use execute::{Event, Listener};
use report::tables;

use crate::progress::Bar;

/// Progress, with a line for each round as it ends.
pub(super) struct RoundProgress {
    pub(super) bar: Bar,
}

impl Listener for RoundProgress {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Saved { run, .. } = &event
            && let Some(round) = EvaluationRound::of(run)
        {
            self.bar.show_event(&event);
            return self.bar.print_line(&tables::mbwu_line(&round));
        }
        self.bar.on_event(event);
    }

    fn watches(&self) -> bool {
        self.bar.is_watching()
    }
}
