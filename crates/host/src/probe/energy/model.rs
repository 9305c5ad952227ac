//! Power by a formula, for machines without any sensor: `P = idle + (full - idle) x
//! utilisation`, linear in the busy share of all CPUs (Fan, Weber and Barroso, "Power
//! provisioning for a warehouse-sized computer", ISCA 2007). Never a measurement.

use std::time::{Duration, Instant};

use model::{Reading, Scope, Series, Unavailable, Unit};
use serde::{Deserialize, Serialize};

use super::settings::{ReadFlag, SettingError, SourceSettings};
use crate::probe::sampler::{Kind, Sampled, SamplerTask, Sensor};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;
use crate::stat::{CpuTicks, NoShare, STAT, cpu_ticks, share};

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("model", SIGNALS, STAT, init);

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const SOURCE: &str = "idle + (full - idle) x the busy share of /proc/stat";
const POWER: Signal = Signal::new("power.model", Unit::Watts, Scope::Node, SOURCE).modelled();
const ENERGY: Signal = Signal::new("energy.model", Unit::Joules, Scope::Node, SOURCE).modelled();

const EVERY: Duration = Duration::from_secs(1);

/// `P = idle + (full - idle) x utilisation`, for machines without any sensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Watts of the idle machine.
    pub idle_w: f64,
    /// Watts with every CPU busy.
    pub full_w: f64,
}

impl SourceSettings for ModelSettings {
    /// `IDLE:FULL`, in watts.
    const FLAG: Option<ReadFlag<Self>> = Some(|value| {
        let watts = value.split_once(':').and_then(|(idle, full)| {
            Some(ModelSettings { idle_w: idle.parse().ok()?, full_w: full.parse().ok()? })
        });
        watts.ok_or_else(|| SettingError::new("model", value, "IDLE:FULL in watts"))
    });

    fn check(&self) -> Result<(), SettingError> {
        let ModelSettings { idle_w, full_w } = *self;
        if !(idle_w.is_finite() && idle_w >= 0.0) {
            return Err(SettingError::new("model.idle_w", idle_w, "watts of the idle machine"));
        }
        if !(full_w.is_finite() && full_w >= idle_w) {
            return Err(SettingError::new("model.full_w", full_w, "watts, idle_w or more"));
        }
        Ok(())
    }
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let given = context.energy.model.ok_or_else(|| {
        Unavailable::new(
            "no watts were given for a model of this machine",
            "give those of the idle and of the fully loaded machine: `--probes model=IDLE:FULL`",
        )
    })?;
    let before = cpu_ticks(root)?;
    let which = format!("with {} W and {} W", given.idle_w, given.full_w);
    // The series' points are the means between two samples: the counter is joules of the model.
    let mut so_far =
        Modelled { given, root: root.clone(), last: (Instant::now(), before), joules: 0.0 };
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Counter, every };
    sampled.gauge(sensor, move || so_far.joules());
    Ok(Box::new(Model { series: sampled, root: root.clone(), given, which, before: Ok(before) }))
}

fn watts(given: ModelSettings, busy: f64) -> f64 {
    given.idle_w + (given.full_w - given.idle_w) * busy
}

/// The model's energy as it goes on, for the series.
struct Modelled {
    given: ModelSettings,
    root: Root,
    last: (Instant, CpuTicks),
    joules: f64,
}

impl Modelled {
    fn joules(&mut self) -> Result<f64, Unavailable> {
        let now = (Instant::now(), cpu_ticks(&self.root)?);
        let busy = match share(&self.last.1, &now.1, |ticks| ticks.busy) {
            Ok(busy) => busy,
            // Less than a tick has passed: the time is counted at the next sample.
            Err(NoShare::ShorterThanATick) => return Ok(self.joules),
            Err(why) => {
                self.last = now;
                return Err(explain(why));
            }
        };
        self.joules += watts(self.given, busy) * (now.0 - self.last.0).as_secs_f64();
        self.last = now;
        Ok(self.joules)
    }
}

/// The readings come from the window's two ends; samples in between are for the series.
struct Model {
    series: Sampled,
    root: Root,
    given: ModelSettings,
    which: String,
    before: Result<CpuTicks, Unavailable>,
}

impl Model {
    fn watts(&self) -> Result<f64, Unavailable> {
        let (before, after) = (self.before.clone()?, cpu_ticks(&self.root)?);
        let busy = share(&before, &after, |ticks| ticks.busy).map_err(explain)?;
        Ok(watts(self.given, busy))
    }
}

impl Probe for Model {
    fn start(&mut self) {
        self.series.start();
        self.before = cpu_ticks(&self.root).map_err(Unavailable::from);
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let watts = self.watts();
        self.series.stop(window);
        let joules = watts.clone().map(|watts| watts * window.as_secs_f64());
        let mut readings = vec![POWER.reading(watts, window), ENERGY.reading(joules, window)];
        for reading in &mut readings {
            reading.source = format!("{} {}", reading.source, self.which);
        }
        readings
    }

    fn tasks(&mut self) -> Vec<SamplerTask> {
        self.series.tasks()
    }

    fn series(&self, opened: Instant) -> Vec<Series> {
        self.series.series(opened)
    }
}

fn explain(why: NoShare) -> Unavailable {
    match why {
        NoShare::Backwards => {
            Unavailable::new(format!("a counter of {STAT} went back"), "repeat the run")
        }
        NoShare::ShorterThanATick => Unavailable::new(
            format!("the window is shorter than a tick of {STAT}"),
            "measure for a second or longer",
        ),
    }
}
