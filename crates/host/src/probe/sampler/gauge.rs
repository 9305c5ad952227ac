use std::time::{Duration, Instant};

use model::{Reading, Series, Signal, Unavailable, Unit};

use super::summary::{SampleSummary, summary};

/// A sensor with a present value: watts, degrees, hertz.
pub trait Gauge: Send {
    /// Must return within a second or two.
    fn read(&mut self) -> Result<f64, Unavailable>;
}

impl<F: FnMut() -> Result<f64, Unavailable> + Send> Gauge for F {
    fn read(&mut self) -> Result<f64, Unavailable> {
        self()
    }
}

/// The kind of value of a gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::probe) enum Kind {
    /// A present value: watts, degrees.
    Level,
    /// A running total: joules. Its series is the rate between two samples.
    Counter,
}

/// A sensor that fails this often in a row is not read again in this window.
const MAX_FAILURES: u32 = 5;

/// A gap of more intervals is not interpolated.
const MAX_GAP: u32 = 4;

/// A gauge and its samples around a window.
pub(super) struct Track {
    gauge: Box<dyn Gauge>,
    pub every: Duration,
    pub kind: Kind,
    /// Unit and scope of the series.
    signal: Signal,
    name: String,
    source: String,
    samples: Vec<(Instant, f64)>,
    failures: u32,
    /// Why the last reading failed, if it did.
    failed: Option<Unavailable>,
    /// Why there is too large a gap in the window.
    gap: Option<Unavailable>,
    opened: Option<Instant>,
    closed: Option<Instant>,
    /// The window of the run, for a level, if it lies within those two.
    narrow: Option<(Instant, Instant)>,
}

impl Track {
    pub fn new(
        signal: Signal,
        name: String,
        source: String,
        (kind, every): (Kind, Duration),
        gauge: Box<dyn Gauge>,
    ) -> Self {
        Track {
            gauge,
            every,
            kind,
            signal,
            name,
            source,
            samples: Vec::new(),
            failures: 0,
            failed: None,
            gap: None,
            opened: None,
            closed: None,
            narrow: None,
        }
    }

    /// Sets the window of the run for a level: samples are interpolated, so any part of their time
    /// can be summarised.
    pub fn set_run_window(&mut self, opened: Instant, closed: Instant) {
        self.narrow = Some((opened, closed)).filter(|_| self.kind == Kind::Level);
    }

    /// The length of the run's window, if it was set.
    pub fn run_window(&self) -> Option<Duration> {
        self.narrow.map(|(opened, closed)| closed - opened)
    }

    /// Takes a sample, unless the sensor was given up.
    pub fn sample(&mut self) {
        if self.failures >= MAX_FAILURES || self.closed.is_some() {
            return;
        }
        self.read_gauge();
    }

    fn read_gauge(&mut self) {
        let before = Instant::now();
        let value = self.gauge.read().and_then(|value| match value.is_finite() {
            true => Ok(value),
            false => Err(Unavailable::new(
                format!("{} answered {value}, which is not a number", self.source),
                "check the sensor",
            )),
        });
        match value {
            Ok(value) => {
                // The value is of some instant during the call.
                let at = before + before.elapsed() / 2;
                let last = self.samples.last().map(|(last, _)| *last);
                let gap = last.map_or(Duration::ZERO, |last| at - last);
                if let Some(why) = self.failed.take()
                    && gap > self.every * MAX_GAP
                {
                    self.gap = Some(why);
                }
                self.failures = 0;
                self.samples.push((at, value));
            }
            Err(why) => {
                self.failures += 1;
                self.failed = Some(why);
            }
        }
    }

    /// Begins the window, after a first sample.
    pub fn open(&mut self) {
        (self.failures, self.gap, self.closed, self.narrow) = (0, None, None, None);
        let last = self.samples.last().copied();
        self.samples.clear();
        match last {
            // A counter is read at both edges. A level is not read twice in a row, as that may take
            // a while and it is interpolated across the edge.
            Some(last)
                if self.kind == Kind::Level
                    && last.0.elapsed() <= self.every
                    && self.failed.is_none() =>
            {
                self.samples.push(last);
            }
            _ => {
                self.failed = None;
                self.read_gauge();
            }
        }
        self.opened = Some(Instant::now());
    }

    /// Ends the window, and takes a sample after it.
    pub fn close(&mut self) {
        let now = Instant::now();
        if self.failures < MAX_FAILURES && self.samples.last().is_none_or(|(at, _)| *at < now) {
            self.read_gauge();
        }
        self.closed = Some(now);
    }

