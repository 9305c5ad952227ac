//! What viewers see: the newest state of each host, the last points of the curves, the runs that
//! have ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::event::{LatencyNow, RunEnd, RunEvent, RunProgress};
use crate::metrics::Totals;
use crate::page::Title;

/// Points of the curves of a host, about one a second.
const MAX_POINTS: usize = 600;
/// Points of all hosts.
const MAX_ALL_POINTS: usize = 10 * MAX_POINTS;
/// Runs that are kept for the list; the count goes on.
const MAX_RUNS: usize = 2000;
/// Of the points and of the runs: hosts may send long names.
const MAX_BYTES: usize = 4 << 20;

/// The state that is shown.
pub(crate) struct Board {
    title: Title,
    /// One without a name where this machine measures.
    hosts: Vec<HostState>,
    /// How the command ended.
    ended: Option<String>,
    changed_at: u64,
    /// Changes until now.
    changes: u64,
    points: Sequence,
    finished: Sequence,
    pub(crate) totals: BTreeMap<Arc<str>, Totals>,
}

/// What a host does.
struct HostState {
    name: Arc<str>,
    run: usize,
    runs: usize,
    label: String,
    settings: BTreeMap<String, String>,
    stage: String,
    progress: Option<RunProgress>,
    /// How it ended.
    ended: Option<String>,
    /// Its runs that have ended.
    finished: usize,
    /// The second of the last point with latencies.
    shown_second: Option<f64>,
    /// The numbers of its last change, and of that of its settings.
    changed: u64,
    settings_changed: u64,
}

/// The last of many values as JSON, numbered from 0.
struct Sequence {
    kept: VecDeque<Arc<str>>,
    /// Of what is kept.
    bytes: usize,
    /// The number after the newest.
    next: u64,
    most: usize,
}

impl Sequence {
    fn new(most: usize) -> Sequence {
        Sequence { kept: VecDeque::new(), bytes: 0, next: 0, most }
    }

    fn push(&mut self, value: &impl Serialize) {
        let Ok(text) = serde_json::to_string(value) else { return };
        self.bytes += text.len();
        self.kept.push_back(text.into());
        self.next += 1;
        while self.kept.len() > self.most || self.bytes > MAX_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.len();
        }
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
    changes: u64,
    begun: bool,
}

#[derive(Serialize)]
struct Frame<'a> {
    first: bool,
    head: Head<'a>,
    /// Those that have changed.
    hosts: Vec<HostView<'a>>,
}

#[derive(Serialize)]
struct Head<'a> {
    #[serde(flatten)]
    title: &'a Title,
    changed_at_ms: u64,
    finished: u64,
    ended: &'a Option<String>,
}

#[derive(Serialize)]
struct HostView<'a> {
    /// Its number, by which points name it.
    at: usize,
    name: &'a str,
    run: usize,
    runs: usize,
    finished: usize,
    label: &'a str,
    stage: &'a str,
    progress: &'a Option<RunProgress>,
    ended: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<&'a BTreeMap<String, String>>,
}

/// One second of the curves.
#[derive(Serialize)]
struct Point {
    host: usize,
    at_ms: u64,
    run: usize,
    warming_up: bool,
    offered: Option<f64>,
    answered: Option<f64>,
    latency: Option<LatencyNow>,
}

#[derive(Serialize)]
struct FinishedRun<'a> {
    host: &'a str,
    #[serde(flatten)]
    end: &'a RunEnd,
}

impl Board {
    pub(crate) fn new(title: Title) -> Board {
        Board {
            title,
            hosts: Vec::new(),
            ended: None,
            changed_at: now_ms(),
            changes: 0,
            points: Sequence::new(MAX_POINTS),
            finished: Sequence::new(MAX_RUNS),
            totals: BTreeMap::new(),
        }
    }

