//! What a person sees: tables on standard output, progress and notes on standard error.

use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::time::Duration;

use drive::{PhaseProgress, PhaseStage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::text::{json, line, lines};
use record::Phase;
use report::{Style, format};
use serde::Serialize;
use study::{Event, Listener, Maximum, Step};

use crate::args::{Common, When};

/// A rate over less time than this is noise.
const LEAST_LIVE_S: f64 = 0.3;

/// Width where none can be asked for.
const PLAIN_WIDTH: usize = 100;

pub struct Show {
    quiet: bool,
    style: Style,
}

impl Show {
    pub fn new(common: &Common) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = match common.color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && !refused && !is_dumb(),
        };
        let width = match console_width() {
            Some(width) if terminal => width,
            _ => PLAIN_WIDTH,
        };
        Show { quiet: common.quiet, style: Style { color, width, unicode: true } }
    }

    pub fn style(&self) -> &Style {
        &self.style
    }

    /// No notes are wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Text for standard output, with nothing in it that steers a terminal and no secret.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        self.painted(&lines(text))
    }

    /// A value as JSON for people and programs.
    pub fn json(&self, value: &(impl Serialize + ?Sized)) -> anyhow::Result<()> {
        self.painted(&json(&serde_json::to_string_pretty(value)?))
    }

    /// Values as one array, as [`Show::json`] writes it, each when it comes.
    pub fn json_array(&self) -> JsonArray {
        JsonArray { out: BufWriter::new(std::io::stdout()), begun: false }
    }

    /// A value as JSON in one line.
    pub fn json_line(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.painted(&json(&serde_json::to_string(value)?))
    }

    /// What `report::terminal` made, its colours in it; the texts in it are clean already. A
    /// reader that went away is not an error of ours.
    pub fn painted(&self, text: &str) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// A note beside the result.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            complain(text);
        }
    }

    /// What must be said even when all else is quiet.
    pub fn warn(&self, text: &str) {
        complain(&format!("warning: {text}"));
    }

    /// Progress for these steps.
    pub fn bar<'a>(&self, steps: impl Iterator<Item = &'a Step>) -> Bar {
        let seconds = |step: &Step| Duration::from_secs_f64(step.estimate().seconds);
        let hidden = self.quiet || !std::io::stderr().is_terminal() || is_dumb();
        Bar::new(steps.map(seconds).collect(), hidden, !self.quiet)
    }

    /// A bar of so many parts, on a terminal only.
    pub fn parts(&self, parts: u64) -> ProgressBar {
        let hidden = self.quiet || !std::io::stderr().is_terminal() || is_dumb();
        plain_bar(parts, hidden)
    }
}

/// An array on standard output of which no more than an element is in memory.
pub struct JsonArray {
    out: BufWriter<Stdout>,
    begun: bool,
}

impl JsonArray {
    pub fn push(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        // Texts in JSON have no line ends: those that there are indent.
        let element = serde_json::to_string_pretty(value)?.replace('\n', "\n  ");
        self.out.write_all(if self.begun { b",\n  " } else { b"[\n  " })?;
        self.begun = true;
        Ok(self.out.write_all(json(&element).as_bytes())?)
    }

    pub fn end(mut self) -> anyhow::Result<()> {
        self.out.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        Ok(self.out.flush()?)
    }
}

/// A line on standard error. That nobody reads it ends nothing.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", lines(text));
}

/// A terminal that knows neither colours nor how to move the cursor.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn console_width() -> Option<usize> {
    let (_, width) = console::Term::stdout().size_checked()?;
    Some(usize::from(width))
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

/// A bar on a terminal; one line a finished run where there is none.
pub struct Bar {
    bar: ProgressBar,
    /// Without a terminal, finished runs are told in lines.
    lines: bool,
    /// What each step is expected to take, from the first on.
    expected: Vec<Duration>,
    step: usize,
    /// Maxima that were said.
    told: Vec<Maximum>,
    /// Operations and time of the last look, for the live rate before the window opens.
    looked: (u64, Duration),
}

