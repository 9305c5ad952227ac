//! How requests are divided over the keys, from those in the sample.

use serde::Serialize;

use super::Figure;
use super::key_sample::KeySample;
use super::zipf_fit::{self, ZipfFit};

/// How popular the keys are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PopularitySummary {
    /// Requests by rank.
    pub ranks: Vec<RankPoint>,
    /// Whether the ranks are exact: every key was counted.
    pub ranks_exact: bool,
    /// The share of the requests that go to the most popular 1 % and 10 % of the keys.
    pub top_1_percent: Figure,
    pub top_10_percent: Figure,
    /// The share of the keys that are requested once.
    pub one_hit_wonders: Figure,
    /// Spearman's rank correlation of the size of an item and its requests. `None` where sizes are
    /// all the same or not known.
    pub size_correlation: Option<Figure>,
    pub zipf: Option<ZipfFit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankPoint {
    pub rank: f64,
    pub requests: u64,
}

impl PopularitySummary {
    pub(super) fn of(sample: &KeySample) -> PopularitySummary {
        let mut requests: Vec<u64> = sample.keys().map(|key| key.requests).collect();
        requests.sort_unstable_by(|a, b| b.cmp(a));
        let count = requests.len();
        let whole = sample.is_whole();
        let once = requests.iter().rev().take_while(|requests| **requests == 1).count();
        let once = once as f64 / count.max(1) as f64;
        let of_share = |error: f64, value: f64| Figure::new(value, (!whole).then_some(error));
        PopularitySummary {
            ranks: ranks(&requests, sample.share()),
            ranks_exact: whole,
            top_1_percent: top(&requests, 0.01, whole),
            top_10_percent: top(&requests, 0.1, whole),
            one_hit_wonders: of_share((once * (1.0 - once) / count.max(1) as f64).sqrt(), once),
            size_correlation: correlation(sample)
                .map(|rho| of_share((1.0 - rho * rho) / (count as f64).sqrt(), rho)),
            zipf: zipf_fit::fit(&spectrum(&requests)),
        }
    }
}

/// At ranks 1, 2, 5, 10, 20, ... of the sample; each stands for `1 / share` keys.
fn ranks(requests: &[u64], share: f64) -> Vec<RankPoint> {
    let (mut points, mut decade) = (Vec::new(), 1);
    while decade <= requests.len() {
        for rank in [decade, 2 * decade, 5 * decade] {
            if let Some(requests) = requests.get(rank - 1) {
                let rank = if share < 1.0 { (rank as f64 - 0.5) / share } else { rank as f64 };
                points.push(RankPoint { rank, requests: *requests });
            }
        }
        decade *= 10;
    }
    points
}

/// The share of the most popular keys. Of a sample, the error is that of a ratio of two sums.
fn top(requests: &[u64], share: f64, whole: bool) -> Figure {
    let keys = ((requests.len() as f64 * share).round() as usize).clamp(1, requests.len().max(1));
    let all = requests.iter().sum::<u64>().max(1) as f64;
    let part = requests.iter().take(keys).sum::<u64>() as f64 / all;
    let squares: f64 = requests
        .iter()
        .enumerate()
        .map(|(rank, requests)| {
            let weight = f64::from(u8::from(rank < keys)) - part;
            (weight * *requests as f64).powi(2)
        })
        .sum();
    Figure::new(part, (!whole).then_some(squares.sqrt() / all))
}

/// `(requests, keys with so many)`, rising, of requests that fall.
fn spectrum(requests: &[u64]) -> Vec<(u64, u64)> {
    let same = requests.chunk_by(|a, b| a == b);
    same.rev().map(|keys| (keys[0], keys.len() as u64)).collect()
}

fn correlation(sample: &KeySample) -> Option<f64> {
    let sizes = ranked(sample.keys().map(|key| key.bytes).collect());
    let requests = ranked(sample.keys().map(|key| key.requests).collect());
    let middle = (sizes.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let norm = (product(&sizes, &sizes) * product(&requests, &requests)).sqrt();
    (norm > 0.0).then(|| product(&sizes, &requests) / norm)
}

/// The rank of each number; that of equal ones is their middle.
fn ranked(numbers: Vec<u64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_unstable_by_key(|at| numbers[*at]);
    let (mut ranks, mut begin) = (vec![0.0; numbers.len()], 0);
    for same in order.chunk_by(|a, b| numbers[*a] == numbers[*b]) {
        let rank = begin as f64 + (same.len() as f64 - 1.0) / 2.0;
        same.iter().for_each(|at| ranks[*at] = rank);
        begin += same.len();
    }
    ranks
}
