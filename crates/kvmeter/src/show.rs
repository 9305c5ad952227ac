//! What a person sees: tables on standard output, progress and notes on standard error.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use drive::{Progress, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::{Style, format};
use study::{Event, Listener, Step};

use crate::args::{Common, When};

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
            When::Auto => terminal && !refused,
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

    /// Text for standard output; a reader that went away is not an error of ours.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
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
            eprintln!("{text}");
        }
    }

    pub fn bar(&self, steps: usize) -> Bar {
        let hidden = self.quiet || !std::io::stderr().is_terminal();
        Bar::new(steps, hidden, !self.quiet)
    }
}

fn console_width() -> Option<usize> {
    let (_, width) = console::Term::stdout().size_checked()?;
    Some(usize::from(width))
}

/// A bar on a terminal; one line a finished run where there is none.
pub struct Bar {
    bar: ProgressBar,
    /// Without a terminal, finished runs are told in lines.
    lines: bool,
    step: usize,
    steps: usize,
}

impl Bar {
    fn new(steps: usize, hidden: bool, notes: bool) -> Self {
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        let style = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        Bar { bar, lines: hidden && notes, step: 0, steps }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, text: &str) {
        if self.lines {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    fn title(&self, step: &Step) -> String {
        format!("{}/{} {}", self.step, self.steps, step.label)
    }
}

impl Listener for Bar {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Preparing { step, why } => {
                self.say(&format!(
                    "{}: loading {} records first: {why}",
                    step.label, step.workload.records
                ));
                self.bar.set_prefix(format!("loading {}", step.label));
            }
            Event::Prepared { seconds } => self.say(&format!("loaded in {seconds:.1} s")),
            Event::Reusing { step } => {
                self.say(&format!("{}: using the data that is there", step.label));
            }
            Event::Begins { step } => {
                self.step += 1;
                self.bar.set_position(0);
                self.bar.set_prefix(self.title(step));
                self.bar.set_message("");
            }
            Event::Progress { progress, .. } => self.progress(progress),
            Event::Settling { .. } => self.bar.set_message("the store settles"),
            Event::Kept { step, run } => {
                let mark = if run.valid() { "" } else { "  INVALID" };
                self.say(&format!(
                    "{:<28} {:>14}  {:>8}{mark}",
                    self.title(step),
                    format::rate(run.throughput()),
                    format::seconds(run.seconds),
                ));
            }
        }
    }
}

impl Bar {
    fn progress(&self, progress: &Progress) {
        let share = progress.done.unwrap_or(0.0);
        self.bar.set_position((share * 1000.0) as u64);
        let stage = match progress.stage {
            Stage::WarmUp => "warm-up ".to_owned(),
            Stage::Steadying { round, most } => format!("steadying {round} of at most {most} "),
            Stage::Measure => String::new(),
        };
        // The rate so far, so that the time left is what it would be at that rate.
        let left = progress.done.filter(|share| *share > 0.01).map(|share| {
            let elapsed = progress.elapsed.as_secs_f64();
            Duration::from_secs_f64((elapsed / share - elapsed).max(0.0))
        });
        let left = left.map_or(String::new(), |left| format!("  {} s left", left.as_secs()));
        let live = progress.live;
        let seen = if live.operations_s > 0.0 {
            format!(
                "{}  p99 {}",
                format::rate(live.operations_s),
                format::latency(live.p99_ns as f64)
            )
        } else {
            String::new()
        };
        self.bar.set_message(format!("{stage}{seen}{left}"));
    }
}
