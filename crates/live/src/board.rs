//! What viewers see: the newest state, the last points of the curves, the runs that have ended.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::event::{LatencyNow, RunEnd, RunEvent, RunProgress};
use crate::metrics::Totals;
use crate::page::Title;

/// Points of the curves, about one a second.
const MAX_POINTS: usize = 600;
/// Runs that are kept for the list; the count goes on.
const MAX_RUNS: usize = 2000;

/// The state that is shown.
pub(crate) struct Board {
    title: Title,
    run: usize,
    runs: usize,
    label: String,
    settings: BTreeMap<String, String>,
    stage: String,
    progress: Option<RunProgress>,
    /// How the command ended.
    ended: Option<String>,
    changed_at: u64,
    points: Sequence,
    finished: Sequence,
    /// The second of the last point with latencies.
    shown_second: Option<f64>,
    pub(crate) totals: Totals,
    /// The head as JSON, until the state changes.
    head: RefCell<Option<Arc<str>>>,
}

/// The last of many values as JSON, numbered from 0.
struct Sequence {
    kept: VecDeque<Arc<str>>,
    /// The number after the newest.
    next: u64,
    most: usize,
}

impl Sequence {
    fn new(most: usize) -> Sequence {
        Sequence { kept: VecDeque::new(), next: 0, most }
    }

    fn push(&mut self, value: &impl Serialize) {
        let Ok(text) = serde_json::to_string(value) else { return };
        if self.kept.len() == self.most {
            self.kept.pop_front();
        }
        self.kept.push_back(text.into());
        self.next += 1;
    }

    /// Those from number `from` on that are still kept, as elements of an array.
    fn since(&self, from: u64) -> String {
        let first = self.next - self.kept.len() as u64;
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip).map(|text| &**text).collect::<Vec<_>>().join(",")
    }
}

/// What a viewer has got already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    points: u64,
    runs: u64,
    begun: bool,
}

#[derive(Serialize)]
struct Head<'a> {
    #[serde(flatten)]
    title: &'a Title,
    changed_at_ms: u64,
    run: usize,
    runs: usize,
    finished: u64,
    label: &'a str,
    settings: &'a BTreeMap<String, String>,
    stage: &'a str,
    progress: &'a Option<RunProgress>,
    ended: &'a Option<String>,
}

/// One second of the curves.
#[derive(Serialize)]
struct Point {
    at_ms: u64,
    run: usize,
    warming_up: bool,
    offered: Option<f64>,
    answered: Option<f64>,
    latency: Option<LatencyNow>,
}

impl Board {
    pub(crate) fn new(title: Title) -> Board {
        Board {
            title,
            run: 0,
            runs: 0,
            label: String::new(),
            settings: BTreeMap::new(),
            stage: "begins".to_owned(),
            progress: None,
            ended: None,
            changed_at: now_ms(),
            points: Sequence::new(MAX_POINTS),
            finished: Sequence::new(MAX_RUNS),
            shown_second: None,
            totals: Totals::default(),
            head: RefCell::new(None),
        }
    }

    pub(crate) fn take(&mut self, event: RunEvent) {
        self.totals.take(&event);
        self.changed_at = now_ms();
        self.head.replace(None);
        match event {
            RunEvent::Live { .. } => {}
            RunEvent::Stage { label, stage } => {
                (self.stage, self.progress) = (stage, None);
                if !label.is_empty() {
                    self.label = label;
                }
            }
            RunEvent::Begins { run, runs, label, settings, .. } => {
                (self.run, self.runs, self.label, self.settings) = (run, runs, label, settings);
                (self.stage, self.progress) = ("prepares".to_owned(), None);
                self.shown_second = None;
            }
            RunEvent::Progress(progress) => self.take_progress(*progress),
            RunEvent::Ended(end) => self.take_end(&end),
        }
    }

    fn take_progress(&mut self, mut progress: RunProgress) {
        // Their counts are in the totals.
        progress.recorded = Vec::new();
        let latency = progress.latency.filter(|now| self.shown_second != Some(now.at_s));
        self.shown_second = latency.map(|now| now.at_s).or(self.shown_second);
        self.points.push(&Point {
            at_ms: self.changed_at,
            run: self.run,
            warming_up: progress.warming_up,
            offered: progress.offered_ops_s,
            answered: progress.answered_ops_s,
            latency,
        });
        self.stage.clone_from(&progress.stage);
        self.progress = Some(progress);
    }

