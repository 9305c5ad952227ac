//! The miss ratio of an LRU cache by its size.

use serde::Serialize;

use super::Figure;
use super::key_sample::KeySample;

/// Sizes are these percentages of the working set.
const PERCENTS: std::ops::RangeInclusive<u64> = 1..=100;

/// Mean absolute error of the curve with 8,192 sampled keys (Waldspurger et al., FAST 2015); it
/// falls with the root of their number.
const ERROR: f64 = 0.01;
const ERROR_KEYS: f64 = 8192.0;

/// Misses of an LRU cache that is filled by what it misses, as a share of the reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissRatioCurve {
    /// Exact where every key was in the sample; else the usual error of a point.
    pub exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Keys whose requests were counted.
    pub sampled_keys: usize,
    /// The working set: all distinct keys, and their bytes (keys and values).
    pub items: Figure,
    pub bytes: Figure,
    pub points: Vec<MissRatioPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MissRatioPoint {
    /// Size as a share of the working set, in items and in bytes.
    pub share: f64,
    pub items: u64,
    pub bytes: u64,
    /// Of a cache that holds so many items, and of one that holds so many bytes.
    pub by_items: f64,
    pub by_bytes: f64,
}

impl MissRatioCurve {
    /// `None` without reads. `keys`: an estimate of their number with its error.
    pub(super) fn of(sample: &KeySample, keys: Figure) -> Option<MissRatioCurve> {
        if sample.reads == 0 {
            return None;
        }
        let exact = sample.is_whole();
        let count = sample.len() as f64;
        let sum: f64 = sample.keys().map(|key| key.bytes as f64).sum();
        let squares: f64 = sample.keys().map(|key| (key.bytes as f64).powi(2)).sum();
        let mean = sum / count;
        let bytes = match keys.standard_error {
            None => Figure::new(sum, None),
            Some(error) => {
                let spread = (squares / count - mean * mean).max(0.0) / count;
                let relative = (error / keys.value).hypot(spread.sqrt() / mean.max(1e-9));
                Figure::new(mean * keys.value, Some(relative * mean * keys.value))
            }
        };
        let sizes = |of: f64| -> Vec<u64> {
            PERCENTS.map(|percent| (of * percent as f64 / 100.0).round() as u64).collect()
        };
        let (items, byte_sizes) = (sizes(keys.value), sizes(bytes.value));
        let by_items = sample.miss_ratios(&sample.items, &items);
        let by_bytes = sample.miss_ratios(&sample.bytes, &byte_sizes);
        let points = PERCENTS.enumerate().map(|(at, percent)| MissRatioPoint {
            share: percent as f64 / 100.0,
            items: items[at],
            bytes: byte_sizes[at],
            by_items: by_items[at],
            by_bytes: by_bytes[at],
        });
        Some(MissRatioCurve {
            exact,
            standard_error: (!exact).then(|| ERROR * (ERROR_KEYS / count).sqrt()),
            sampled_keys: sample.len(),
            items: keys,
            bytes,
            points: points.collect(),
        })
    }
}
