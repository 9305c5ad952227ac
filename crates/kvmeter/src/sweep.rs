//! One rate, or several from one to another.

use std::str::FromStr;

use model::Rate;

/// What `--rate` takes: `20k`, or `10k..200k/10` for ten rates at equal distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep(Vec<Rate>);

/// More runs than these are a slip.
const MOST: usize = 1000;

impl Sweep {
    pub fn rates(&self) -> &[Rate] {
        &self.0
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let rate = |text: &str| text.parse::<Rate>().map_err(|error| error.to_string());
        let Some((from, rest)) = text.split_once("..") else {
            return Ok(Sweep(vec![rate(text)?]));
        };
        let (to, count) = rest.split_once('/').ok_or("say how many rates: `10k..200k/10`")?;
        let (Rate(from), Rate(to)) = (rate(from)?, rate(to)?);
        let count = count
            .parse::<usize>()
            .ok()
            .filter(|count| (2..=MOST).contains(count))
            .ok_or_else(|| format!("the number of rates is from 2 to {MOST}, not `{count}`"))?;
        if from <= 0.0 || to <= from {
            return Err("the second rate must be above the first, and the first above 0".into());
        }
        let step = (to - from) / (count - 1) as f64;
        // Whole operations a second, so that they can be named in a filter.
        let rates = (0..count).map(|at| Rate((from + step * at as f64).round().max(1.0))).collect();
        Ok(Sweep(rates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_at_equal_distances() {
        let rates = |text: &str| {
            let sweep: Sweep = text.parse().unwrap();
            sweep.rates().iter().map(|rate| rate.0).collect::<Vec<_>>()
        };
        assert_eq!(rates("20k"), [20e3]);
        assert_eq!(rates("10k..40k/4"), [10e3, 20e3, 30e3, 40e3]);
        assert_eq!(rates("1..2/2"), [1.0, 2.0]);
    }

    #[test]
    fn slips_are_named() {
        for (text, why) in [
            ("10k..20k", "say how many rates"),
            ("10k..20k/1", "from 2 to 1000"),
            ("20k..10k/3", "above the first"),
            ("0..10k/3", "above 0"),
            ("x..10k/3", "x"),
        ] {
            let error = text.parse::<Sweep>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
