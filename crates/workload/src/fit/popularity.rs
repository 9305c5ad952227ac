//! Popularity as a table of ranks, and Zipf's law over as many records as it takes.

use model::Count;

use super::significant;
use crate::Popularity;

/// Ranks with a row of their own.
const SINGLE: u64 = 16;
/// Each further row is so much wider than the one before.
const GROWTH: f64 = 1.25;

/// The keys of a spectrum, `(requests, keys)` rising, from the most popular on. `share`: the part
/// of the keys that it holds.
pub(super) fn table(spectrum: &[(u64, u64)], share: f64) -> Popularity {
    let mut rows: Vec<(u64, f64)> = Vec::new();
    let (mut width, mut done) = (1.0f64, 0);
    let (mut keys, mut requests) = (0u64, 0.0);
    for (times, with) in spectrum.iter().rev() {
        let mut left = *with;
        while left > 0 {
            let wanted = (width.round() as u64).max(1);
            let taken = left.min(wanted - keys);
            keys += taken;
            left -= taken;
            requests += taken as f64 * *times as f64;
            if keys == wanted {
                rows.push((keys, requests));
                done += keys;
                (keys, requests) = (0, 0.0);
                if done >= SINGLE {
                    width *= GROWTH;
                }
            }
        }
    }
    if keys > 0 {
        rows.push((keys, requests));
    }
    // Rows of keys that are requested equally often become one.
    let mut merged: Vec<(u64, f64)> = Vec::new();
    for (keys, requests) in rows {
        match merged.last_mut() {
            Some((with, sum)) if *sum / *with as f64 == requests / keys as f64 => {
                *with += keys;
                *sum += requests;
            }
            _ => merged.push((keys, requests)),
        }
    }
    let all: f64 = merged.iter().map(|(_, requests)| requests).sum();
    let (mut sampled, mut before) = (0, 0);
    let ranges = merged.iter().map(|(keys, requests)| {
        sampled += keys;
        let up_to = (sampled as f64 / share).round() as u64;
        let records = Count((up_to - before).max(1));
        before = up_to;
        (records, significant(requests / all, 5))
    });
    Popularity::Ranks { ranges: ranges.collect() }
}

/// The number of records under Zipf's law of which so many requests use `keys` distinct ones. With
/// a `theta` of 0 all are equally popular.
pub(super) fn records_behind(theta: f64, requests: u64, keys: f64) -> u64 {
    let (mut low, mut high) = (keys, keys * 1000.0);
    if distinct(theta, requests, high) < keys {
        return high as u64;
    }
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if distinct(theta, requests, middle) < keys { low = middle } else { high = middle }
    }
    high.round() as u64
}

/// The expected number of distinct records.
fn distinct(theta: f64, requests: u64, records: f64) -> f64 {
    // Cells of ranks that are equally popular to within some percents.
    let cells = || {
        let mut first = 1.0f64;
        std::iter::from_fn(move || {
            let width = (first / 16.0).floor().max(1.0).min(records - first + 1.0);
            let cell = (first + (width - 1.0) / 2.0, width);
            first += width;
            (width > 0.0 && cell.0 <= records).then_some(cell)
        })
    };
    let sum: f64 = cells().map(|(rank, width)| width * rank.powf(-theta)).sum();
    let of = |rank: f64| rank.powf(-theta) / sum * requests as f64;
    cells().map(|(rank, width)| -width * (-of(rank)).exp_m1()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_every_key_and_request() {
        let spectrum: Vec<(u64, u64)> = (1..200).map(|times| (times, 10_000 / times)).collect();
        let Popularity::Ranks { ranges } = table(&spectrum, 1.0) else { panic!() };
        let keys: u64 = ranges.iter().map(|(keys, _)| keys.0).sum();
        assert_eq!(keys, spectrum.iter().map(|(_, keys)| keys).sum::<u64>());
        let sum: f64 = ranges.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
        assert!(ranges.len() < 80, "{}", ranges.len());
        let each: Vec<f64> = ranges.iter().map(|(keys, share)| share / keys.0 as f64).collect();
        assert!(each.windows(2).all(|pair| pair[0] >= pair[1] * 0.999));
    }

    #[test]
    fn the_records_behind_a_zipf_trace_are_found() {
        for (theta, records) in [(0.8, 50_000.0), (1.1, 200_000.0)] {
            let keys = distinct(theta, 300_000, records);
            let found = records_behind(theta, 300_000, keys) as f64;
            assert!((found / records - 1.0).abs() < 0.01, "{theta}: {found}");
        }
    }
}
