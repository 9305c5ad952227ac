//! One rate, or several from one to another.

use std::str::FromStr;

use analyse::search::{ClientHealth, LimitedBy, limit};
use execute::{Event, Listener};
use model::{Rate, Run};
use report::format;

use crate::progress::Bar;

/// The value of `--rate`: `20k`, or `10k..200k/10` for ten rates at equal distances.
#[derive(Debug, Clone, PartialEq)]
pub struct RateSweep(Vec<Rate>);

/// The most rates.
const MAX_RATES: usize = 1000;

impl RateSweep {
    pub fn rates(&self) -> &[Rate] {
        &self.0
    }
}

impl FromStr for RateSweep {
    type Err = String;

    fn from_str(text: &str) -> Result<RateSweep, String> {
        let rate = |text: &str| text.parse::<Rate>().map_err(|error| error.to_string());
        let Some((from, rest)) = text.split_once("..") else {
            return Ok(RateSweep(vec![rate(text)?]));
        };
        // A rate may contain a slash, so the count follows the last one.
        let (to, count) =
            rest.rsplit_once('/').ok_or("write the number of rates too: `10k..200k/10`")?;
        let (Rate(from), Rate(to)) = (rate(from)?, rate(to)?);
        let count = count
            .parse::<usize>()
            .ok()
            .filter(|count| (2..=MAX_RATES).contains(count))
            .ok_or_else(|| {
                format!("the number of rates is from 2 to {MAX_RATES}, not `{count}`")
            })?;
        if from <= 0.0 || to <= from {
            return Err("the second rate must be above the first, and the first above 0".into());
        }
        let step = (to - from) / (count - 1) as f64;
        // Whole operations a second, so that filters can name them.
        let rates = (0..count).map(|at| Rate((from + step * at as f64).round().max(1.0))).collect();
        Ok(RateSweep(rates))
    }
}

/// Progress of several rates; reports the first one that is not achieved.
pub struct SweepProgress {
    bar: Bar,
    rates: usize,
    announced: bool,
}

impl SweepProgress {
    pub fn new(bar: Bar, rates: usize) -> SweepProgress {
        SweepProgress { bar, rates, announced: false }
    }

    pub fn finish(&self) {
        self.bar.finish();
    }

    fn beyond_limit(&self, run: &Run) -> Option<String> {
        let target = run.target_rate().filter(|_| self.rates > 1 && !self.announced)?;
        let client = ClientHealth::of(run);
        let limit = match limit(run, &client)? {
            LimitedBy::Client => "the client has no headroom for".to_owned(),
            LimitedBy::Server => {
                let achieved = run.achieved_rate().unwrap_or_else(|| run.throughput());
                format!("the store achieves {} of", format::rate(achieved))
            }
        };
        Some(format!("{limit} {}; higher rates are measured anyway", format::target_rate(target)))
    }
}

impl Listener for SweepProgress {
    fn on_event(&mut self, event: Event<'_>) {
        let words = match &event {
            Event::Saved { run, .. } => self.beyond_limit(run),
            _ => None,
        };
        self.bar.on_event(event);
        if let Some(words) = words {
            self.announced = true;
            self.bar.print_line(&words);
        }
    }

    fn watches(&self) -> bool {
        self.bar.is_watching()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_at_equal_distances() {
        let rates = |text: &str| {
            let sweep: RateSweep = text.parse().unwrap();
            sweep.rates().iter().map(|rate| rate.0).collect::<Vec<_>>()
        };
        assert_eq!(rates("20k"), [20e3]);
        assert_eq!(rates("10k..40k/4"), [10e3, 20e3, 30e3, 40e3]);
        assert_eq!(rates("1..2/2"), [1.0, 2.0]);
    }

    #[test]
    fn parse_errors_name_the_mistake() {
        for (text, why) in [
            ("10k..20k", "write the number of rates"),
            ("10k..20k/1", "from 2 to 1000"),
            ("20k..10k/3", "above the first"),
            ("0..10k/3", "above 0"),
            ("x..10k/3", "x"),
        ] {
            let error = text.parse::<RateSweep>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
