//! How a phase is asked, checked and with its defaults filled in.

use std::time::Duration;

use analyse::STEADY_ROUNDS;
use drive::{Arrivals, Pacing, Until};
use model::{Count, Rate, Span};
use record::Settings;
use toml::Spanned;

use crate::error::StudyError;
use crate::source::Source;
use crate::spec::{self, Asking};

/// A measured window that nobody gave a length.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// `[load]`, `[measure]` or the flags of `bench`, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Manner {
    pub threads: u32,
    pub pacing: Pacing,
    pub warm_up: Option<Duration>,
    pub steady: Option<(Duration, u32)>,
    pub until: Until,
    pub pin: bool,
}

impl Manner {
    /// As fast as this many threads can.
    pub fn closed(threads: u32) -> Self {
        Manner {
            threads,
            pacing: Pacing::Closed { think: Duration::ZERO },
            warm_up: None,
            steady: None,
            until: Until { operations: None, time: None },
            pin: true,
        }
    }

    /// The same with a length, if it has none.
    pub fn with_default_length(mut self) -> Self {
        if self.until.operations.is_none() && self.until.time.is_none() {
            self.until.time = Some(DEFAULT_TIME);
        }
        self
    }

    pub fn settings(&self, settings: &mut Settings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        put("threads", self.threads.to_string());
        put("pin", self.pin.to_string());
        match self.pacing {
            Pacing::Closed { think } => {
                put("loop", "closed".to_owned());
                if !think.is_zero() {
                    put("think", Span(think).to_string());
                }
            }
            Pacing::Open { rate, arrivals } => {
                put("loop", "open".to_owned());
                put("rate", Rate(rate).to_string());
                put("arrivals", arrivals.name().to_owned());
            }
        }
        let spans = [("warm_up", self.warm_up), ("time", self.until.time)];
        for (key, span) in spans {
            if let Some(span) = span {
                put(key, Span(span).to_string());
            }
        }
        if let Some(operations) = self.until.operations {
            put("operations", Count(operations).to_string());
        }
        if let Some((round, most)) = self.steady {
            put("steady", format!("{} x {most}", Span(round)));
        }
    }

    /// Seconds that it takes at least, where that is known.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let before = self.warm_up.unwrap_or_default();
        let steady = self.steady.map_or(Duration::ZERO, |(round, _)| round * STEADY_ROUNDS as u32);
        Some((before + steady + self.until.time?).as_secs_f64())
    }
}

/// Checks one table; `default_threads` stands where no number is given.
pub(crate) fn manner(
    source: &Source,
    asking: &Asking,
    default_threads: u32,
) -> Result<Manner, StudyError> {
    let threads = positive(source, &asking.threads, "threads", |n| *n > 0)?;
    let rate = positive(source, &asking.rate, "the rate", |rate| rate.0 > 0.0)?;
    let time = positive(source, &asking.time, "the time", |span| !span.0.is_zero())?;
    let operations = positive(source, &asking.operations, "operations", |count| count.0 > 0)?;
    let arrivals = match &asking.arrivals {
        Some(name) => {
            Some(spec::arrivals(name.get_ref()).map_err(|words| source.at(name.span(), &words))?)
        }
        None => None,
    };
    let pacing = match (rate, &asking.think, &asking.arrivals) {
        (Some(_), Some(think), _) => {
            return Err(source.at(
                think.span(),
                "a think time belongs to a closed loop, and `rate` makes it an open one",
            ));
        }
        (None, _, Some(arrivals)) => {
            return Err(source.at(arrivals.span(), "`arrivals` needs a `rate`"));
        }
        (Some(Rate(rate)), None, _) => {
            Pacing::Open { rate, arrivals: arrivals.unwrap_or(Arrivals::Constant) }
        }
        (None, think, None) => Pacing::Closed {
            think: think.as_ref().map_or(Duration::ZERO, |think| think.get_ref().0),
        },
    };
    let steady = match &asking.steady {
        Some(steady) => {
            let spec::Steady { round, most_rounds } = *steady.get_ref();
            if round.0.is_zero() || (most_rounds as usize) < STEADY_ROUNDS {
                let words =
                    format!("a steady state takes at least {STEADY_ROUNDS} rounds of some length");
                return Err(source.at(steady.span(), &words));
            }
            Some((round.0, most_rounds))
        }
        None => None,
    };
    Ok(Manner {
        threads: threads.unwrap_or(default_threads),
        pacing,
        warm_up: asking.warm_up.as_ref().map(|span| span.get_ref().0).filter(|s| !s.is_zero()),
        steady,
        until: Until {
            operations: operations.map(|Count(count)| count),
            time: time.map(|Span(time)| time),
        },
        pin: asking.pin.unwrap_or(true),
    })
}

fn positive<T: Copy>(
    source: &Source,
    value: &Option<Spanned<T>>,
    what: &str,
    holds: impl Fn(&T) -> bool,
) -> Result<Option<T>, StudyError> {
    match value {
        Some(value) if !holds(value.get_ref()) => {
            Err(source.at(value.span(), &format!("{what} must be more than zero")))
        }
        Some(value) => Ok(Some(*value.get_ref())),
        None => Ok(None),
    }
}
