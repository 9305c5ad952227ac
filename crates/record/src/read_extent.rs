//! How much of each run is read.

use std::collections::{BTreeSet, HashSet};

/// The most runs that an overview reads whole.
const MAX_EXAMPLES: usize = 20;

/// How much of each run is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReadExtent {
    #[default]
    Whole,
    /// What tables of many runs need: settings, counts, remarks, the figures of distributions, and of the readings
    /// those that have a value and one of these names (`ipc`), end in `.` and one of them, or begin
    /// like one (`energy.*`). No samples and no facts of the stream (unless a name begins with
    /// `stream.`), and time series only of runs of a study with a design: its intervals are
    /// computed from them. For signals in `reasons`, also the reason why one is unavailable. The
    /// runs of [`examples`] are whole.
    ///
    /// Of other repeats of one thing the first has the buckets of all, and each its own figures;
    /// with `distributions` each has its own buckets.
    Overview { signals: BTreeSet<String>, reasons: BTreeSet<String>, distributions: bool },
}

impl ReadExtent {
    /// Whether the facts of the stream are read for runs other than the examples.
    pub(crate) fn includes_stream(&self) -> bool {
        match self {
            ReadExtent::Whole => true,
            ReadExtent::Overview { signals, .. } => {
                signals.iter().any(|name| name.starts_with("stream."))
            }
        }
    }

    /// Whether the buckets of repeats are added up.
    pub(crate) fn adds_up_repeats(&self) -> bool {
        matches!(self, ReadExtent::Overview { distributions: false, .. })
    }

    pub(crate) fn is_overview(&self) -> bool {
        matches!(self, ReadExtent::Overview { .. })
    }

    /// Whether a reading of this signal is read for runs other than the examples; `valued`: it has
    /// a value.
    pub(crate) fn includes(&self, signal: &str, valued: bool) -> bool {
        match self {
            ReadExtent::Whole => true,
            ReadExtent::Overview { reasons, .. } if !valued => reasons.contains(signal),
            ReadExtent::Overview { signals, .. } => {
                let first = signal.split('.').next().unwrap_or(signal);
                let last = signal.rsplit('.').next().unwrap_or(signal);
                signals.contains(signal)
                    || signals.contains(last)
                    || signals.contains(&format!("{first}.*"))
            }
        }
    }
}

/// The positions of the runs that an overview reads whole: the first of each label, up to a limit.
pub fn examples<'r>(labels: impl Iterator<Item = &'r str>) -> BTreeSet<usize> {
    let mut seen = HashSet::new();
    let first = labels.enumerate().filter(|(_, label)| seen.insert(*label));
    first.map(|(place, _)| place).take(MAX_EXAMPLES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_included_by_its_whole_name_or_its_last_part() {
        let signals = ["energy.total", "limit.*", "write_amplification"].map(str::to_owned).into();
        let reasons = ["residency.C6".to_owned()].into();
        let overview = ReadExtent::Overview { signals, reasons, distributions: false };
        for signal in
            ["energy.total", "write_amplification", "device.write_amplification", "limit.cpu"]
        {
            assert!(overview.includes(signal, true), "{signal}");
            assert!(!overview.includes(signal, false), "{signal}");
        }
        assert!(
            !overview.includes("limits", true)
                && !overview.includes("total", true)
                && !overview.includes("energy", true)
        );
        assert!(overview.includes("residency.C6", false));
        assert!(ReadExtent::Whole.includes("anything", false));
    }

    #[test]
    fn the_first_of_each_label_is_an_example() {
        let labels = ["a", "a", "b", "a", "c"];
        assert_eq!(examples(labels.into_iter()), [0, 2, 4].into());
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(examples(many.iter().map(String::as_str)).len(), MAX_EXAMPLES);
    }
}
