//! Progress of all hosts: a line for each on a terminal, else lines as they come.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use live::{Feed, RunEnd, RunEvent, RunProgress};
use model::text::line;
use report::format;

use crate::output::{Output, is_dumb, write_stderr};

/// What a host says.
pub enum HostMessage {
    /// Of its runs.
    Run(RunEvent),
    /// A note for people.
    Note(String),
    /// A line of its output.
    Printed(String),
    /// It has ended, so.
    Ended(String),
}

pub struct Board {
    page: Option<Feed>,
    bars: MultiProgress,
    hosts: BTreeMap<String, ProgressBar>,
    /// Without a terminal.
    lines: bool,
    quiet: bool,
}

impl Board {
    pub fn new(hosts: &[String], page: Option<Feed>, show: &Output) -> Board {
        let quiet = show.is_quiet();
        let lines = quiet || !std::io::stderr().is_terminal() || is_dumb();
        let target = match lines {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(5),
        };
        let bars = MultiProgress::with_draw_target(target);
        let width = hosts.iter().map(String::len).max().unwrap_or_default();
        let style = ProgressStyle::with_template("{prefix} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |host: &String| {
            let bar = bars.add(ProgressBar::new(0).with_style(style.clone()));
            bar.set_prefix(format!("{host:<width$}"));
            bar.set_message("begins");
            (host.clone(), bar)
        };
        if let Some(page) = &page {
            let begins = || RunEvent::Stage { label: String::new(), stage: "begins".to_owned() };
            hosts.iter().for_each(|host| page.of_host(host).event(begins()));
        }
        let hosts = hosts.iter().map(bar).collect();
        Board { page, bars, hosts, lines, quiet }
    }

    pub fn take(&mut self, host: &str, message: HostMessage) {
        if let Some(page) = &self.page {
            match &message {
                HostMessage::Run(event) => page.of_host(host).event(event.clone()),
                HostMessage::Ended(how) => page.of_host(host).ended(how),
                HostMessage::Note(_) | HostMessage::Printed(_) => {}
            }
        }
        match message {
            HostMessage::Run(RunEvent::Begins { run, runs, label, .. }) => {
                self.set(host, format!("{} {label}", numbered(run, runs)));
            }
            HostMessage::Run(RunEvent::Progress(progress)) => {
                let RunProgress { warming_up, rate_ops_s, p99_us, left_s, stage, .. } = *progress;
                let Some(bar) = self.hosts.get(host) else { return };
                let run = bar.message();
                let run = run.split("  ").next().unwrap_or_default();
                let mut words = run.to_owned();
                if warming_up {
                    words.push_str(&format!("  {stage}"));
                } else if rate_ops_s > 0.0 {
                    let p99 = format::latency(p99_us * 1e3);
                    words.push_str(&format!("  {}  p99 {p99}", format::rate(rate_ops_s)));
                }
                if let Some(left) = left_s {
                    words.push_str(&format!("  {} left", format::seconds(left as f64)));
                }
                self.set(host, words);
            }
            HostMessage::Run(RunEvent::Ended(end)) => {
                let RunEnd { run, runs, label, rate_ops_s, seconds, valid, .. } = *end;
                let mark = if valid { "" } else { "  INVALID" };
                let (rate, time) = (format::rate(rate_ops_s), format::seconds(seconds));
                let run = numbered(run, runs);
                self.print(&format!("{host}: {run} {label:<28} {rate:>14}  {time:>8}{mark}"));
            }
            HostMessage::Run(RunEvent::Live { .. } | RunEvent::Stage { .. }) => {}
            HostMessage::Note(text) => self.print(&format!("{host}: {text}")),
            HostMessage::Printed(text) => {
                // A plan is what was requested, so it is printed even if notes are not.
                self.bars.suspend(|| println!("{host}: {}", line(&text)));
            }
            HostMessage::Ended(how) => self.set(host, how),
        }
    }

    pub fn finish(&self) {
        let _ = self.bars.clear();
    }

    fn set(&self, host: &str, words: String) {
        if let Some(bar) = self.hosts.get(host) {
            bar.set_message(line(&words).into_owned());
        }
    }

    fn print(&self, text: &str) {
        if self.quiet {
            return;
        }
        match self.lines {
            true => write_stderr(text),
            false => {
                let _ = self.bars.println(line(text));
            }
        }
    }
}

fn numbered(run: usize, runs: usize) -> String {
    match runs {
        0 => run.to_string(),
        all if run <= all => format!("{run}/{all}"),
        all => format!("spare {}", run - all),
    }
}
