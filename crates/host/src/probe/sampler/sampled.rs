use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{Origin, Reading, Series, Signal, Unavailable, Unit};

use super::SamplerTask;
use super::gauge::{Gauge, Kind, Track};
use super::summary::SampleSummary;
use crate::probe::Probe;

/// The figure that a reading takes from a gauge over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::probe) enum Take {
    Maximum,
    /// The mean of a level in watts, or what a counter of joules gained a second.
    Watts,
    /// The integral of a level in watts, or what a counter of joules gained.
    Joules,
}

/// A gauge and the name of its series.
#[derive(Debug, Clone, Copy)]
pub(in crate::probe) struct Sensor<'a> {
    /// Names the series, and gives its unit and scope: watts for a counter of joules.
    pub signal: Signal,
    /// One of several parts: the series is then called `SIGNAL.PART`. Else empty.
    pub part: &'a str,
    /// Which sensor it is; stands behind the signal's source. May be empty.
    pub which: &'a str,
    pub kind: Kind,
    pub every: Duration,
}

/// One gauge of a [`Sampled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::probe) struct Handle(usize);

/// A probe of gauges that the sampler thread reads. Give it its gauges, then its
/// readings: those of the probe's signals in their order, then those of parts.
#[derive(Default)]
pub(in crate::probe) struct Sampled {
    tracks: Vec<Arc<Mutex<Track>>>,
    which: Vec<String>,
    requests: Vec<SampleRequest>,
    /// The shortest window of these gauges, and their name.
    shortest: Option<(Duration, &'static str)>,
}

struct SampleRequest {
    signal: Signal,
    /// The signal's own name, or a part's.
    name: String,
    source: String,
    /// The sum over these gauges.
    value: Result<(Vec<Handle>, Take), Unavailable>,
}

impl Sampled {
    /// A probe of gauges that need a window of `shortest` or more; `whose` names them.
    pub fn over_at_least(shortest: Duration, whose: &'static str) -> Sampled {
        Sampled { shortest: Some((shortest, whose)), ..Sampled::default() }
    }

    pub fn gauge(&mut self, sensor: Sensor<'_>, gauge: impl Gauge + 'static) -> Handle {
        let Sensor { signal, part, which, kind, every } = sensor;
        let (name, source) = (named(&signal, part), sourced(&signal, which));
        let track = Track::new(signal, name, source, (kind, every), Box::new(gauge));
        self.tracks.push(Arc::new(Mutex::new(track)));
        self.which.push(which.to_owned());
        Handle(self.tracks.len() - 1)
    }

    /// Adds the reading of a signal: the sum over one or more gauges.
    pub fn reading(&mut self, signal: Signal, of: &[Handle], take: Take) {
        self.part(signal, "", of, take);
    }

    /// Adds the reading of a part, called `SIGNAL.PART`.
    pub fn part(&mut self, signal: Signal, part: &str, of: &[Handle], take: Take) {
        let which: Vec<&str> = of.iter().map(|handle| self.which[handle.0].as_str()).collect();
        let (name, source) = (named(&signal, part), sourced(&signal, &which.join(", ")));
        self.requests.push(SampleRequest { signal, name, source, value: Ok((of.to_vec(), take)) });
    }

