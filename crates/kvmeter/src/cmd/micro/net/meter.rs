//! The hardware counters around one end.

use host::{Choice, Context, Root, Watch};
use micro::net::Meter;
use micro::window::{Edge, Teller};
use model::Reading;

use super::super::teller;
use crate::micro_args::Where;

/// What the counters tell of data movement, of the probe's many signals.
const SIGNALS: [&str; 8] = [
    "instructions.user",
    "instructions.kernel",
    "cycles",
    "ipc",
    "llc.references",
    "llc.misses",
    "llc.miss_ratio",
    "mpki.llc",
];

/// Counts this process with all its threads.
#[derive(Default)]
pub struct Counters {
    watch: Option<Watch>,
    teller: Option<Teller>,
}

impl Counters {
    /// Of the end whose phase is the measured window: tells of it who wants to know.
    pub fn telling(at: &Where) -> Counters {
        Counters { watch: None, teller: teller(at) }
    }

    fn tell(&self, edge: Edge) {
        if let Some(teller) = &self.teller {
            teller.say(edge);
        }
    }
}

impl Meter for Counters {
    fn begin(&mut self) {
        let choice = Choice::Only(vec!["counters".to_owned()]);
        let context = Context { choice, ..Context::default() };
        self.watch = Some(Watch::begin(&Root::live(), &context));
        self.tell(Edge::Opens);
    }

    fn end(&mut self) -> Vec<Reading> {
        self.tell(Edge::Closes);
        let readings = self.watch.take().map(|watch| watch.end().readings).unwrap_or_default();
        readings.into_iter().filter(|r| SIGNALS.contains(&r.signal.as_str())).collect()
    }
}
