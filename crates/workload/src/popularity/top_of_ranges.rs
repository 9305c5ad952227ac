//! Which records of key ranges are the most popular.

use super::key_ranges::RangeChooser;

/// Ranks that are looked at one by one; the rarer others are spread evenly.
const HEAD: u64 = 1 << 22;
/// The widest range of which every record's mass is tabled, 8 bytes each.
const WIDEST: u64 = 1 << 22;

/// Tests whether a record is one of the most popular ones.
pub struct TopOfRanges {
    /// First record, share and index of the masses of each range, by first record.
    ranges: Vec<(u64, f64, usize)>,
    /// For each width that occurs, at most two: the mass of each record of a range.
    masses: Vec<Vec<f64>>,
    tops: [MassLimit; 2],
}

/// Records with a mass of at least `all` belong to the top; of those with at least `some`, the share
/// `part` does.
#[derive(Debug, Clone, Copy)]
struct MassLimit {
    all: f64,
    some: f64,
    part: f64,
}

impl TopOfRanges {
    /// The first `tops` of the records. None for ranges of more than 4 million records.
    pub fn new(chooser: &RangeChooser, tops: [u64; 2]) -> Option<TopOfRanges> {
        let mut widths: Vec<u64> = chooser.ranges.iter().map(|range| range.width).collect();
        widths.sort_unstable();
        widths.dedup();
        if widths.last().is_none_or(|widest| *widest > WIDEST) {
            return None;
        }
        let masses: Vec<Vec<f64>> =
            widths.iter().map(|width| chooser.masses(*width, HEAD)).collect();
        let sorted: Vec<Vec<f64>> = masses
            .iter()
            .map(|masses| {
                let mut sorted = masses.clone();
                sorted.sort_unstable_by(|a, b| b.total_cmp(a));
                sorted
            })
            .collect();
        let mut ranges: Vec<(u64, f64, usize)> = chooser
            .ranges
            .iter()
            .map(|range| {
                let index = widths.partition_point(|width| *width < range.width);
                (range.first, range.share, index)
            })
            .collect();
        ranges.sort_unstable_by_key(|(first, ..)| *first);
        let from = |limit: f64| -> u64 {
            let of_range = |&(_, share, index): &(u64, f64, usize)| {
                sorted[index].partition_point(|mass| share * mass >= limit) as u64
            };
            ranges.iter().map(of_range).sum()
        };
        let tops = tops.map(|top| limit(top, from));
        Some(TopOfRanges { tops, ranges, masses })
    }

    /// What part of the record belongs to each top.
    #[inline]
    pub fn parts(&self, record: u64) -> [f64; 2] {
        let next = self.ranges.partition_point(|(first, ..)| *first <= record);
        let (first, share, index) = self.ranges[next - 1];
        let mass = share * self.masses[index][(record - first) as usize];
        self.tops.map(|top| match mass {
            mass if mass >= top.all => 1.0,
            mass if mass >= top.some => top.part,
            _ => 0.0,
        })
    }
}

/// The limit of the `top` greatest masses, `from(x)` being the number of those of at least x.
fn limit(top: u64, from: impl Fn(f64) -> u64) -> MassLimit {
    // Bits of floats that are not negative sort as the floats do.
    let (mut some, mut all) = (0.0f64.to_bits(), 2.0f64.to_bits());
    while some + 1 < all {
        let middle = some + (all - some) / 2;
        match from(f64::from_bits(middle)) >= top {
            true => some = middle,
            false => all = middle,
        }
    }
    let (some, all) = (f64::from_bits(some), f64::from_bits(all));
    let (inside, with_equals) = (from(all), from(some));
    let part = (top - inside) as f64 / (with_equals - inside).max(1) as f64;
    MassLimit { all, some, part }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyRanges;
    use model::random::{Draws, RandomStream};

    fn share_of_the_top(spec: KeyRanges, records: u64, tops: [u64; 2]) -> ([f64; 2], RangeChooser) {
        let chooser = RangeChooser::new(records, &spec);
        let top = TopOfRanges::new(&chooser, tops).unwrap();
        let members = (0..records).map(|record| top.parts(record));
        let counted = members.fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]]);
        for (counted, top) in counted.iter().zip(tops) {
            assert!((counted - top as f64).abs() < 1e-6 * top as f64, "{counted} {top}");
        }
        let random = RandomStream::new(3, 1);
        let mut hits = [0.0; 2];
        let draws = 500_000;
        for i in 0..draws {
            let part = top.parts(chooser.draw(&mut Draws::from(random.at(i))));
            hits = [hits[0] + part[0], hits[1] + part[1]];
        }
        (hits.map(|hits| hits / draws as f64), chooser)
    }

    #[test]
    fn top_records_have_the_greatest_masses() {
        let range = [14.18, -2.917, 0.0164, -0.08082];
        let spec = KeyRanges { count: 30, range, key: Some([0.1, 0.5]) };
        let (records, tops) = (1007, [10, 100]);
        let (drawn, chooser) = share_of_the_top(spec, records, tops);
        let mut all: Vec<f64> = chooser
            .ranges
            .iter()
            .flat_map(|range| {
                chooser.masses(range.width, HEAD).into_iter().map(|mass| mass * range.share)
            })
            .collect();
        assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        all.sort_unstable_by(|a, b| b.total_cmp(a));
        for (drawn, top) in drawn.iter().zip(tops) {
            let exact: f64 = all[..top as usize].iter().sum();
            // Five standard errors of a share of one half.
            assert!((drawn - exact).abs() < 0.0036, "{top}: {drawn} {exact}");
        }
    }

    /// All records of a range are equal, so that a top takes a part of each.
    #[test]
    fn equal_records_are_in_in_part() {
        let spec = KeyRanges { count: 4, range: [1.0, -1.0, 0.0, 0.0], key: None };
        let (drawn, _) = share_of_the_top(spec, 400, [50, 150]);
        let mass = |x: f64| (-x).exp() / (1..=4).map(|x| (-f64::from(x)).exp()).sum::<f64>();
        let exact = [mass(1.0) / 2.0, mass(1.0) + mass(2.0) / 2.0];
        for (drawn, exact) in drawn.iter().zip(exact) {
            assert!((drawn - exact).abs() < 0.0036, "{drawn} {exact}");
        }
    }
}
