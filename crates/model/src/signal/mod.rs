//! The catalogue of signals: what each name of a reading stands for.
//!
//! A probe declares its signals beside the code that reads them. [`RUN_SIGNALS`] has all others:
//! those of stores, servers, clients and simulations, and those that are derived when a run ends.

mod of_runs;

use std::time::Duration;

use crate::{Origin, Reading, ReadingValue, Scope, Unavailable, Unit};

pub use of_runs::*;

/// The time that a signal covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalWindow {
    /// All of the window: a difference, a share or a maximum.
    Window,
    /// The instant at the window's end.
    End,
}

/// One number that is read around a run, or derived from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signal {
    /// Dotted, whose first part is the group: `io.written`. Capitals stand for what only the
    /// machine, the store or the user can name: `N` for a number, any other word for a name
    /// (`volume.N.busy`, `residency.STATE`).
    pub name: &'static str,
    pub unit: Unit,
    pub scope: Scope,
    /// The file and field, or the call, e.g. `/proc/self/io: write_bytes`.
    pub source: &'static str,
    pub covers: SignalWindow,
    /// Whether it is measured, modelled or simulated.
    pub origin: Origin,
    /// Whether it is computed from other signals when the run has ended.
    pub derived: bool,
    /// Whether 0 means that nothing counts here.
    pub never_zero: bool,
}

impl Signal {
    /// A signal over the whole window.
    pub const fn new(name: &'static str, unit: Unit, scope: Scope, source: &'static str) -> Self {
        Signal {
            name,
            unit,
            scope,
            source,
            covers: SignalWindow::Window,
            origin: Origin::Measured,
            derived: false,
            never_zero: false,
        }
    }

    /// The signal at the instant of the window's end.
    pub const fn at_end(mut self) -> Self {
        self.covers = SignalWindow::End;
        self
    }

    /// The signal as computed by a model and not measured.
    pub const fn modelled(mut self) -> Self {
        self.origin = Origin::Modelled;
        self
    }

    /// The signal as simulated and not measured.
    pub const fn simulated(mut self) -> Self {
        self.origin = Origin::Simulated;
        self
    }

    /// The signal as computed from others.
    pub const fn derived(mut self) -> Self {
        self.derived = true;
        self
    }

    /// The signal of something that a running machine always has: 0 is unavailable.
    pub const fn never_zero(mut self) -> Self {
        self.never_zero = true;
        self
    }

    /// The same of one part, whose name has capitals: `volume.N.busy` of `volume.busy`.
    pub const fn of_parts(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Whether a reading of this name is one of this signal.
    pub fn is_named(&self, name: &str) -> bool {
        matches(self.name, name)
    }

    /// The name with its first capitals replaced by those of a part.
    pub fn name_of(&self, part: &str) -> String {
        match placeholder(self.name) {
            Some((before, _, after)) => format!("{before}{part}{after}"),
            None => self.name.to_owned(),
        }
    }

    /// The reading of this signal over `window`.
    pub fn reading(&self, value: Result<f64, Unavailable>, window: Duration) -> Reading {
        let answer = match value {
            Ok(0.0) if self.never_zero => did_not_move(self.name).into(),
            Ok(value) => ReadingValue::Value(value),
            Err(why) => why.into(),
        };
        self.answered(answer, window.as_secs_f64())
    }

    /// The reading of a known value over a window in seconds.
    pub fn value(&self, value: f64, window_s: f64) -> Reading {
        self.answered(ReadingValue::Value(value), window_s)
    }

    /// The reading of this signal over a window in seconds: a value, or why there is none.
    pub fn answered(&self, answer: ReadingValue, window_s: f64) -> Reading {
        Reading {
            signal: self.name.to_owned(),
            answer,
            unit: self.unit,
            scope: self.scope,
            source: self.source.to_owned(),
            window_s: match self.covers {
                SignalWindow::Window => window_s,
                SignalWindow::End => 0.0,
            },
            origin: self.origin,
        }
    }
}

/// Why a zero count is unavailable where there was something to count.
pub fn did_not_move(counter: &str) -> Unavailable {
    Unavailable::new(
        format!("the counter of {counter} did not move: this machine does not count it"),
        "measure on bare metal, or on an instance type that passes the counters on",
    )
}

/// What stands before the first capitals of a name, they themselves, and what stands behind.
fn placeholder(name: &str) -> Option<(&str, &str, &str)> {
    let begin = name.find(|c: char| c.is_ascii_uppercase())?;
    let (before, rest) = name.split_at(begin);
    let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    Some((before, word, after))
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, word, after)) = placeholder(pattern) else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let fits = |part: &str| word != "N" || part.bytes().all(|byte| byte.is_ascii_digit());
    let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.map(|end| rest.split_at(end)).any(|(part, rest)| fits(part) && matches(after, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pattern: &'static str, name: &str) -> bool {
        Signal::new(pattern, Unit::Count, Scope::Machine, "a file").is_named(name)
    }

    #[test]
    fn capitals_stand_for_the_name_of_a_part() {
        for (pattern, name) in [
            ("volume.N.busy", "volume.1.busy"),
            ("volume.N.busy", "volume.12.busy"),
            ("residency.STATE", "residency.C1E"),
            ("energy.hwmon.SENSOR", "energy.hwmon.ina226.vdd_12v"),
            ("ipc.cpuN", "ipc.cpu3"),
            ("agent.N.SIGNAL", "agent.2.cpu.user"),
            ("simulated.neighbour.NAME.accesses", "simulated.neighbour.scan.accesses"),
            ("io.written", "io.written"),
        ] {
            assert!(named(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("volume.N.busy", "volume.busy"),
            ("volume.N.busy", "volume.x.busy"),
            ("volume.N.busy", "volume.1.busyness"),
            ("residency.STATE", "residency."),
            ("ipc.cpuN", "ipc.cpu"),
            ("io.written", "io.writte"),
        ] {
            assert!(!named(pattern, name), "{pattern} {name}");
        }
        let volume = Signal::new("volume.N.busy", Unit::Ratio, Scope::Device, "a file");
        assert_eq!(volume.name_of("2"), "volume.2.busy");
    }

    #[test]
    fn no_two_signals_of_runs_share_a_name() {
        let mut names: Vec<&str> = RUN_SIGNALS.iter().map(|signal| signal.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