    /// The summary of the window between `open` and `close`; a level is interpolated at both edges.
    pub fn summary(&self) -> Result<SampleSummary, Unavailable> {
        if let Some(why) = self.failed.clone().or_else(|| self.gap.clone()) {
            return Err(why);
        }
        let none = || Unavailable::new("the gauge was not sampled", "start the probe first");
        let whole = self.opened.zip(self.closed).ok_or_else(none)?;
        let (opened, closed) = self.narrow.unwrap_or(whole);
        let samples = self.since(opened);
        let end = (closed - opened).as_secs_f64();
        // A counter is read at both edges, and its gain is between those readings.
        let (from, to) = match (self.kind, samples.first(), samples.last()) {
            (Kind::Counter, Some((first, _)), Some((last, _))) if *first <= 0.0 && *last >= end => {
                (*first, *last)
            }
            _ => (0.0, end),
        };
        summary(&samples, from, to).ok_or_else(|| {
            Unavailable::new(
                format!("{} did not answer at the window's edges", self.source),
                "repeat the run",
            )
        })
    }

    /// What the gauge shows now: the last sample of a level, the last rate of a counter.
    pub fn present(&self, window: Duration) -> Reading {
        let seconds = self.samples.first().map(|(first, _)| self.since(*first));
        let value = match (&self.failed, self.kind, seconds.as_deref()) {
            (Some(why), ..) => Err(why.clone()),
            (None, Kind::Level, Some([.., (_, value)])) => Ok(*value),
            (None, Kind::Counter, Some([.., before, after])) => {
                rate(&[*before, *after]).map(|(_, rate)| rate).ok_or_else(|| {
                    Unavailable::new(format!("{} went back", self.source), "wait for a sample")
                })
            }
            _ => Err(Unavailable::new("the gauge was not sampled yet", "wait for a sample")),
        };
        let value = value.and_then(|value| match self.signal.unit == Unit::Watts && value == 0.0 {
            true => Err(Unavailable::new(
                format!("{} shows 0 W, which no running machine draws", self.source),
                "check that it measures this machine; or take another sensor",
            )),
            false => Ok(value),
        });
        let mut reading = self.signal.reading(value, window);
        reading.signal.clone_from(&self.name);
        reading.source.clone_from(&self.source);
        reading
    }

    /// The samples as (s since `zero`, value).
    fn since(&self, zero: Instant) -> Vec<(f64, f64)> {
        let seconds = |at: Instant| match at.checked_duration_since(zero) {
            Some(after) => after.as_secs_f64(),
            None => -(zero - at).as_secs_f64(),
        };
        self.samples.iter().map(|(at, value)| (seconds(*at), *value)).collect()
    }

    pub fn series(&self, zero: Instant) -> Series {
        let samples = self.since(zero);
        let (at_s, values) = match self.kind {
            Kind::Level => samples.into_iter().unzip(),
            Kind::Counter => samples.windows(2).filter_map(rate).unzip(),
        };
        Series {
            signal: self.name.clone(),
            unit: self.signal.unit,
            scope: self.signal.scope,
            source: self.source.clone(),
            origin: self.signal.origin,
            at_s,
            values,
        }
    }
}

