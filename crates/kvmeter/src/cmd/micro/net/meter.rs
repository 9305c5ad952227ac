//! The hardware counters around one end.

use host::{Context, ProbeChoice, Root, RunWatch};
use micro::job::PlacementFlags;
use micro::net::EndMeter;
use micro::window::{WindowEdge, WindowReporter};
use model::Reading;

use super::super::session::window_reporter;

/// The signals of the probe that concern data movement.
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
    watch: Option<RunWatch>,
    reporter: Option<WindowReporter>,
}

impl Counters {
    /// For the end whose phase is the measured window, which it reports if requested.
    pub fn with_reporter(at: &PlacementFlags) -> Counters {
        Counters { watch: None, reporter: window_reporter(at) }
    }

    fn report_edge(&self, edge: WindowEdge) {
        if let Some(reporter) = &self.reporter {
            reporter.report(edge);
        }
    }
}

impl EndMeter for Counters {
    fn begin(&mut self) {
        let choice = ProbeChoice::Only(vec!["counters".to_owned()]);
        let context = Context { choice, ..Context::default() };
        self.watch = Some(RunWatch::begin(&Root::live(), &context));
        self.report_edge(WindowEdge::Opens);
    }

    fn end(&mut self) -> Vec<Reading> {
        self.report_edge(WindowEdge::Closes);
        let readings = self.watch.take().map(|watch| watch.end().readings).unwrap_or_default();
        readings.into_iter().filter(|r| SIGNALS.contains(&r.signal.as_str())).collect()
    }
}
