//! Popularity without the chance that is in the numbers of requests.
//!
//! A key with few requests has more or fewer of them than its popularity makes due, as Poisson
//! numbers have. A table of these numbers is too skewed: drawn from, it adds chance once more.

use model::Count;

use super::popularity::table;
use super::significant;
use crate::Popularity;

/// Keys with more requests are taken as they are: chance is below a sixteenth of them.
const FEW: u64 = 256;
/// Popularities that are tried, in requests due over the trace, and the factor between two.
const LEAST: f64 = 0.25;
const STEP: f64 = 1.15;
const ROUNDS: usize = 300;

/// The popularity behind a spectrum, `(requests, keys)` rising, and how many records have it. They
/// are more than the keys, as some are not requested by chance. `share`: the part of the keys that
/// the spectrum holds. None where no key has few requests.
pub(super) fn table_behind(spectrum: &[(u64, u64)], share: f64) -> Option<(Popularity, Count)> {
    let (few, many) = spectrum.split_at(spectrum.partition_point(|(times, _)| *times <= FEW));
    let due = due(few)?;
    let mut ranges = Vec::new();
    let of = |part: &[(u64, u64)]| part.iter().map(|(times, keys)| times * keys).sum::<u64>();
    let all = of(spectrum) as f64;
    if !many.is_empty()
        && let Popularity::Ranks { ranges: raw } = table(many, share)
    {
        let part = of(many) as f64 / all;
        ranges.extend(raw.into_iter().map(|(keys, of)| (keys, significant(of * part, 5))));
    }
    for (requests, records) in due.into_iter().rev() {
        let scaled = (records / share).round();
        if scaled >= 1.0 {
            ranges.push((Count(scaled as u64), significant(records * requests / all, 5)));
        }
    }
    let records = ranges.iter().map(|(records, _)| records.0).sum();
    (records > 0).then_some((Popularity::Ranks { ranges }, Count(records)))
}

/// `(requests due, records)`, rising: the mixture of Poisson distributions without their zeros that
/// is the most likely (N. Laird, "Nonparametric Maximum Likelihood Estimation of a Mixing
/// Distribution", JASA 1978, by expectation and maximization).
fn due(spectrum: &[(u64, u64)]) -> Option<Vec<(f64, f64)>> {
    let most = spectrum.last()?.0 as f64;
    let keys: f64 = spectrum.iter().map(|(_, keys)| *keys as f64).sum();
    let mut rates = vec![LEAST];
    while let Some(last) = rates.last().filter(|last| **last < most) {
        rates.push(last * STEP);
    }
    let seen = |rate: f64| -(-rate).exp_m1();
    let mut ln_factorial = vec![0.0f64];
    for number in 1..=FEW {
        ln_factorial.push(ln_factorial[number as usize - 1] + (number as f64).ln());
    }
    let chances: Vec<Vec<f64>> = spectrum
        .iter()
        .map(|(times, _)| {
            let of = |rate: &f64| {
                let ln = *times as f64 * rate.ln() - rate - ln_factorial[*times as usize];
                ln.exp() / seen(*rate)
            };
            rates.iter().map(of).collect()
        })
        .collect();
    let mut weights = vec![1.0 / rates.len() as f64; rates.len()];
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; rates.len()];
        for ((_, with), chances) in spectrum.iter().zip(&chances) {
            let sum: f64 =
                weights.iter().zip(chances).map(|(weight, chance)| weight * chance).sum();
            let scale = *with as f64 / keys / sum.max(f64::MIN_POSITIVE);
            for ((next, weight), chance) in next.iter_mut().zip(&weights).zip(chances) {
                *next += scale * weight * chance;
            }
        }
        weights = next;
    }
    let of = |(rate, weight): (f64, f64)| (rate, weight * keys / seen(rate));
    Some(rates.into_iter().zip(weights).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use model::random::{Draws, RandomStream, below};

    /// Chance spreads the requests of equally popular keys; the table has nearly one popularity.
    #[test]
    fn chance_is_taken_out() {
        let random = RandomStream::new(1, 9);
        let mut times = vec![0u64; 5000];
        for request in 0..25_000 {
            times[below(Draws::from(random.at(request)).next(), 5000) as usize] += 1;
        }
        let mut spectrum = BTreeMap::new();
        times
            .iter()
            .filter(|times| **times > 0)
            .for_each(|of| *spectrum.entry(*of).or_insert(0) += 1);
        let spectrum: Vec<(u64, u64)> = spectrum.into_iter().collect();
        let (popularity, records) = table_behind(&spectrum, 1.0).unwrap();
        assert!((records.0 as f64 / 5000.0 - 1.0).abs() < 0.02, "{records}");
        let Popularity::Ranks { ranges } = popularity else { panic!() };
        let near = ranges.iter().filter(|(keys, share)| {
            let due = share * 25_000.0 / keys.0 as f64;
            (4.0..6.0).contains(&due)
        });
        let near: u64 = near.map(|(keys, _)| keys.0).sum();
        assert!(near as f64 > 0.9 * records.0 as f64, "{near} of {records}: {ranges:?}");
        assert_eq!(table_behind(&[(FEW + 1, 5)], 1.0), None);
    }
}