/// The rate between two samples of a counter, at their middle; none if it went back.
fn rate(pair: &[(f64, f64)]) -> Option<(f64, f64)> {
    let ((before, from), (after, to)) = (pair[0], pair[1]);
    (after > before && to >= from).then(|| ((before + after) / 2.0, (to - from) / (after - before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Scope, Unit};

    const POWER: Signal = Signal::new("power.test", Unit::Watts, Scope::Node, "a test");

    fn track(every: Duration, answers: Vec<Result<f64, Unavailable>>) -> Track {
        let mut answers = answers.into_iter();
        let gauge = move || answers.next().expect("asked too often");
        let level = (Kind::Level, every);
        Track::new(POWER, "power.test".into(), "a test".into(), level, Box::new(gauge))
    }

    fn sensor_lost() -> Result<f64, Unavailable> {
        Err(Unavailable::new("the sensor is gone", "plug it in"))
    }

    #[test]
    fn a_window_is_framed_by_two_samples() {
        let mut track = track(Duration::from_secs(1), vec![Ok(100.0), Ok(200.0), Ok(100.0)]);
        track.open();
        track.sample();
        track.close();
        let summarised = track.summary().unwrap();
        assert!(summarised.minimum >= 100.0 && summarised.maximum <= 200.0, "{summarised:?}");
        assert!(summarised.mean > 100.0 && summarised.integral > 0.0, "{summarised:?}");
        let series = track.series(track.opened.unwrap());
        assert_eq!(series.values, [100.0, 200.0, 100.0]);
        assert!(series.at_s[0] <= 0.0 && series.at_s.is_sorted(), "{:?}", series.at_s);
    }

    #[test]
    fn what_a_gauge_shows_now_is_its_last_sample_or_why_there_is_none() {
        let now = |track: &Track| track.present(Duration::ZERO);
        let mut level =
            track(Duration::from_secs(1), vec![Ok(100.0), Ok(200.0), sensor_lost(), Ok(0.0)]);
        assert_eq!(now(&level).value(), None, "it was not sampled yet");
        level.open();
        level.sample();
        assert_eq!(now(&level).value(), Some(200.0));
        level.sample();
        let lost = model::ReadingValue::from(Unavailable::new("the sensor is gone", "plug it in"));
        assert_eq!(now(&level).answer, lost);
        level.sample();
        assert_eq!(now(&level).value(), None, "no running machine draws nothing");
        let mut answers = [1000.0, 1050.0].into_iter();
        let joules = (Kind::Counter, Duration::from_secs(1));
        let gauge = move || Ok(answers.next().expect("asked too often"));
        let mut counter =
            Track::new(POWER, "power.test".into(), "a test".into(), joules, Box::new(gauge));
        counter.open();
        assert_eq!(now(&counter).value(), None, "a rate needs two samples");
        std::thread::sleep(Duration::from_millis(20));
        counter.sample();
        let watts = now(&counter).value().unwrap();
        assert!(watts > 50.0 && watts <= 50.0 / 0.02, "{watts}");
    }

    #[test]
    fn a_failure_at_an_edge_leaves_no_summary() {
        for answers in [vec![sensor_lost(), sensor_lost()], vec![Ok(1.0), sensor_lost()]] {
            let mut track = track(Duration::from_secs(1), answers);
            track.open();
            track.close();
            assert_eq!(track.summary().unwrap_err().reason, "the sensor is gone");
        }
        // It came back after the window had begun: what was before is not known.
        let mut late = track(Duration::from_secs(1), vec![sensor_lost(), Ok(1.0)]);
        late.open();
        late.close();
        assert!(late.summary().is_err());
    }

    #[test]
    fn bridges_one_miss_but_no_long_gap() {
        let answers = || vec![Ok(1.0), sensor_lost(), Ok(3.0), Ok(3.0)];
        let mut patient = track(Duration::from_secs(60), answers());
        let mut strict = track(Duration::from_nanos(1), answers());
        for track in [&mut patient, &mut strict] {
            track.open();
            track.sample();
            track.sample();
            track.close();
        }
        assert!(patient.summary().is_ok());
        assert_eq!(strict.summary().unwrap_err().reason, "the sensor is gone");
    }

    #[test]
    fn a_dead_sensor_is_given_up_until_the_next_window() {
        let mut answers = vec![Ok(1.0)];
        answers.extend((0..MAX_FAILURES).map(|_| sensor_lost()));
        answers.extend([Ok(7.0), Ok(7.0)]);
        let mut track = track(Duration::from_secs(1), answers);
        track.open();
        for _ in 0..50 {
            track.sample();
        }
        track.close();
        assert_eq!(track.summary().unwrap_err().reason, "the sensor is gone");
        track.open();
        track.close();
        assert_eq!(track.summary().unwrap().mean, 7.0);
    }

    #[test]
    fn a_counter_s_series_is_its_rate() {
        assert_eq!(rate(&[(1.0, 10.0), (3.0, 50.0)]), Some((2.0, 20.0)));
        assert_eq!(rate(&[(1.0, 10.0), (3.0, 5.0)]), None);
        assert_eq!(rate(&[(1.0, 10.0), (1.0, 15.0)]), None);
    }

    #[test]
    fn rejects_values_that_are_no_number() {
        let mut track = track(Duration::from_secs(1), vec![Ok(f64::NAN), Ok(f64::INFINITY)]);
        track.open();
        track.close();
        assert!(track.summary().unwrap_err().reason.contains("not a number"));
    }
}
