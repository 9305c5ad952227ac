//! The hardware counters around one end.

use host::{Choice, Context, Root, Watch};
use micro::net::Meter;
use model::Reading;

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
}

impl Meter for Counters {
    fn begin(&mut self) {
        let choice = Choice::Only(vec!["counters".to_owned()]);
        let context = Context { choice, ..Context::default() };
        self.watch = Some(Watch::begin(&Root::live(), &context));
    }

    fn end(&mut self) -> Vec<Reading> {
        let readings = self.watch.take().map(|watch| watch.end().readings).unwrap_or_default();
        readings.into_iter().filter(|r| SIGNALS.contains(&r.signal.as_str())).collect()
    }
}
