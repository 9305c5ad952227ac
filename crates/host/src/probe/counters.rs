//! Probes that read counters at both ends of a window.

use std::time::Duration;

use model::{Reading, Unavailable};

use super::{Probe, Signal, SignalWindow};

/// The values of each signal's counter or level, in the signals' order.
pub(super) type CounterValues = Result<Vec<Result<u64, Unavailable>>, Unavailable>;

/// Units of the signal in one step of the counter.
#[derive(Clone, Copy)]
pub(super) struct Scale(pub f64);

pub(super) struct Counters {
    signals: &'static [Signal],
    scales: Vec<Scale>,
    read: Box<dyn FnMut() -> CounterValues + Send>,
    before: CounterValues,
}

impl Counters {
    /// `read` must return one value for each of `signals` and `scales`.
    pub fn new(
        signals: &'static [Signal],
        scales: Vec<Scale>,
        read: impl FnMut() -> CounterValues + Send + 'static,
    ) -> Self {
        let before = Err(Unavailable::new("the probe was not started", "start it first"));
        Counters { signals, scales, read: Box::new(read), before }
    }

    /// Counters in the signals' own units.
    pub fn plain(
        signals: &'static [Signal],
        read: impl FnMut() -> CounterValues + Send + 'static,
    ) -> Self {
        Counters::new(signals, vec![Scale(1.0); signals.len()], read)
    }
}

impl Probe for Counters {
    fn start(&mut self) {
        self.before = (self.read)();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let after = (self.read)();
        let value = |at: usize, signal: &Signal| {
            let end = pick(&after, at)?;
            let gained = match signal.covers {
                SignalWindow::End => end,
                SignalWindow::Window => gained(signal, pick(&self.before, at)?, end)?,
            };
            Ok(gained as f64 * self.scales[at].0)
        };
        let signals = self.signals.iter().enumerate();
        signals.map(|(at, signal)| signal.reading(value(at, signal), window)).collect()
    }

    fn peek(&mut self, window: Duration) -> Vec<Reading> {
        // The beginning stays, so that the end reads the whole window.
        self.stop(window)
    }
}

/// Counters of devices; the readings name the devices.
pub(super) struct OfDevices {
    pub(super) counters: Counters,
    /// Empty: none.
    pub(super) devices: String,
    /// Signals that are not of these devices.
    pub(super) except: &'static [&'static str],
}

impl Probe for OfDevices {
    fn start(&mut self) {
        self.counters.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let mut readings = self.counters.stop(window);
        if !self.devices.is_empty() {
            let of = |reading: &&mut Reading| !self.except.contains(&reading.signal.as_str());
            for reading in readings.iter_mut().filter(of) {
                reading.source = format!("{} of {}", reading.source, self.devices);
            }
        }
        readings
    }
}

fn pick(read: &CounterValues, at: usize) -> Result<u64, Unavailable> {
    match read {
        Ok(values) => values[at].clone(),
        Err(why) => Err(why.clone()),
    }
}

/// The gain of a counter; an error if it went down.
pub(super) fn gained(signal: &Signal, before: u64, after: u64) -> Result<u64, Unavailable> {
    after.checked_sub(before).ok_or_else(|| {
        Unavailable::new(
            format!("the counter {} went back from {before} to {after}", signal.source),
            "repeat the run; if it happens again, the kernel resets this counter",
        )
    })
}

#[cfg(test)]
mod tests {
    use model::{Scope, Unit};

    use super::*;

    const SIGNALS: &[Signal] = &[Signal::new("events", Unit::Count, Scope::Machine, "a test")];

    #[test]
    fn a_look_leaves_the_window_whole() {
        let mut count = 0;
        let mut probe = Counters::plain(SIGNALS, move || {
            count += 10;
            Ok(vec![Ok(count)])
        });
        probe.start();
        let second = Duration::from_secs(1);
        assert_eq!(probe.peek(second)[0].value(), Some(10.0));
        assert_eq!(probe.peek(2 * second)[0].value(), Some(20.0));
        let whole = &probe.stop(3 * second)[0];
        assert_eq!((whole.value(), whole.window_s), (Some(30.0), 3.0));
    }
}
