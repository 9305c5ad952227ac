//! How long values are: one law, or others for the first records.

use super::{LONGEST, ValueSpec};
use crate::SpecError;
use crate::key::{KeyDecoder, Keys};
use crate::length::{LengthLimits, LengthSampler};

/// The most rows of `size_of_first`.
const MOST_ROWS: usize = 256;
const KEY: &str = "value.size_of_first";

#[derive(Debug, Clone)]
pub struct ValueLengths {
    /// Of all records, or of those behind the first ones.
    rest: LengthSampler,
    first: Option<Box<FirstLengths>>,
}

#[derive(Debug, Clone)]
struct FirstLengths {
    decoder: KeyDecoder,
    /// Where each row ends, its part of the records, and its law.
    rows: Vec<(u64, f64, LengthSampler)>,
}

impl ValueLengths {
    /// # Errors
    /// As of [`Values::new`](super::Values::new).
    pub fn new(spec: &ValueSpec, keys: &Keys, records: u64) -> Result<ValueLengths, SpecError> {
        let limits = |key| LengthLimits { key, lowest: 0, highest: LONGEST, cut: 1 << 20 };
        let rest = LengthSampler::new(&spec.size, limits("value.size"))?;
        if spec.size_of_first.is_empty() {
            return Ok(ValueLengths { rest, first: None });
        }
        let wrong = |problem: &str| SpecError::invalid(KEY, problem.to_owned());
        if spec.size_of_first.len() > MOST_ROWS {
            return Err(wrong(&format!("has at most {MOST_ROWS} rows")));
        }
        let decoder = keys.decoder().ok_or_else(|| {
            wrong(
                "needs keys that hold the number of their record; set `key.form` to \"text\", \
                 \"decimal\" or \"binary\", or `order` to \"ordered\"",
            )
        })?;
        let (mut up_to, mut rows) = (0.0, Vec::new());
        for (part, size) in &spec.size_of_first {
            up_to += part;
            if !(*part > 0.0 && up_to <= 1.0 + 1e-9) {
                return Err(wrong(
                    "a row is a part of the records, above 0, and a size; all parts sum to 1 at most",
                ));
            }
            let end = (up_to * records as f64).round() as u64;
            rows.push((end, *part, LengthSampler::new(size, limits(KEY))?));
        }
        Ok(ValueLengths { rest, first: Some(Box::new(FirstLengths { decoder, rows })) })
    }

    /// The law of a key's values.
    #[inline(always)]
    pub fn of(&self, key: &[u8]) -> &LengthSampler {
        match &self.first {
            None => &self.rest,
            Some(first) => first.of(key).unwrap_or(&self.rest),
        }
    }

    /// All laws.
    pub fn all(&self) -> impl Iterator<Item = &LengthSampler> {
        let rows = self.first.iter().flat_map(|first| &first.rows);
        rows.map(|(_, _, length)| length).chain([&self.rest])
    }

    /// The expected length of a loaded value, in bytes.
    pub fn mean(&self) -> f64 {
        let rows = self.first.iter().flat_map(|first| &first.rows);
        let (parts, sum) = rows.fold((0.0, 0.0), |(parts, sum), (_, part, length)| {
            (parts + part, sum + part * length.mean())
        });
        sum + (1.0 - parts).max(0.0) * self.rest.mean()
    }

    /// The longest that can be drawn, in bytes.
    pub fn longest(&self) -> u64 {
        self.all().map(LengthSampler::max).max().unwrap_or(0)
    }
}

impl FirstLengths {
    /// Not inlined: most workloads have none.
    fn of(&self, key: &[u8]) -> Option<&LengthSampler> {
        let record = self.decoder.record(key)?;
        let row = self.rows.partition_point(|(end, ..)| *end <= record);
        self.rows.get(row).map(|(_, _, length)| length)
    }
}
