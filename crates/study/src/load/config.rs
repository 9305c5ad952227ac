//! What a load configuration comes to: its settings and lengths, and others that follow from it.

use std::time::Duration;

use analyse::STEADY_ROUNDS;
use model::{Arrivals, LoadShape, Pacing, RunSettings, StopCondition};

use super::{LOAD_OPTIONS, LoadConfig};

/// Length of a measured window without one.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Requests in flight on a connection while data is loaded.
const LOADING_DEPTH: usize = 32;

/// What a rate that moves comes to, before it is run.
#[derive(Debug, Clone, PartialEq)]
pub struct MovingRate {
    pub profile: String,
    /// The length of the profile, and that of the window.
    pub pass_s: f64,
    pub seconds: f64,
    pub requests: f64,
    pub peak: f64,
    /// Requests and peak are shares of a maximum a second that is not known yet.
    pub of_maximum: bool,
}

impl LoadConfig {
    /// The same as an open loop at this rate, for this time.
    pub fn at(&self, rate: f64, time: Duration) -> LoadConfig {
        let arrivals = match self.shape.pacing {
            Pacing::Open { arrivals, .. } => arrivals,
            Pacing::Closed { .. } | Pacing::Recorded { .. } => Arrivals::Constant,
        };
        LoadConfig {
            shape: LoadShape {
                pacing: Pacing::Open { rate, arrivals },
                profile: None,
                until: StopCondition { operations: None, time: Some(time) },
                ..self.shape.clone()
            },
            of_maximum: false,
            ..self.clone()
        }
    }

    /// The same with its share of a maximum replaced by a rate.
    pub fn calibrated(&self, maximum_ops_s: f64) -> LoadConfig {
        match self.shape.pacing {
            Pacing::Open { rate, arrivals } if self.of_maximum => {
                let pacing = Pacing::Open { rate: rate * maximum_ops_s, arrivals };
                let shape = LoadShape { pacing, ..self.shape.clone() };
                LoadConfig { shape, of_maximum: false, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// The mean rate of an open loop over its window.
    pub fn mean_rate(&self) -> Option<f64> {
        let Pacing::Open { rate, .. } = self.shape.pacing else { return None };
        let mean = self
            .shape
            .profile
            .as_ref()
            .map_or(1.0, |profile| profile.mean_over(self.shape.until.time));
        Some(rate * mean)
    }

    /// What a rate that moves comes to over its window; None where it is constant or has no end.
    pub fn moving_rate(&self) -> Option<MovingRate> {
        let (Pacing::Open { rate, .. }, Some(profile)) = (self.shape.pacing, &self.shape.profile)
        else {
            return None;
        };
        let seconds = self.shape.until.time?.as_secs_f64();
        Some(MovingRate {
            profile: profile.name().to_owned(),
            pass_s: profile.seconds(),
            seconds,
            requests: rate * profile.integral(seconds),
            peak: rate * profile.peak(),
            of_maximum: self.of_maximum,
        })
    }

    /// Whether due instants are independent of answers.
    pub fn is_open(&self) -> bool {
        self.shape.pacing.is_open()
    }

    /// How data is loaded before the measurement: as fast as the same threads can.
    pub fn preparing(&self) -> Self {
        let mut connections = self.connections;
        // Loading is no measurement: requests share their system calls.
        connections.depth = connections.depth.max(LOADING_DEPTH);
        let cpus = self.cpus.clone();
        LoadConfig { pin: self.pin, cpus, connections, ..LoadConfig::closed(self.threads) }
    }

    /// How long the window is, where the clock ends it.
    pub fn length(&self) -> Option<Duration> {
        match (self.shape.pacing, self.shape.until.operations) {
            (Pacing::Open { rate, .. }, Some(operations)) => {
                let due = Duration::try_from_secs_f64(operations as f64 / rate).ok()?;
                Some(self.shape.until.time.map_or(due, |time| time.min(due)))
            }
            (Pacing::Closed { .. } | Pacing::Recorded { .. }, Some(_)) => None,
            (_, None) => self.shape.until.time,
        }
    }

    /// The same with the default length, if it has none.
    pub fn with_default_length(mut self) -> Self {
        if self.shape.until.operations.is_none() && self.shape.until.time.is_none() {
            let whole = self.shape.profile.as_ref().map(|profile| profile.seconds());
            self.shape.until.time = Some(whole.map_or(DEFAULT_TIME, Duration::from_secs_f64));
        }
        self
    }

    /// Adds the settings of a run; `networked`: there are connections.
    pub fn settings(&self, networked: bool, settings: &mut RunSettings) {
        let kind = if self.is_open() { "open" } else { "closed" };
        settings.insert("loop".to_owned(), kind.to_owned());
        for option in LOAD_OPTIONS.iter().filter(|option| networked || !option.for_servers) {
            if let Some(value) = (option.recorded)(self) {
                settings.insert(option.key.to_owned(), value);
            }
        }
    }

    /// The name of the arrivals; empty in a closed loop.
    pub fn arrivals(&self) -> String {
        match self.shape.pacing {
            Pacing::Closed { .. } => String::new(),
            Pacing::Open { arrivals, .. } => arrivals.to_string(),
            Pacing::Recorded { .. } if self.evenly => "recorded, even within a second".to_owned(),
            Pacing::Recorded { .. } => "recorded".to_owned(),
        }
    }

    /// Seconds before the window: warm-up, and the minimum time of the steady state.
    pub fn seconds_before(&self) -> f64 {
        let steady = self.steady.map_or(Duration::ZERO, |(round, _)| round * STEADY_ROUNDS as u32);
        (self.shape.warm_up.unwrap_or_default() + steady).as_secs_f64()
    }

    /// Seconds that so many operations take by the pacing alone.
    pub fn paced_seconds(&self, operations: u64) -> f64 {
        match self.shape.pacing {
            Pacing::Open { rate, .. } => operations as f64 / rate,
            // Not known without reading the trace.
            Pacing::Recorded { .. } => 0.0,
            Pacing::Closed { think } => {
                think.as_secs_f64() * operations as f64 / f64::from(self.threads)
            }
        }
    }
}
