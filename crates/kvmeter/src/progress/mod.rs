//! Progress of runs: a bar on a terminal, else a line for each run.

mod events;
mod present;

use std::io::IsTerminal;
use std::time::Duration;

use drive::{PhaseProgress, PhaseStage};
use execute::{Event, Listener};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use live::{Feed, RunEvent};
use model::text::{line, lines};
use model::{Count, Phase};
use report::format;
use study::{Maximum, Step};

use self::events::EventSource;
use crate::output::{Output, is_dumb, write_stderr};

/// The least time for a live rate.
const MIN_LIVE_S: f64 = 0.3;

impl Output {
    /// A progress bar for these steps.
    pub fn bar<'a>(&self, steps: impl Iterator<Item = &'a Step>) -> Bar {
        let seconds = |step: &Step| Duration::from_secs_f64(step.estimate().seconds);
        let hidden = self.is_quiet() || !std::io::stderr().is_terminal() || is_dumb();
        Bar::new(steps.map(seconds).collect(), hidden, !self.is_quiet())
    }

    /// A bar with this many parts, on a terminal only.
    pub fn parts(&self, parts: u64) -> ProgressBar {
        let hidden = self.is_quiet() || !std::io::stderr().is_terminal() || is_dumb();
        plain_bar(parts, hidden)
    }
}

