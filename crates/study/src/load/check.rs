//! From load options to a load configuration: checks of options together, and what depends on
//! several of them.

use model::{Arrivals, LoadShape, MAX_RATE, Pacing, Rate, Span};

use super::values::arrivals;
use super::{InvalidOption, LOAD_OPTIONS, LoadConfig, LoadOption, LoadOptions};
use crate::rate_spec::RateSpec;
use crate::replay_speed::ReplaySpeed;
use crate::server_timing::ServerTiming;

fn no<T>(key: &'static str, why: &str) -> Result<T, InvalidOption> {
    Err(InvalidOption { key, why: why.to_owned() })
}

impl LoadOptions {
    /// Checks them for a workload and fills in the defaults: one thread for each of `cpus`, pinned
    /// where there are as many.
    pub fn config(&self, cpus: u32) -> Result<LoadConfig, InvalidOption> {
        self.check_values()?;
        let is_share = matches!(self.given_rate(), Some(RateSpec::Share(_)));
        if is_share && self.operations.is_some() {
            let why = "take an unknown time at a share of a maximum; give a time";
            return no("operations", why);
        }
        let rate = self.rate_of_profile()?.or(self.given_rate());
        let pacing = match (rate, self.think(), self.given_arrivals()) {
            (Some(_), Some(_), _) => {
                return no("think", "belongs to a closed loop, and a rate makes it an open one");
            }
            (None, _, Some(_)) => return no("arrivals", "needs a rate"),
            // Until the maximum is known, a share is kept as the rate.
            (Some(RateSpec::Rate(Rate(rate)) | RateSpec::Share(rate)), None, arrivals) => {
                Pacing::Open { rate, arrivals: arrivals.unwrap_or(Arrivals::Constant) }
            }
            (None, think, None) => Pacing::Closed { think: think.unwrap_or_default().0 },
        };
        match (pacing, &self.warm_up_rate, &self.warm_up) {
            (Pacing::Closed { .. }, Some(_), _) => {
                no("warm_up_rate", "is for an open loop: give a rate too")
            }
            (_, Some(_), None) => no("warm_up_rate", "needs a warm-up: give its length"),
            _ => Ok(LoadConfig { of_maximum: is_share, ..self.with_pacing(pacing, cpus)? }),
        }
    }

    /// The rate of a profile that has one of its own; checks a profile with the options beside it.
    fn rate_of_profile(&self) -> Result<Option<RateSpec>, InvalidOption> {
        let given = self.rate_profile.as_ref().map(|given| given.get_ref().profile());
        let Some(Ok(Some(profile))) = given else { return Ok(None) };
        if self.operations.is_some() {
            return no("operations", "do not end a window whose rate moves; give a time");
        }
        let rate = match (profile.own_rate(), self.given_rate()) {
            (Some(_), Some(_)) => {
                let why = "has rates of its own, and `rate` is another; leave that out, or write \
                           multiples of it: `0.5x`";
                return no("rate_profile", why);
            }
            (None, None) => {
                let why = "has multiples of a rate, and a closed loop has none; give `rate` too, \
                           or write rates: `20k`";
                return no("rate_profile", why);
            }
            (own, given) => own.map(|rate| RateSpec::Rate(Rate(rate))).or(given),
        };
        match rate {
            Some(RateSpec::Rate(Rate(rate))) if rate * profile.peak() > MAX_RATE => {
                no("rate_profile", "goes beyond what any client sends; at most 1G")
            }
            rate => Ok(rate),
        }
    }

    /// Checks them for a trace that is replayed at this speed.
    pub fn replay_config(
        &self,
        speed: Option<ReplaySpeed>,
        cpus: u32,
    ) -> Result<LoadConfig, InvalidOption> {
        self.check_values()?;
        let rate = match self.given_rate() {
            Some(RateSpec::Share(_)) => {
                return no("rate", "of a trace is a number, not a share of a maximum");
            }
            Some(RateSpec::Rate(Rate(rate))) => Some(rate),
            None => None,
        };
        if self.rate_profile.is_some() {
            return no("rate_profile", "is for a workload; a trace has times of its own");
        }
        let pacing = self.replay_pacing(rate, speed)?;
        if self.warm_up_rate.is_some() {
            return no("warm_up_rate", "is for a workload; a trace warms up with its beginning");
        }
        let evenly = matches!(self.given_arrivals(), Some(Arrivals::Constant));
        Ok(LoadConfig { evenly, ..self.with_pacing(pacing, cpus)? })
    }

    /// A trace keeps its recorded times, unless a rate or the speed `max` replaces them.
    fn replay_pacing(
        &self,
        rate: Option<f64>,
        speed: Option<ReplaySpeed>,
    ) -> Result<Pacing, InvalidOption> {
        match (rate, speed, self.given_arrivals()) {
            (Some(_), Some(_), _) => {
                no("speed", "keeps the trace's own times, and a rate replaces them; give only one")
            }
            (Some(rate), None, arrivals) if self.think.is_none() => {
                Ok(Pacing::Open { rate, arrivals: arrivals.unwrap_or(Arrivals::Constant) })
            }
            (None, Some(ReplaySpeed::Max), None) => {
                Ok(Pacing::Closed { think: self.think().unwrap_or_default().0 })
            }
            (None, Some(ReplaySpeed::Max), Some(_)) => no("arrivals", "needs a rate"),
            _ if self.think.is_some() => {
                no("think", "belongs to a closed loop, which a trace is at the speed `max`")
            }
            (_, _, Some(Arrivals::Pareto { .. })) => no(
                "arrivals",
                "of a trace within a second are `poisson` or `constant`; others need a rate",
            ),
            (_, Some(ReplaySpeed::Times(speed)), _) => Ok(Pacing::Recorded { speed }),
            _ => Ok(Pacing::Recorded { speed: 1.0 }),
        }
    }

    /// The configuration with this pacing, where each value by itself is valid.
    fn with_pacing(&self, pacing: Pacing, cpus: u32) -> Result<LoadConfig, InvalidOption> {
        if self.steady.is_some() && pacing.is_open() {
            let why = "judges the throughput, which in an open loop is the rate; warm up instead";
            return no("steady", why);
        }
        let mut config = LoadConfig {
            shape: LoadShape { pacing, ..LoadShape::default() },
            needs_servers: self.needs_servers(),
            server_timing: ServerTiming::default(),
            ..LoadConfig::closed(cpus)
        };
        self.apply(&mut config);
        let named = config.cpus.len() as u32;
        if named > 0 && !config.pin {
            return no("cpus", "are for pinned threads; leave out `pin = false`");
        }
        if named > 0 && self.threads.is_none() {
            config.threads = named;
        }
        config.pin &= config.threads <= cpus || named > 0;
        Ok(config)
    }

    /// The first given key that only servers support.
    fn needs_servers(&self) -> Option<&'static str> {
        let given = |option: &&LoadOption| option.for_servers && (option.span)(self).is_some();
        LOAD_OPTIONS.iter().find(given).map(|option| option.key)
    }

    fn given_rate(&self) -> Option<RateSpec> {
        self.rate.as_ref().map(|rate| *rate.get_ref())
    }

    fn given_arrivals(&self) -> Option<Arrivals> {
        self.arrivals.as_ref().and_then(|name| arrivals(name.get_ref()).ok())
    }

    fn think(&self) -> Option<Span> {
        self.think.as_ref().map(|think| *think.get_ref())
    }
}