    fn take_end(&mut self, end: &RunEnd) {
        self.finished.push(end);
        self.stage = "saved".to_owned();
    }

    /// The command has ended; the state stays as it is.
    pub(crate) fn end(&mut self, how: String) {
        self.changed_at = now_ms();
        self.head.replace(None);
        self.ended = Some(how);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// What is new for a viewer, as one line of JSON; all of it at first. `<` is escaped, so that it
    /// may stand in a script element.
    pub(crate) fn frame(&self, cursor: &mut Cursor) -> String {
        let head =
            Arc::clone(self.head.borrow_mut().get_or_insert_with(|| self.head_json().into()));
        let (points, runs) = (self.points.since(cursor.points), self.finished.since(cursor.runs));
        let first = !cursor.begun;
        *cursor = Cursor { points: self.points.next, runs: self.finished.next, begun: true };
        let frame = format!(
            "{{\"first\":{first},\"head\":{head},\"points\":[{points}],\"runs\":[{runs}]}}"
        );
        model::text::json(&frame).replace('<', "\\u003c")
    }

    fn head_json(&self) -> String {
        let head = Head {
            title: &self.title,
            changed_at_ms: self.changed_at,
            run: self.run,
            runs: self.runs,
            finished: self.finished.next,
            label: &self.label,
            settings: &self.settings,
            stage: &self.stage,
            progress: &self.progress,
            ended: &self.ended,
        };
        serde_json::to_string(&head).unwrap_or_else(|_| "null".to_owned())
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn board() -> Board {
        Board::new(Title {
            command: "bench".into(),
            name: "null </script>".into(),
            version: "1".into(),
        })
    }

    fn progress(at_s: f64) -> RunEvent {
        let latency = Some(LatencyNow { at_s, p99_us: 7.0, ..LatencyNow::default() });
        RunEvent::Progress(Box::new(RunProgress { latency, ..RunProgress::default() }))
    }

    fn frame(board: &Board, cursor: &mut Cursor) -> Value {
        serde_json::from_str(&board.frame(cursor)).unwrap()
    }

    #[test]
    fn a_viewer_gets_each_point_once_and_a_late_one_gets_all() {
        let mut board = board();
        let mut cursor = Cursor::default();
        assert_eq!(frame(&board, &mut cursor)["first"], true);
        board.take(progress(1.0));
        board.take(progress(2.0));
        let news = frame(&board, &mut cursor);
        assert_eq!(
            (news["first"].clone(), news["points"].as_array().unwrap().len()),
            (false.into(), 2)
        );
        assert_eq!(frame(&board, &mut cursor)["points"].as_array().unwrap().len(), 0);
        assert_eq!(frame(&board, &mut Cursor::default())["points"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_second_is_drawn_once() {
        let mut board = board();
        for _ in 0..2 {
            board.take(progress(1.0));
        }
        let points = frame(&board, &mut Cursor::default())["points"].clone();
        assert_eq!(points[0]["latency"]["p99_us"], 7.0);
        assert_eq!(points[1]["latency"], Value::Null);
    }

    #[test]
    fn memory_is_bounded_and_a_viewer_that_slept_misses_the_oldest() {
        let mut board = board();
        let mut cursor = Cursor::default();
        board.frame(&mut cursor);
        for second in 0..2 * MAX_POINTS {
            board.take(progress(second as f64));
            board.take(RunEvent::Ended(Box::default()));
        }
        let news = frame(&board, &mut cursor);
        assert_eq!(news["points"].as_array().unwrap().len(), MAX_POINTS);
        assert_eq!(news["head"]["finished"], 2 * MAX_POINTS as u64);
    }

    #[test]
    fn a_frame_cannot_end_the_script_that_holds_it() {
        let text = board().frame(&mut Cursor::default());
        assert!(!text.contains('<') && !text.contains('\n'), "{text}");
        let frame: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(frame["head"]["name"], "null </script>");
    }
}
