use std::time::Duration;

use model::{Origin, Reading, ReadingValue, Scope, Unavailable, Unit};

use crate::perf::did_not_move;

/// The time that a signal covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalWindow {
    /// All of the window: a difference, a share or a maximum.
    Window,
    /// The instant at the window's end.
    End,
}

/// One number that a probe reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signal {
    /// Dotted, whose first part is the group: `io.written`.
    pub name: &'static str,
    pub unit: Unit,
    pub scope: Scope,
    /// The file and field, or the call, e.g. `/proc/self/io: write_bytes`.
    pub source: &'static str,
    pub covers: SignalWindow,
    /// Whether it is measured, modelled or simulated.
    pub origin: Origin,
    /// Whether a running machine always has some of it, so that 0 says that nothing is counted.
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

    /// The signal of something that a running machine always has: 0 is unavailable.
    pub const fn never_zero(mut self) -> Self {
        self.never_zero = true;
        self
    }

    /// The reading of this signal over `window`.
    pub fn reading(&self, value: Result<f64, Unavailable>, window: Duration) -> Reading {
        Reading {
            signal: self.name.to_owned(),
            answer: match value {
                Ok(0.0) if self.never_zero => did_not_move(self.name).into(),
                Ok(value) => ReadingValue::Value(value),
                Err(why) => why.into(),
            },
            unit: self.unit,
            scope: self.scope,
            source: self.source.to_owned(),
            window_s: match self.covers {
                SignalWindow::Window => window.as_secs_f64(),
                SignalWindow::End => 0.0,
            },
            origin: self.origin,
        }
    }
}
