//! Readings of a window that is open, as figures of the last second.

use live::PresentReading;
use model::{Origin, Reading, ReadingValue, Unit};

/// The readings of a moment, from two looks at counts that go on.
#[derive(Debug, Default)]
pub struct Present {
    before: Vec<Reading>,
    shown: Vec<PresentReading>,
}

impl Present {
    /// The newest figures; empty before the first look.
    pub fn readings(&self) -> &[PresentReading] {
        &self.shown
    }

    /// Takes a look: the difference to the look before is what happened since.
    pub fn take(&mut self, now: &[Reading]) {
        let looks = Looks { before: &self.before, now };
        let cpu = |signals: &[&str], name: &str| looks.cpus(signals, name);
        let all = [
            cpu(&["cpu.user", "cpu.system"], "cpu.kvmeter"),
            cpu(&["server.cpu"], "cpu.servers"),
            looks.share("machine.busy"),
            looks.share("machine.steal"),
        ];
        let mut shown: Vec<PresentReading> = all.into_iter().flatten().collect();
        shown.extend(now.iter().filter(|reading| reading.unit == Unit::Watts).map(as_it_is));
        let no_power =
            |reading: &&Reading| reading.signal.starts_with("energy.") && reading.value().is_none();
        if !shown.iter().any(|reading| reading.unit == "W") {
            shown.extend(now.iter().find(no_power).map(as_it_is));
        }
        shown.extend(looks.quotient("instructions", "cycles", 1.0, "ipc", ""));
        shown.extend(looks.quotient("llc.misses", "instructions", 1e3, "mpki.llc", "/kinstr"));
        self.shown = shown;
        self.before = now.to_vec();
    }
}

/// Two looks at the same window.
struct Looks<'a> {
    before: &'a [Reading],
    now: &'a [Reading],
}

impl Looks<'_> {
    fn now(&self, signal: &str) -> Option<&Reading> {
        self.now.iter().find(|reading| reading.signal == signal)
    }

    /// Value and window of the look before, or of the beginning.
    fn before(&self, signal: &str) -> (f64, f64) {
        let found = self.before.iter().find(|reading| reading.signal == signal);
        let value = found.and_then(|reading| Some((reading.value()?, reading.window_s)));
        value.unwrap_or_default()
    }

    /// What a count gained, and the seconds of that.
    fn gained(&self, signal: &str) -> Option<(f64, f64)> {
        let now = self.now(signal)?;
        let (value, window_s) = self.before(signal);
        let seconds = now.window_s - window_s;
        (seconds > 0.0).then_some((now.value()? - value, seconds))
    }

    /// CPU seconds a second.
    fn cpus(&self, signals: &[&str], name: &str) -> Option<PresentReading> {
        let first = self.now(signals.first()?)?;
        let each = signals.iter().map(|signal| self.gained(signal).map(|(cpu, s)| cpu / s));
        match each.sum::<Option<f64>>() {
            Some(cpus) => Some(figure(first, name, cpus.max(0.0), "CPUs")),
            None => unavailable(first, name),
        }
    }

    /// A share of time: two means over nested windows have one of the rest.
    fn share(&self, signal: &str) -> Option<PresentReading> {
        let now = self.now(signal)?;
        let (value, window_s) = self.before(signal);
        let Some(mean) = now.value() else { return unavailable(now, signal) };
        let seconds = now.window_s - window_s;
        let share = (mean * now.window_s - value * window_s) / seconds;
        (seconds > 0.0).then(|| figure(now, signal, share.clamp(0.0, 1.0), "share"))
    }

    fn quotient(
        &self,
        part: &str,
        of: &str,
        scale: f64,
        name: &str,
        unit: &str,
    ) -> Option<PresentReading> {
        let gained = self.gained(part).zip(self.gained(of));
        match gained.filter(|(_, (of, _))| *of > 0.0) {
            Some(((part, _), (of, _))) => {
                Some(figure(self.now(name)?, name, scale * part / of, unit))
            }
            None => unavailable(self.now(name)?, name),
        }
    }
}

fn figure(of: &Reading, signal: &str, value: f64, unit: &str) -> PresentReading {
    PresentReading {
        signal: signal.to_owned(),
        value: Some(value),
        unit: unit.to_owned(),
        source: of.source.clone(),
        unavailable: None,
        modelled: of.origin != Origin::Measured,
    }
}

fn as_it_is(reading: &Reading) -> PresentReading {
    match &reading.answer {
        ReadingValue::Value(value) => {
            figure(reading, &reading.signal, *value, reading.unit.symbol())
        }
        unavailable => PresentReading {
            value: None,
            unavailable: unavailable.why(),
            ..figure(reading, &reading.signal, 0.0, reading.unit.symbol())
        },
    }
}

/// The reason of a reading that has none.
fn unavailable(reading: &Reading, name: &str) -> Option<PresentReading> {
    matches!(reading.answer, ReadingValue::Unavailable { .. })
        .then(|| PresentReading { signal: name.to_owned(), ..as_it_is(reading) })
}

#[cfg(test)]
mod tests {
    use model::{Scope, Signal, Unavailable};

    use super::*;

    fn reading(signal: &'static str, unit: Unit, value: f64, window_s: f64) -> Reading {
        Signal::new(signal, unit, Scope::Process, "a test")
            .answered(ReadingValue::Value(value), window_s)
    }

    fn value(present: &Present, signal: &str) -> Option<f64> {
        present.readings().iter().find(|reading| reading.signal == signal)?.value
    }

    #[test]
    fn figures_are_of_the_time_between_two_looks() {
        let look = |user, busy, instructions, window_s| {
            vec![
                reading("cpu.user", Unit::Seconds, user, window_s),
                reading("cpu.system", Unit::Seconds, 0.5 * window_s, window_s),
                reading("machine.busy", Unit::Ratio, busy, window_s),
                reading("instructions", Unit::Count, instructions, window_s),
                reading("cycles", Unit::Count, 1000.0 * window_s, window_s),
                reading("ipc", Unit::Ratio, 9.0, window_s),
                reading("power.package", Unit::Watts, 55.0, window_s),
            ]
        };
        let mut present = Present::default();
        present.take(&look(1.0, 0.2, 1000.0, 1.0));
        assert_eq!(value(&present, "cpu.kvmeter"), Some(1.5));
        present.take(&look(4.0, 0.5, 4000.0, 2.0));
        assert_eq!(value(&present, "cpu.kvmeter"), Some(3.5));
        // 0.5 over two seconds after 0.2 over the first: 0.8 in the second.
        assert!((value(&present, "machine.busy").unwrap() - 0.8).abs() < 1e-9);
        assert_eq!(value(&present, "ipc"), Some(3.0));
        assert_eq!(value(&present, "power.package"), Some(55.0));
        assert_eq!(value(&present, "cpu.servers"), None, "there is no server here");
    }

    #[test]
    fn what_is_unavailable_keeps_its_reason() {
        let absent = |name| {
            let why = Unavailable::new("no RAPL here", "take a meter");
            Signal::new(name, Unit::Joules, Scope::Package, "RAPL").answered(why.into(), 1.0)
        };
        let mut present = Present::default();
        present.take(&[absent("energy.total"), absent("ipc")]);
        let words: Vec<_> =
            present.readings().iter().filter_map(|reading| reading.unavailable.clone()).collect();
        assert_eq!(words, ["no RAPL here; take a meter"; 2]);
    }
}
