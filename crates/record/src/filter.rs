//! Choosing runs: `store=rocksdb&threads=8`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use model::suggest;

use crate::error::FilterError;
use crate::load::RunHead;

/// The keys that every run has in addition to its settings.
const COMMON_KEYS: [&str; 5] = ["execution", "label", "phase", "study", "valid"];
/// Settings that are known even in a file none of whose runs has them.
const COMMON_SETTINGS: [&str; 2] = ["store", "workload"];
/// How many values of a key an error lists.
const MAX_LISTED: usize = 12;

/// Conditions on runs, all of which have to hold. A key that is named more than once holds
/// if any of its values does. The default has none and selects every run.
///
/// Keys are the settings (`store`, `workload`, `threads`, `store.cache` ...) and `label`,
/// `phase` (`load`, `measure`), `study`, `valid` (`true`, `false`) and `execution` (its id,
/// or the beginning of it). In text, `%26` stands for `&` and `%25` for `%`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    conditions: BTreeMap<String, BTreeSet<String>>,
}

impl RunFilter {
    /// Selects every run.
    pub fn all() -> RunFilter {
        RunFilter::default()
    }

    /// Adds a condition; with the same key again, an alternative.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> RunFilter {
        self.conditions.entry(key.into()).or_default().insert(value.into());
        self
    }

    pub fn is_all(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The runs for which every condition holds, in their order.
    pub(crate) fn select<'a>(&self, heads: &'a [RunHead]) -> Result<Vec<&'a RunHead>, FilterError> {
        if self.is_all() {
            return Ok(heads.iter().collect());
        }
        if heads.is_empty() {
            return Err(FilterError::NoRuns { wanted: self.to_string() });
        }
        let known = known_keys(heads);
        for key in self.conditions.keys() {
            if !known.contains(key.as_str()) {
                let hint = suggest::hint(key, known.iter().copied());
                return Err(FilterError::UnknownKey { key: key.clone(), hint });
            }
        }
        let chosen: Vec<&RunHead> = heads.iter().filter(|head| self.holds(head)).collect();
        if chosen.is_empty() {
            let exists = self.conditions.keys().map(|key| values(heads, key));
            let exists = exists.collect::<Vec<_>>().join("; ");
            return Err(FilterError::NoMatch { wanted: self.to_string(), exists });
        }
        Ok(chosen)
    }

    fn holds(&self, head: &RunHead) -> bool {
        self.conditions.iter().all(|(key, values)| {
            let Some(value) = value_of(head, key) else { return false };
            match key.as_str() {
                "execution" => values.iter().any(|start| value.starts_with(start.as_str())),
                _ => values.contains(value),
            }
        })
    }
}

fn value_of<'a>(head: &'a RunHead, key: &str) -> Option<&'a str> {
    match key {
        "execution" => Some(&head.execution),
        "label" => Some(&head.label),
        "phase" => Some(&head.phase),
        "study" => Some(&head.study),
        "valid" => Some(if head.valid { "true" } else { "false" }),
        setting => head.settings.get(setting).map(String::as_str),
    }
}

fn known_keys(heads: &[RunHead]) -> BTreeSet<&str> {
    let settings = heads.iter().flat_map(|head| head.settings.keys().map(String::as_str));
    settings.chain(COMMON_KEYS).chain(COMMON_SETTINGS).collect()
}

/// `store: lmdb, rocksdb`: the values that a key has.
fn values(heads: &[RunHead], key: &str) -> String {
    let found: BTreeSet<&str> = heads.iter().filter_map(|head| value_of(head, key)).collect();
    let listed: Vec<&str> = found.iter().copied().take(MAX_LISTED).collect();
    match found.len() {
        0 => format!("{key}: none has it"),
        n if n > MAX_LISTED => format!("{key}: {} and {} more", listed.join(", "), n - MAX_LISTED),
        _ => format!("{key}: {}", listed.join(", ")),
    }
}

impl FromStr for RunFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<RunFilter, FilterError> {
        let mut filter = RunFilter::all();
        for condition in text.split('&') {
            match condition.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    filter = filter.with(decoded(key), decoded(value));
                }
                _ => return Err(FilterError::NotACondition(condition.to_owned())),
            }
        }
        Ok(filter)
    }
}

fn decoded(text: &str) -> String {
    text.replace("%26", "&").replace("%25", "%")
}

fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace('&', "%26")
}

impl fmt::Display for RunFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.conditions.iter().flat_map(|(key, values)| {
            values.iter().map(move |value| format!("{}={}", encoded(key), encoded(value)))
        });
        f.write_str(&conditions.collect::<Vec<_>>().join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(key: i64, store: &str, threads: &str, valid: bool) -> RunHead {
        let settings = [("store", store), ("threads", threads)];
        RunHead {
            key,
            execution: format!("abc{key}"),
            study: "quickstart".to_owned(),
            label: format!("{store} ycsb-a"),
            phase: "measure".to_owned(),
            valid,
            settings: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        }
    }

    fn heads() -> Vec<RunHead> {
        vec![
            head(1, "rocksdb", "1", true),
            head(2, "rocksdb", "2", false),
            head(3, "lmdb", "2", true),
        ]
    }

    fn chosen(text: &str) -> Vec<i64> {
        let filter: RunFilter = text.parse().unwrap();
        filter.select(&heads()).unwrap().iter().map(|head| head.key).collect()
    }

    #[test]
    fn conditions_narrow_and_repeated_keys_widen() {
        assert_eq!(chosen("store=rocksdb"), [1, 2]);
        assert_eq!(chosen("store=rocksdb&threads=2"), [2]);
        assert_eq!(chosen("store=rocksdb&store=lmdb&threads=2"), [2, 3]);
        assert_eq!(chosen("valid=true"), [1, 3]);
        assert_eq!(chosen("execution=abc3"), [3]);
        assert_eq!(chosen("study=quickstart&phase=measure&label=lmdb ycsb-a"), [3]);
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let filter: RunFilter = "thread=2".parse().unwrap();
        let error = filter.select(&heads()).unwrap_err().to_string();
        assert!(error.contains("`thread`") && error.contains("`threads`"), "{error}");
    }

    #[test]
    fn nothing_selected_lists_what_exists() {
        let filter: RunFilter = "store=rocks&workload=ycsb-a".parse().unwrap();
        let error = filter.select(&heads()).unwrap_err().to_string();
        assert!(error.contains("store: lmdb, rocksdb"), "{error}");
        assert!(error.contains("workload: none has it"), "{error}");
        let error = filter.select(&[]).unwrap_err();
        assert!(matches!(error, FilterError::NoRuns { .. }), "{error}");
        assert!(RunFilter::all().select(&[]).unwrap().is_empty());
    }

    #[test]
    fn refuses_malformed_conditions() {
        for text in ["", "store", "=x", "store=a&", "store=a&&b=c"] {
            assert!(text.parse::<RunFilter>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn text_survives_a_round_trip() {
        let filter = RunFilter::all().with("store.path", "/a&b%26=c").with("label", "x");
        assert_eq!(filter.to_string().parse::<RunFilter>().unwrap(), filter);
    }
}
