//! How local the keys are by their prefix: what decides whether scans and blocks of neighbouring
//! keys find together what is requested together.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::Serialize;

use super::Figure;
use super::key_sample::Identity;
use crate::trace::TraceKey;
use crate::value::hash;

/// Prefixes that are counted one by one; requests of later ones count as those of one more.
const MOST_PREFIXES: usize = 1 << 16;
/// The longest prefix that is looked for.
const LONGEST: usize = 4096;

/// Keys by what stands before their last separator (`:`, `/`, `.` or `|`), or, where they have
/// none, before their first figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrefixSummary {
    /// Distinct prefixes; at least, where there are more than are counted.
    pub prefixes: u64,
    /// Whether each prefix was counted by itself.
    pub exact: bool,
    /// Share of the requests to the most requested prefix.
    pub largest: f64,
    /// Share of the requests that have the prefix of the request before.
    pub same_as_before: Figure,
    /// The same if the requests came in a random order.
    pub by_chance: f64,
    /// Whether it is clearly more than that.
    pub is_local: bool,
}

/// A difference that is locality, and the standard errors of so few requests beside.
const CLEAR: f64 = 0.02;
const ERRORS: f64 = 4.0;

impl PrefixSummary {
    /// How much more often than by chance a request has the prefix of the one before.
    pub fn locality(&self) -> f64 {
        self.same_as_before.value - self.by_chance
    }
}

#[derive(Debug, Default)]
pub(super) struct Prefixes {
    counts: HashMap<u64, u64, BuildHasherDefault<Identity>>,
    others: u64,
    last: Option<u64>,
    same: u64,
    /// Requests whose key is known by its bytes.
    requests: u64,
}

impl Prefixes {
    #[inline]
    pub fn add(&mut self, key: TraceKey<'_>) {
        let TraceKey::Bytes(key) = key else { return };
        let prefix = hash(prefix(key));
        self.requests += 1;
        self.same += u64::from(self.last == Some(prefix));
        self.last = Some(prefix);
        if let Some(count) = self.counts.get_mut(&prefix) {
            *count += 1;
        } else if self.counts.len() < MOST_PREFIXES {
            self.counts.insert(prefix, 1);
        } else {
            self.others += 1;
        }
    }

    /// None where keys are numbers, or there are fewer than two requests.
    pub fn summary(self) -> Option<PrefixSummary> {
        if self.requests < 2 {
            return None;
        }
        let all = self.requests as f64;
        let exact = self.others == 0;
        // Pairs of different requests: with one request each, no two have the same prefix.
        let pairs = |count: u64| count as f64 * (count as f64 - 1.0);
        let by_chance = self.counts.values().map(|count| pairs(*count)).sum::<f64>();
        let by_chance = by_chance / (all * (all - 1.0));
        let same = self.same as f64 / (all - 1.0);
        let error = (by_chance * (1.0 - by_chance) / all).sqrt();
        Some(PrefixSummary {
            prefixes: self.counts.len() as u64 + u64::from(!exact),
            exact,
            largest: self.counts.values().max().map_or(0.0, |most| *most as f64 / all),
            same_as_before: Figure::new(same, None),
            by_chance,
            is_local: same - by_chance > CLEAR.max(ERRORS * error),
        })
    }
}

fn prefix(key: &[u8]) -> &[u8] {
    let key = &key[..key.len().min(LONGEST)];
    let separator = key.iter().rposition(|byte| b":/.|".contains(byte));
    let end = separator.or_else(|| key.iter().position(u8::is_ascii_digit));
    end.map_or(key, |end| &key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(keys: impl IntoIterator<Item = String>) -> PrefixSummary {
        let mut prefixes = Prefixes::default();
        keys.into_iter().for_each(|key| prefixes.add(TraceKey::Bytes(key.as_bytes())));
        prefixes.summary().unwrap()
    }

    #[test]
    fn a_prefix_ends_at_the_last_separator_or_the_first_figure() {
        for (key, expected) in [
            ("user:17", "user"),
            ("user:17:friends", "user:17"),
            ("/a/b/c", "/a/b"),
            ("user0017", "user"),
            ("1f:0123456789abcdef", "1f"),
            ("plain", "plain"),
            ("", ""),
            (":", ""),
            ("42", ""),
        ] {
            assert_eq!(prefix(key.as_bytes()), expected.as_bytes(), "{key}");
        }
    }

    #[test]
    fn runs_of_a_prefix_are_local_and_a_random_order_is_not() {
        // Ten prefixes in runs of 100.
        let runs =
            summary((0..10_000).map(|i| format!("t{}:{i}", "abcdefghij".as_bytes()[i / 100 % 10])));
        assert_eq!((runs.prefixes, runs.exact), (10, true));
        assert!((runs.same_as_before.value - 0.99).abs() < 1e-3, "{runs:?}");
        assert!((runs.by_chance - 0.1).abs() < 1e-3 && runs.is_local);
        let mixed = summary((0..10_000u64).map(|i| format!("t{}:{i}", model::random::mix(i) % 10)));
        assert!(mixed.locality().abs() < 0.02 && !mixed.is_local, "{mixed:?}");
        assert!((mixed.largest - 0.1).abs() < 0.02);
        let one = summary((0..100).map(|i| format!("user{i}")));
        assert_eq!((one.same_as_before.value, one.by_chance, one.is_local), (1.0, 1.0, false));
        let each = summary((0..100).map(|i| format!("{i}:x")));
        assert_eq!((each.prefixes, each.by_chance), (100, 0.0));
    }

    #[test]
    fn memory_is_bounded_and_numbers_have_no_prefix() {
        let many = summary((0..MOST_PREFIXES as u64 + 10).map(|i| format!("{i}:x")));
        assert_eq!((many.prefixes, many.exact), (MOST_PREFIXES as u64 + 1, false));
        let mut numbers = Prefixes::default();
        (0..10).for_each(|n| numbers.add(TraceKey::Number(n)));
        assert_eq!(numbers.summary(), None);
    }
}