impl Bar {
    fn new(expected: Vec<Duration>, hidden: bool, notes: bool) -> Self {
        let bar = plain_bar(1000, hidden);
        Bar {
            bar,
            lines: hidden && notes,
            expected,
            step: 0,
            told: Vec::new(),
            looked: (0, Duration::ZERO),
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// A line above the bar, or on standard error where there is none.
    pub fn say(&self, text: &str) {
        if self.lines {
            complain(text);
        } else {
            self.bar.println(lines(text));
        }
    }

    fn title(&self, step: &Step) -> String {
        let label = line(&step.label);
        if step.is_trial() {
            return format!("calibrating {label}");
        }
        match self.expected.len() {
            // How many it will be is not known.
            0 => format!("{} {label}", self.step),
            all if self.step <= all => format!("{}/{all} {label}", self.step),
            // In place of runs that were not valid: nobody knows how many it takes.
            all => format!("spare {} {label}", self.step - all),
        }
    }

    fn progress(&mut self, step: &Step, progress: &PhaseProgress) {
        let share = progress.done.unwrap_or(0.0);
        self.bar.set_position((share * 1000.0) as u64);
        let stage = match progress.stage {
            PhaseStage::WarmUp => "warm-up  ".to_owned(),
            PhaseStage::Steadying { round, most } => {
                format!("steadying {round} of at most {most}  ")
            }
            PhaseStage::Measure => String::new(),
        };
        let message = format!("{stage}{}{}", self.live(progress), self.left(step, progress));
        self.bar.set_message(message);
    }

    /// The rate of the last interval and its p99; before the window only the rate, over the
    /// time since the last look.
    fn live(&mut self, progress: &PhaseProgress) -> String {
        let live = progress.live;
        if progress.stage == PhaseStage::Measure && live.operations_s > 0.0 {
            let p99 = format::latency(live.p99_ns as f64);
            return format!("{}  p99 {p99}", format::rate(live.operations_s));
        }
        let (operations, elapsed) = self.looked;
        if progress.elapsed < elapsed || progress.operations < operations {
            self.looked = (0, Duration::ZERO);
        }
        let since = progress.elapsed.saturating_sub(self.looked.1).as_secs_f64();
        if since < LEAST_LIVE_S {
            return String::new();
        }
        let rate = (progress.operations - self.looked.0) as f64 / since.max(1e-9);
        if since > 0.5 {
            self.looked = (progress.operations, progress.elapsed);
        }
        format::rate(rate)
    }

    /// What is left of this stage at the pace so far, of this run after it, and of the runs
    /// that follow.
    fn left(&self, step: &Step, progress: &PhaseProgress) -> String {
        let Some(done) = progress.done.filter(|share| *share > 0.01) else {
            return String::new();
        };
        let elapsed = progress.elapsed.as_secs_f64();
        let stage = (elapsed / done - elapsed).max(0.0);
        let window = match progress.stage {
            PhaseStage::Measure => 0.0,
            _ => step.load_config.until.time.map_or(0.0, |time| time.as_secs_f64()),
        };
        let rest: Duration = self.expected.iter().skip(self.step).sum();
        let run = Duration::from_secs_f64(stage + window).as_secs();
        let all = run + rest.as_secs();
        match rest.is_zero() {
            true => format!("  {run} s left"),
            false => format!("  {run} s left, {} in all", format::seconds(all as f64)),
        }
    }
}

impl Listener for Bar {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Preparing { step, why } => {
                let records = step.workload.records;
                self.say(&format!("{}: loading {records} records first: {why}", step.label));
                self.bar.set_prefix(format!("loading {}", line(&step.label)));
            }
            Event::Prepared { seconds } => {
                self.say(&format!("loaded in {}", format::seconds(seconds)));
            }
            Event::Reusing { step } => {
                self.say(&format!("{}: using the data that is there", step.label));
            }
            Event::Restored { step } => {
                self.say(&format!("{}: bringing back the data as it was loaded", step.label));
            }
            Event::Copied { done: true } => {}
            Event::Copied { done: false } => {
                self.say("no room for a copy of the data: it is loaded anew where it is needed");
            }
            Event::Idling { seconds } => {
                let time = format::seconds(seconds);
                self.say(&format!("measuring the power of the idle machine for {time}"));
            }
            Event::KnobsUnavailable { levels, why } => {
                let levels: Vec<String> =
                    levels.0.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
                self.say(&format!("nothing is run at {}: {why}", levels.join(", ")));
            }
            Event::Simulating { step } => {
                self.say(&format!("{}: a pass under cachegrind, which takes a while", step.label));
            }
            Event::RunStarts { step } => {
                self.step += usize::from(!step.is_trial());
                if let Some(maximum) = step.maximum.as_ref().filter(|new| !self.told.contains(new))
                {
                    let rate = format::rate(maximum.rate_ops_s);
                    self.say(&format!("{}: 100 % is {rate}; {}", step.label, maximum.words));
                    self.told.push(maximum.clone());
                }
                self.looked = (0, Duration::ZERO);
                self.bar.set_position(0);
                self.bar.set_prefix(self.title(step));
                self.bar.set_message("");
            }
            Event::Progress { step, progress } => self.progress(step, progress),
            Event::Settling { .. } => self.bar.set_message("the store settles"),
            Event::Saved { step, run } => {
                let mark = if run.valid() { "" } else { "  INVALID" };
                let (rate, seconds) = match run.phase {
                    Phase::Simulate => ("simulated".to_owned(), String::new()),
                    _ => (format::rate(run.throughput()), format::seconds(run.seconds)),
                };
                self.say(&format!("{:<28} {rate:>14}  {seconds:>8}{mark}", self.title(step)));
            }
        }
    }
}
