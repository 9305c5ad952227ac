//! When written values expire.

use model::Expiry;
use model::random::mix;
use serde::{Deserialize, Serialize};

use crate::SpecError;
use crate::alias::Alias;

/// The most rows of `seconds`.
const MOST_ROWS: usize = 4096;
/// Separates these draws from the others of an operation.
const PURPOSE: u64 = 0x7474_6c5f_7365_6373;

/// The time to live of what the measured phase writes. Loaded records never expire.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TtlSpec {
    /// `[seconds, share of the writes]`; all other writes never expire.
    pub seconds: Vec<(u32, f64)>,
}

impl TtlSpec {
    /// # Errors
    /// What is wrong with the table.
    pub fn check(&self) -> Result<(), SpecError> {
        const ROUNDING: f64 = 1e-6;
        let wrong = |problem: String| Err(SpecError::invalid("ttl", problem));
        if self.seconds.is_empty() || self.seconds.len() > MOST_ROWS {
            return wrong(format!("`seconds` has 1 to {MOST_ROWS} rows"));
        }
        if self.seconds.iter().any(|(seconds, share)| *seconds == 0 || !(0.0..=1.0).contains(share))
        {
            return wrong(
                "a row of `seconds` is a time of at least 1 s, and a share of the writes between \
                 0 and 1"
                    .to_owned(),
            );
        }
        if self.expiring() > 1.0 + ROUNDING {
            return wrong("the shares of `seconds` sum to more than 1".to_owned());
        }
        Ok(())
    }

    /// The share of the writes that expire.
    pub fn expiring(&self) -> f64 {
        self.seconds.iter().map(|(_, share)| share).sum()
    }
}

/// A [`TtlSpec`] compiled for sampling.
#[derive(Debug, Clone)]
pub struct Ttl {
    choose: Alias,
    expiries: Box<[Expiry]>,
}

impl Ttl {
    /// `spec` has been checked.
    pub fn new(spec: &TtlSpec) -> Ttl {
        let never = (Expiry::Never, (1.0 - spec.expiring()).max(0.0));
        let rows = spec.seconds.iter().map(|(seconds, share)| (Expiry::After(*seconds), *share));
        let (expiries, weights): (Vec<Expiry>, Vec<f64>) = rows.chain([never]).unzip();
        Ttl { choose: Alias::new(&weights), expiries: expiries.into() }
    }

    /// The expiry of the write with this salt.
    #[inline]
    pub fn of(&self, salt: u64) -> Expiry {
        self.expiries[self.choose.pick(mix(salt ^ PURPOSE)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_expire_as_the_table_says() {
        let ttl = Ttl::new(&TtlSpec { seconds: vec![(60, 0.5), (3600, 0.2)] });
        let share = |expiry| {
            let salts = (0..100_000).map(mix);
            salts.filter(|salt| ttl.of(*salt) == expiry).count() as f64 / 100_000.0
        };
        for (expiry, due) in
            [(Expiry::After(60), 0.5), (Expiry::After(3600), 0.2), (Expiry::Never, 0.3)]
        {
            assert!((share(expiry) - due).abs() < 0.01, "{expiry:?}");
        }
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        for (seconds, says) in [
            (vec![], "1 to 4096"),
            (vec![(0, 0.5)], "at least 1 s"),
            (vec![(5, -0.5)], "between 0 and 1"),
            (vec![(5, 0.6), (6, 0.6)], "more than 1"),
        ] {
            let error = TtlSpec { seconds }.check().unwrap_err().to_string();
            assert!(error.starts_with("`ttl`") && error.contains(says), "{error}");
        }
    }
}