    /// What happened on a host; the empty name is this machine.
    pub(crate) fn take(&mut self, host: &Arc<str>, event: RunEvent) {
        self.totals.entry(Arc::clone(host)).or_default().take(&event);
        let at = self.changed(host);
        let own = &mut self.hosts[at];
        match event {
            RunEvent::Live { .. } => {}
            RunEvent::Stage { label, stage } => {
                (own.stage, own.progress) = (stage, None);
                if !label.is_empty() {
                    own.label = label;
                }
            }
            RunEvent::Begins { run, runs, label, settings, .. } => {
                (own.run, own.runs, own.label, own.settings) = (run, runs, label, settings);
                (own.stage, own.progress) = ("prepares".to_owned(), None);
                own.shown_second = None;
                own.settings_changed = own.changed;
            }
            RunEvent::Progress(progress) => {
                let point = own.take_progress(*progress, at, self.changed_at);
                self.points.push(&point);
            }
            RunEvent::Ended(end) => {
                own.stage = "saved".to_owned();
                own.finished += 1;
                self.finished.push(&FinishedRun { host, end: &end });
            }
        }
    }

    /// The number of a host of which something is new.
    fn changed(&mut self, host: &Arc<str>) -> usize {
        self.changed_at = now_ms();
        self.changes += 1;
        let known = self.hosts.iter().position(|own| own.name == *host);
        let at = known.unwrap_or_else(|| {
            self.hosts.push(HostState::new(host));
            self.points.most = (MAX_POINTS * self.hosts.len()).min(MAX_ALL_POINTS);
            self.hosts.len() - 1
        });
        self.hosts[at].changed = self.changes;
        at
    }

    /// A host has ended.
    pub(crate) fn end_host(&mut self, host: &Arc<str>, how: String) {
        let at = self.changed(host);
        let own = &mut self.hosts[at];
        (own.ended, own.progress) = (Some(how), None);
    }

    /// The command has ended; the state stays as it is.
    pub(crate) fn end(&mut self, how: String) {
        self.changed_at = now_ms();
        self.changes += 1;
        // The last frame has all of them.
        self.hosts.iter_mut().for_each(|host| host.changed = self.changes);
        self.ended = Some(how);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// What is new for a viewer, as one line of JSON; all of it at first. `<` is escaped, so that it
    /// may stand in a script element.
    pub(crate) fn frame(&self, cursor: &mut Cursor) -> String {
        let is_new = |changed: u64| !cursor.begun || changed > cursor.changes;
        let hosts = self.hosts.iter().enumerate().filter(|(_, host)| is_new(host.changed));
        let frame = Frame {
            first: !cursor.begun,
            head: Head {
                title: &self.title,
                changed_at_ms: self.changed_at,
                finished: self.finished.next,
                ended: &self.ended,
            },
            hosts: hosts.map(|(at, host)| host.view(at, is_new(host.settings_changed))).collect(),
        };
        // Points and runs are JSON already, and follow within the same object.
        let state = serde_json::to_string(&frame).unwrap_or_default();
        let state = state
            .strip_prefix('{')
            .unwrap_or_default()
            .strip_suffix('}')
            .unwrap_or("\"first\":false");
        let (points, runs) = (self.points.since(cursor.points), self.finished.since(cursor.runs));
        *cursor = Cursor {
            points: self.points.next,
            runs: self.finished.next,
            changes: self.changes,
            begun: true,
        };
        let frame = format!("{{{state},\"points\":[{points}],\"runs\":[{runs}]}}");
        model::text::json(&frame).replace('<', "\\u003c")
    }
}

impl HostState {
    fn new(name: &Arc<str>) -> HostState {
        HostState {
            name: Arc::clone(name),
            run: 0,
            runs: 0,
            label: String::new(),
            settings: BTreeMap::new(),
            stage: "begins".to_owned(),
            progress: None,
            ended: None,
            finished: 0,
            shown_second: None,
            changed: 0,
            settings_changed: 0,
        }
    }