    /// Adds the reading of a signal that is unavailable here.
    pub fn absent(&mut self, signal: Signal, why: Unavailable) {
        let (name, source) = (signal.name.to_owned(), signal.source.to_owned());
        self.requests.push(SampleRequest { signal, name, source, value: Err(why) });
    }
}

/// The summary of a gauge over a window.
struct SampledWindow {
    kind: Kind,
    summary: Result<SampleSummary, Unavailable>,
    /// Where it is not the probe's own window.
    window: Option<Duration>,
}

impl SampledWindow {
    fn of(track: &Track) -> SampledWindow {
        SampledWindow { kind: track.kind, summary: track.summary(), window: track.run_window() }
    }
}

fn named(signal: &Signal, part: &str) -> String {
    if part.is_empty() { signal.name.to_owned() } else { format!("{}.{part}", signal.name) }
}

fn sourced(signal: &Signal, which: &str) -> String {
    if which.is_empty() { signal.source.to_owned() } else { format!("{} {which}", signal.source) }
}

/// A sample that panicked leaves the others as they were, so a poisoned lock is ignored.
fn locked(track: &Mutex<Track>) -> MutexGuard<'_, Track> {
    track.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a source of power that showed zero for a whole window, as no running machine draws
/// nothing: a hypervisor's idle counter, an unused plug, a program without its sensor.
fn nothing_drawn(
    summary: &SampleSummary,
    kind: Kind,
    window: Duration,
    which: &str,
) -> Option<Unavailable> {
    let what = match kind {
        Kind::Level if summary.minimum == 0.0 && summary.maximum == 0.0 => "showed 0 W",
        Kind::Counter if summary.gain == 0.0 => "stood still",
        _ => return None,
    };
    Some(Unavailable::new(
        format!("{which} {what} for all of {window:.1?}, which no running machine does"),
        "check that it measures this machine, and measure for longer; or take another sensor \
         (DCMI, hwmon, a meter), or a power model",
    ))
}

/// The figure of one gauge for a reading. `which` names the gauge.
fn window_value(
    summary: &SampleSummary,
    kind: Kind,
    take: Take,
    which: &str,
) -> Result<f64, Unavailable> {
    let gain = || match summary.falls {
        false => Ok(summary.gain),
        true => Err(Unavailable::new(
            format!("the counter {which} went back in the window"),
            "repeat the run; if it happens again, the sensor resets this counter",
        )),
    };
    match (take, kind) {
        (Take::Watts, Kind::Level) => Ok(summary.mean),
        (Take::Maximum, _) => Ok(summary.maximum),
        (Take::Joules, Kind::Level) => Ok(summary.integral),
        (Take::Joules, Kind::Counter) => gain(),
        (Take::Watts, Kind::Counter) if summary.seconds > 0.0 => Ok(gain()? / summary.seconds),
        (Take::Watts, Kind::Counter) => {
            Err(Unavailable::new("the window has no length", "measure for a second or longer"))
        }
    }
}

impl Probe for Sampled {
    fn start(&mut self) {
        for track in &self.tracks {
            locked(track).open();
        }
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        // In the other order, as the probes are: the gauges' windows are nested.
        for track in self.tracks.iter().rev() {
            locked(track).close();
        }
        let windows: Vec<SampledWindow> =
            self.tracks.iter().map(|track| SampledWindow::of(&locked(track))).collect();
        let value = |request: &SampleRequest| {
            let (of, take) = request.value.clone()?;
            let mut still = None;
            let each = of.iter().map(|Handle(at)| {
                let SampledWindow { kind, summary, .. } = &windows[*at];
                let (summary, which) = (summary.as_ref().map_err(Clone::clone)?, &self.which[*at]);
                if take != Take::Maximum && still.is_none() {
                    still = nothing_drawn(summary, *kind, window, which);
                }
                window_value(summary, *kind, take, which)
            });
            let sum = each.sum::<Result<f64, Unavailable>>()?;
            if let Some((shortest, whose)) = self.shortest.filter(|(least, _)| window < *least) {
                return Err(Unavailable::new(
                    format!("the window of {window:.0?} is too short for {whose}"),
                    format!("measure for {shortest:.0?} or longer"),
                ));
            }
            // A sum that lacks one of its parts is not the sum.
            still.map_or(Ok(sum), Err)
        };
        let reading = |request: &SampleRequest| {
            let of = request.value.as_ref().map(|(of, _)| of.as_slice()).unwrap_or_default();
            let narrowed = of.first().and_then(|Handle(at)| windows[*at].window);
            let window = narrowed.unwrap_or(window);
            let mut reading = request.signal.reading(value(request), window);
            reading.signal.clone_from(&request.name);
            reading.source.clone_from(&request.source);
            reading
        };
        self.requests.iter().map(reading).collect()
    }

    fn peek(&mut self, window: Duration) -> Vec<Reading> {
        // A sensor that is being read right now is left out: it may take a while.
        let tracks = self.tracks.iter().filter_map(|track| track.try_lock().ok());
        tracks.map(|track| track.present(window)).collect()
    }

    fn set_run_window(&mut self, opened: Instant, closed: Instant) {
        for track in &self.tracks {
            locked(track).set_run_window(opened, closed);
        }
    }

    fn tasks(&mut self) -> Vec<SamplerTask> {
        let task = |track: &Arc<Mutex<Track>>| {
            let (every, track) = (locked(track).every, track.clone());
            SamplerTask::new(every, move |_| locked(&track).sample())
        };
        self.tracks.iter().map(task).collect()
    }

    fn series(&self, opened: Instant) -> Vec<Series> {
        let mut all: Vec<Series> =
            self.tracks.iter().map(|track| locked(track).series(opened)).collect();
        let of_power = |one: &Series| one.unit == Unit::Watts && one.origin == Origin::Measured;
        all.retain(|one| !of_power(one) || one.values.iter().any(|&watts| watts > 0.0));
        all
    }
}