fn plain_bar(parts: u64, hidden: bool) -> ProgressBar {
    let target = match hidden {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(5),
    };
    let bar = ProgressBar::with_draw_target(Some(parts), target);
    let style = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// A bar on a terminal; else one line for each finished run.
pub struct Bar {
    bar: ProgressBar,
    /// Without a terminal, finished runs are printed as lines.
    lines: bool,
    /// What lines of JSON and the page are made of.
    source: EventSource,
    /// Maxima that were printed already.
    announced: Vec<Maximum>,
    /// Operations and time of the last update, for the live rate before the window opens.
    last_look: (u64, Duration),
    /// Runs and their progress are written as lines of JSON instead.
    json: bool,
    /// The page, where there is one.
    page: Option<Feed>,
}

impl Bar {
    fn new(expected: Vec<Duration>, hidden: bool, notes: bool) -> Self {
        let bar = plain_bar(1000, hidden);
        Bar {
            bar,
            lines: hidden && notes,
            source: EventSource::new(expected),
            announced: Vec::new(),
            last_look: (0, Duration::ZERO),
            json: false,
            page: None,
        }
    }

    /// Writes a line of JSON for each event of a run to standard error, for a program that reads
    /// them.
    pub fn into_event_lines(self) -> Bar {
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
        Bar { lines: true, json: true, ..self }
    }

    /// Shows the runs on a page too.
    pub fn with_page(self, page: Option<Feed>) -> Bar {
        Bar { page, ..self }
    }

    /// Whether intervals and readings are shown.
    pub fn is_watching(&self) -> bool {
        self.json || self.page.is_some()
    }

    /// Shows an event on the page and as a line of JSON. Returns whether that replaces what people
    /// read.
    pub fn show_event(&mut self, event: &Event<'_>) -> bool {
        if let (Event::Placed { cpus }, Some(page)) = (event, &self.page) {
            page.avoid(cpus.to_vec());
        }
        let is_progress = matches!(event, Event::Progress { .. });
        let Some(shown) = self.source.take(event) else { return self.json && is_progress };
        // Stages have lines of their own for people.
        let is_line = self.json && !matches!(shown, RunEvent::Stage { .. });
        if is_line && let Ok(line) = serde_json::to_string(&shown) {
            write_stderr(&line);
        }
        if let Some(page) = &self.page {
            page.event(shown);
        }
        is_line
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line above the bar, or to standard error without one.
    pub fn print_line(&self, text: &str) {
        if self.lines {
            write_stderr(text);
        } else {
            self.bar.println(lines(text));
        }
    }

    fn title(&self, step: &Step) -> String {
        let label = line(&step.label);
        if step.is_trial() {
            return format!("calibrating {label}");
        }
        let step_number = self.source.step;
        match self.source.runs() {
            // The number of steps is unknown.
            0 => format!("{step_number} {label}"),
            all if step_number <= all => format!("{step_number}/{all} {label}"),
            // Spare repeats, whose number is unknown.
            all => format!("spare {} {label}", step_number - all),
        }
    }

    fn progress(&mut self, step: &Step, progress: &PhaseProgress) {
        let share = progress.done.unwrap_or(0.0);
        self.bar.set_position((share * 1000.0) as u64);
        let stage = match progress.stage {
            PhaseStage::WarmUp => "warm-up  ".to_owned(),
            PhaseStage::Steadying { round, most } => {
                format!("steady-state round {round} of at most {most}  ")
            }
            PhaseStage::Measure => String::new(),
        };
        let message = format!("{stage}{}{}", self.live(progress), self.time_left(step, progress));
        self.bar.set_message(message);
    }

    /// The rate of the last interval and its p99; before the window only the rate, over the time
    /// since the last update.
    fn live(&mut self, progress: &PhaseProgress) -> String {
        let live = progress.live;
        if progress.stage == PhaseStage::Measure && live.operations_s > 0.0 {
            let p99 = format::latency(live.p99_ns as f64);
            return format!("{}  p99 {p99}", format::rate(live.operations_s));
        }
        let (operations, elapsed) = self.last_look;
        if progress.elapsed < elapsed || progress.operations < operations {
            self.last_look = (0, Duration::ZERO);
        }
        let since = progress.elapsed.saturating_sub(self.last_look.1).as_secs_f64();
        if since < MIN_LIVE_S {
            return String::new();
        }
        let rate = (progress.operations - self.last_look.0) as f64 / since.max(1e-9);
        if since > 0.5 {
            self.last_look = (progress.operations, progress.elapsed);
        }
        format::rate(rate)
    }

    fn time_left(&self, step: &Step, progress: &PhaseProgress) -> String {
        match self.source.seconds_left(step, progress) {
            None => String::new(),
            Some((run, rest)) if rest.is_zero() => format!("  {run} s left"),
            Some((run, rest)) => {
                let all = run + rest.as_secs();
                format!("  {run} s left, {} in all", format::seconds(all as f64))
            }
        }
    }
}

impl Listener for Bar {
    fn on_event(&mut self, event: Event<'_>) {
        if self.show_event(&event) {
            return;
        }
        self.show_text(&event);
    }

    fn watches(&self) -> bool {
        self.is_watching()
    }
}

impl Bar {
    /// What people read.
    fn show_text(&mut self, event: &Event<'_>) {
        match event {
            Event::Preparing { step, why } => {
                let records = step.activity.load().map_or(Count(0), |load| load.workload.records);
                self.print_line(&format!("{}: loading {records} records first: {why}", step.label));
                self.bar.set_prefix(format!("loading {}", line(&step.label)));
            }
            Event::Prepared { seconds } => {
                self.print_line(&format!("loaded in {}", format::seconds(*seconds)));
            }
            Event::Reusing { step } => {
                self.print_line(&format!("{}: reusing the loaded data", step.label));
            }
            Event::Restored { step } => {
                self.print_line(&format!("{}: restoring the loaded data", step.label));
            }
            Event::Copied { done: true } => {}
            Event::Copied { done: false } => {
                self.print_line("no space for a copy of the data: it is loaded again when needed");
            }
            Event::Idling { seconds } => {
                let time = format::seconds(*seconds);
                self.print_line(&format!("measuring the power of the idle machine for {time}"));
            }
            Event::KnobsUnavailable { levels, why } => {
                let levels: Vec<String> =
                    levels.0.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
                self.print_line(&format!("nothing is run at {}: {why}", levels.join(", ")));
            }
            Event::Simulating { step } => {
                self.print_line(&format!(
                    "{}: a pass under cachegrind, which takes a while",
                    step.label
                ));
            }
            Event::Profiling { step } => {
                self.print_line(&format!(
                    "{}: a pass that samples where the time goes",
                    step.label
                ));
            }
            Event::CountingSlots { step } => {
                self.print_line(&format!("{}: a pass that counts pipeline slots", step.label));
            }
            Event::Unprofiled { step, why } => {
                self.print_line(&format!("{}: no profile was made: {why}", step.label));
            }
            Event::RunStarts { step } => {
                if let Some(maximum) = step
                    .activity
                    .load()
                    .and_then(|load| load.maximum.as_ref())
                    .filter(|new| !self.announced.contains(new))
                {
                    let rate = format::rate(maximum.rate_ops_s);
                    self.print_line(&format!("{}: 100 % is {rate}; {}", step.label, maximum.words));
                    self.announced.push(maximum.clone());
                }
                self.last_look = (0, Duration::ZERO);
                self.bar.set_position(0);
                self.bar.set_prefix(self.title(step));
                self.bar.set_message("");
            }
            Event::Progress { step, progress } => self.progress(step, progress),
            Event::Placed { .. } | Event::Interval { .. } | Event::Readings { .. } => {}
            Event::Settling { .. } => self.bar.set_message("the store settles"),
            Event::Saved { step, run } => {
                let mark = if run.valid() { "" } else { "  INVALID" };
                let (rate, seconds) = match run.phase {
                    Phase::Simulate => ("simulated".to_owned(), String::new()),
                    _ => (format::rate(run.throughput()), format::seconds(run.seconds)),
                };
                self.print_line(&format!(
                    "{:<28} {rate:>14}  {seconds:>8}{mark}",
                    self.title(step)
                ));
            }
        }
    }
}