    fn take_progress(&mut self, mut progress: RunProgress, host: usize, at_ms: u64) -> Point {
        // Their counts are in the totals.
        progress.recorded = Vec::new();
        let latency = progress.latency.filter(|now| self.shown_second != Some(now.at_s));
        self.shown_second = latency.map(|now| now.at_s).or(self.shown_second);
        let point = Point {
            host,
            at_ms,
            run: self.run,
            warming_up: progress.warming_up,
            offered: progress.offered_ops_s,
            answered: progress.answered_ops_s,
            latency,
        };
        self.stage.clone_from(&progress.stage);
        self.progress = Some(progress);
        point
    }

    fn view(&self, at: usize, with_settings: bool) -> HostView<'_> {
        HostView {
            at,
            name: &self.name,
            run: self.run,
            runs: self.runs,
            finished: self.finished,
            label: &self.label,
            stage: &self.stage,
            progress: &self.progress,
            ended: &self.ended,
            settings: with_settings.then_some(&self.settings),
        }
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

    fn here() -> Arc<str> {
        Arc::from("")
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
        board.take(&here(), progress(1.0));
        board.take(&here(), progress(2.0));
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
            board.take(&here(), progress(1.0));
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
            board.take(&here(), progress(second as f64));
            board.take(&here(), RunEvent::Ended(Box::default()));
        }
        let news = frame(&board, &mut cursor);
        assert_eq!(news["points"].as_array().unwrap().len(), MAX_POINTS);
        assert_eq!(news["head"]["finished"], 2 * MAX_POINTS as u64);
    }

    #[test]
    fn a_host_with_long_names_fills_no_memory() {
        let mut board = board();
        for _ in 0..100 {
            let end = RunEnd { label: "long".repeat(1 << 14), ..RunEnd::default() };
            board.take(&here(), RunEvent::Ended(Box::new(end)));
        }
        assert!(board.frame(&mut Cursor::default()).len() < MAX_BYTES + 10_000);
        assert!(board.finished.bytes > MAX_BYTES / 2 && board.finished.next == 100);
    }

    #[test]
    fn hosts_are_apart_and_a_viewer_gets_those_that_changed() {
        let mut board = board();
        let (m1, m2): (Arc<str>, Arc<str>) = (Arc::from("m1"), Arc::from("m2"));
        let begins = |runs| RunEvent::Begins {
            run: 1,
            runs,
            label: "null ycsb-c".to_owned(),
            phase: "measure".to_owned(),
            settings: [("store".to_owned(), "null".to_owned())].into(),
        };
        board.take(&m1, begins(4));
        board.take(&m2, begins(6));
        let mut cursor = Cursor::default();
        let all = frame(&board, &mut cursor)["hosts"].clone();
        assert_eq!((&all[0]["name"], &all[1]["runs"]), (&"m1".into(), &6.into()));
        assert_eq!(all[1]["settings"]["store"], "null");
        board.take(&m2, progress(1.0));
        let news = frame(&board, &mut cursor);
        assert_eq!(news["hosts"].as_array().unwrap().len(), 1);
        assert_eq!((&news["hosts"][0]["at"], &news["points"][0]["host"]), (&1.into(), &1.into()));
        assert!(news["hosts"][0].get("settings").is_none(), "they have not changed");
        board.take(&m1, RunEvent::Ended(Box::default()));
        board.end_host(&m1, "done".to_owned());
        let news = frame(&board, &mut cursor);
        let own = &news["hosts"][0];
        assert_eq!((&own["ended"], &own["finished"]), (&"done".into(), &1.into()));
        assert_eq!(news["runs"][0]["host"], "m1");
        board.end("done".to_owned());
        assert_eq!(frame(&board, &mut cursor)["hosts"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_frame_cannot_end_the_script_that_holds_it() {
        let text = board().frame(&mut Cursor::default());
        assert!(!text.contains('<') && !text.contains('\n'), "{text}");
        let frame: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(frame["head"]["name"], "null </script>");
    }
}
