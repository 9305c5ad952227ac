//! The frequencies of the kinds of operations.

use std::fmt;
use std::str::FromStr;

use model::{Op, PerOp, suggest};
use serde::{Deserialize, Serialize};

use crate::SpecError;

/// A weight for each kind of operation; only their proportions matter.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mix {
    #[serde(skip_serializing_if = "is_zero")]
    pub read: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub update: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub insert: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub scan: f64,
    #[serde(alias = "rmw", skip_serializing_if = "is_zero")]
    pub read_modify_write: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub delete: f64,
}

fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

impl Mix {
    /// One kind of operation alone.
    pub fn only(op: Op) -> Mix {
        Mix::default().with(op, 1.0)
    }

    /// The same with another weight for `op`.
    pub fn with(mut self, op: Op, weight: f64) -> Mix {
        *match op {
            Op::Read => &mut self.read,
            Op::Update => &mut self.update,
            Op::Insert => &mut self.insert,
            Op::Scan => &mut self.scan,
            Op::ReadModifyWrite => &mut self.read_modify_write,
            Op::Delete => &mut self.delete,
        } = weight;
        self
    }

    /// The weights as they were given.
    pub fn weights(&self) -> PerOp<f64> {
        PerOp::from_fn(|op| match op {
            Op::Read => self.read,
            Op::Update => self.update,
            Op::Insert => self.insert,
            Op::Scan => self.scan,
            Op::ReadModifyWrite => self.read_modify_write,
            Op::Delete => self.delete,
        })
    }

    /// Reads `read=0.95,update=0.05`; a kind that is not named has no weight.
    ///
    /// # Errors
    /// [`SpecError::Unreadable`] with the nearest name; also errors of [`Mix::shares`].
    pub fn parse(text: &str) -> Result<Mix, SpecError> {
        let unreadable = |problem: String| SpecError::Unreadable {
            text: text.to_owned(),
            what: "a mix",
            problem,
        };
        let mut mix = Mix::default();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').ok_or_else(|| {
                unreadable(format!("`{}` has no weight; write it as `read=0.95`", part.trim()))
            })?;
            let name = name.trim();
            let op = Op::from_name(name).ok_or_else(|| {
                let hint = suggest::hint(name, Op::ALL.map(Op::name));
                unreadable(format!("no operation is called `{name}`; {hint}"))
            })?;
            let weight = weight
                .trim()
                .parse()
                .map_err(|_| unreadable(format!("`{}` is not a number", weight.trim())))?;
            if mix.weights()[op] != 0.0 {
                return Err(unreadable(format!("`{op}` is given twice")));
            }
            mix = mix.with(op, weight);
        }
        mix.shares()?;
        Ok(mix)
    }

    /// The weights divided by their sum.
    ///
    /// # Errors
    /// A weight that is negative or not finite; weights that sum to zero.
    pub fn shares(&self) -> Result<PerOp<f64>, SpecError> {
        let weights = self.weights();
        for (op, &weight) in weights.iter() {
            if !weight.is_finite() || weight < 0.0 {
                return Err(SpecError::Weight { op, weight });
            }
        }
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if sum == 0.0 {
            return Err(SpecError::EmptyMix);
        }
        Ok(PerOp::from_fn(|op| weights[op] / sum))
    }

    /// Whether `op` has a positive weight.
    pub fn contains(&self, op: Op) -> bool {
        self.weights()[op] > 0.0
    }

    /// Whether `op` is the only operation.
    pub fn is_only(&self, op: Op) -> bool {
        Op::ALL.into_iter().all(|other| self.contains(other) == (other == op))
    }
}

/// Writes what [`Mix::parse`] reads.
impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (op, &weight) in self.weights().iter().filter(|(_, weight)| **weight != 0.0) {
            write!(f, "{comma}{op}={weight}")?;
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for Mix {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Mix, SpecError> {
        Mix::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_and_files() {
        let mix = Mix::parse("read=3, rmw=1").unwrap();
        assert_eq!(mix, Mix::only(Op::Read).with(Op::Read, 3.0).with(Op::ReadModifyWrite, 1.0));
        assert_eq!(mix.shares().unwrap()[Op::Read], 0.75);
        assert_eq!(mix.to_string(), "read=3,read_modify_write=1");
        assert_eq!(Mix::parse(&mix.to_string()), Ok(mix));
        assert_eq!(toml::from_str::<Mix>("read = 3\nrmw = 1").unwrap(), mix);
        assert_eq!(toml::from_str::<Mix>(&toml::to_string(&mix).unwrap()).unwrap(), mix);
    }

    #[test]
    fn refuses_invalid_mixes() {
        for (text, says) in [
            ("read=0", "every weight is zero"),
            ("read=-1", "`mix.read` is -1"),
            ("read=nan", "`mix.read` is NaN"),
            ("raed=1", "did you mean `read`?"),
            ("read", "`read` has no weight"),
            ("read=x", "`x` is not a number"),
            ("read=1,read=2", "twice"),
        ] {
            let error = Mix::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(toml::from_str::<Mix>("raed = 1").is_err());
    }
}
