//! The measured skew of requests over records.

use std::sync::{Arc, Mutex, PoisonError};

use model::Op;
use serde::{Deserialize, Serialize};

use crate::operation::BLOCK;
use crate::popularity::{TopOfRanges, scatter};
use crate::workload::{ChosenRecord, Workload};

/// The share of the requests that went to the most popular records, counted in the stream.
///
/// Which records are the most popular follows from the definition of the popularity, not from the
/// same count: picked from the count, even a uniform stream would look skewed. A read of several
/// keys counts for each of them, and a key that was never loaded is no popular record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// Share of requests to the most popular 1 % of the loaded records (at least one record).
    pub top_1_percent: f64,
    /// Share of requests to the 10,000 most popular records, or to all where there are fewer.
    pub top_10_000: f64,
    /// Operations that were counted, those that insert included.
    pub operations: u64,
    /// How the most popular records were determined, in words.
    pub method: String,
}

/// Operations that are replayed at most: a share of one half is then known to 0.05 %.
const REPLAYED: u64 = 1 << 22;

/// Up to here the mass of every record is tabled, 4 bytes each.
const TABLED: u64 = 1 << 22;

/// Ranks whose masses go into the table; the rare others are spread evenly over all records.
const HEAD: u64 = 1 << 22;

impl Workload {
    /// The skew that the first `operations` operations of the stream really have; `None` where none
    /// of them reads an existing record, and in key ranges of more than 4 million records. Takes at
    /// most some tenths of a second and 16 MiB, of which up to 4 are cached for other runs on the same
    /// data; with key ranges some 60 MiB.
    pub fn skew(&self, operations: u64) -> Option<Skew> {
        measure(self, operations)
    }
}

/// Counts the first operations of a workload's stream; `None` where they read no record.
fn measure(workload: &Workload, operations: u64) -> Option<Skew> {
    let records = workload.spec().records.0;
    let tops = [records.div_ceil(100).max(1), records.min(10_000)];
    if workload.chooser.is_sequential() {
        return sequential(workload, records, tops, operations);
    }
    let (judge, method) = TopRecordTest::new(workload, records, tops)?;
    let operations = operations.min(REPLAYED / u64::from(workload.spec().multi_get));
    let mut stream = workload.stream();
    let (mut counted, mut keys, mut hits) = (0u64, 0u64, [0.0; 2]);
    for index in 0..operations {
        if index % BLOCK == 0 {
            stream.seek(index / BLOCK);
        }
        let Some(step) = stream.step() else { break };
        if step.op != Op::Insert {
            counted += 1;
            keys += u64::from(step.keys);
            judge.count(ChosenRecord { record: step.record, rank: step.rank }, &mut hits);
            for n in 1..step.keys {
                judge.count(workload.nth_chosen(&step.operation(), n), &mut hits);
            }
        }
    }
    (counted > 0).then(|| Skew {
        top_1_percent: hits[0] / keys as f64,
        top_10_000: hits[1] / keys as f64,
        operations: counted,
        method,
    })
}

/// A cache of tests of scattered popularities by ranks, exponent and records: making one takes
/// tenths of a second, and all runs on the same data share it. At most 4 MiB each.
static KNOWN: Mutex<Vec<(Scattered, Arc<TopRecordTest>)>> = Mutex::new(Vec::new());
const MOST_KNOWN: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Scattered {
    ranks: u64,
    theta: f64,
    records: u64,
}

fn cached_test(of: Scattered, make: impl FnOnce() -> TopRecordTest) -> Arc<TopRecordTest> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = known.iter().position(|(other, _)| *other == of) {
        let entry = known.remove(at);
        known.push(entry);
    } else {
        if known.len() == MOST_KNOWN {
            known.remove(0);
        }
        known.push((of, Arc::new(make())));
    }
    Arc::clone(&known[known.len() - 1].1)
}

/// Tests whether an operation uses one of the top records. It may count in part, see below.
enum TopRecordTest {
    /// The ranks below these, and the share of other ranks that hit one of their records.
    Ranks([u64; 2], [f64; 2]),
    /// For each record a digit to the base 3 for each top: out of it, in it in part, or in it; and
    /// what part that is.
    Classes {
        of_record: Vec<u8>,
        parts: [f64; 2],
    },
    KeyRanges(TopOfRanges),
}

/// The mass from which on a record belongs to the top, and what part of those that have exactly
/// this mass does.
#[derive(Clone, Copy)]
struct TopThreshold {
    mass: f32,
    part: f64,
}

impl TopRecordTest {
    /// None where there are too many records to tell.
    fn new(
        workload: &Workload,
        records: u64,
        tops: [u64; 2],
    ) -> Option<(Arc<TopRecordTest>, String)> {
        if let Some(ranges) = workload.chooser.key_ranges() {
            let test = TopRecordTest::KeyRanges(TopOfRanges::new(ranges, tops)?);
            return Some((Arc::new(test), "records by their probability, replayed".to_owned()));
        }
        let ranks = |below, otherwise| Arc::new(TopRecordTest::Ranks(below, otherwise));
        Some(match workload.chooser.scattered() {
            None if workload.chooser.counts_from_newest() => {
                (ranks(tops, [0.0; 2]), "ranks below the newest record, replayed".to_owned())
            }
            None => (ranks(tops, [0.0; 2]), "ranks by definition, replayed".to_owned()),
            Some(zipf) if records <= TABLED => {
                let of = Scattered { ranks: zipf.ranks().min(HEAD), theta: zipf.theta(), records };
                let judge = cached_test(of, || TopRecordTest::by_mass(of, tops));
                let method = format!(
                    "records onto which the first {HEAD} ranks hash, by their summed probability; \
                     replayed"
                );
                (judge, method)
            }
            Some(_) => {
                // As many first ranks as fall, on average, on `top` different records; and a rank
                // beyond them hits one of these records as often as any other.
                let n = records as f64;
                let share = tops.map(|top| top as f64 / n);
                let below = share.map(|share| ((-share).ln_1p() / (-1.0 / n).ln_1p()) as u64);
                let method = "records of the first ranks that together hash onto as many; a rarer \
                              rank counts by the part of all records that these are; replayed";
                (ranks(below, share), method.to_owned())
            }
        })
    }

    fn by_mass(of: Scattered, tops: [u64; 2]) -> TopRecordTest {
        let masses = masses(of.ranks, of.theta, of.records);
        let at = tops.map(|top| threshold(&masses, top));
        let class = |mass: f32| {
            at.map(|at| match mass {
                mass if mass > at.mass => 2,
                mass if mass == at.mass => 1,
                _ => 0,
            })
        };
        let of_record = masses.into_iter().map(class).map(|[one, other]| one + 3 * other).collect();
        TopRecordTest::Classes { of_record, parts: at.map(|at| at.part) }
    }

    #[inline(always)]
    fn count(&self, step: ChosenRecord, hits: &mut [f64; 2]) {
        if Workload::is_absent(step.record) {
            return;
        }
        match self {
            TopRecordTest::Ranks(below, otherwise) => {
                for ((hit, below), otherwise) in hits.iter_mut().zip(below).zip(otherwise) {
                    *hit += if step.rank < *below { 1.0 } else { *otherwise };
                }
            }
            TopRecordTest::Classes { of_record, parts } => {
                let classes = of_record[step.record as usize];
                for ((hit, part), class) in
                    hits.iter_mut().zip(parts).zip([classes % 3, classes / 3])
                {
                    *hit += [0.0, *part, 1.0][usize::from(class)];
                }
            }
            TopRecordTest::KeyRanges(top) => {
                hits.iter_mut().zip(top.parts(step.record)).for_each(|(hit, part)| *hit += part);
            }
        }
    }
}

/// The summed k^-theta of the ranks that hash onto each record.
fn masses(ranks: u64, theta: f64, records: u64) -> Vec<f32> {
    let mut of_record = vec![0.0f32; records as usize];
    for rank in 0..ranks {
        let mass = (-theta * ((rank + 1) as f64).ln()).exp();
        of_record[scatter(rank, records) as usize] += mass as f32;
    }
    of_record
}

/// Where the `top` greatest masses begin, without sorting: numbers that are not negative are in
/// the order of their bits, so that two counts, by the upper and the lower half, find it.
fn threshold(masses: &[f32], top: u64) -> TopThreshold {
    let mut above = 0u64;
    let mut upper = 0u32;
    for shift in [16, 0] {
        let mut counts = vec![0u64; 1 << 16];
        for mass in masses {
            let bits = mass.to_bits();
            if shift == 16 || bits >> 16 == upper {
                counts[(bits >> shift & 0xffff) as usize] += 1;
            }
        }
        let mut half = counts.len() - 1;
        while half > 0 && above + counts[half] < top {
            above += counts[half];
            half -= 1;
        }
        if shift == 0 {
            let equal = counts[half].max(1);
            let part = ((top - above) as f64 / equal as f64).min(1.0);
            return TopThreshold { mass: f32::from_bits(upper << 16 | half as u32), part };
        }
        upper = half as u32;
    }
    TopThreshold { mass: 0.0, part: 1.0 }
}

/// Operation `i` uses record `i` modulo `records`: a replay of the beginning would be no sample, so
/// this is counted by arithmetic, as if every operation were a read.
fn sequential(workload: &Workload, records: u64, tops: [u64; 2], operations: u64) -> Option<Skew> {
    if operations == 0 || workload.spec().is_load() {
        return None;
    }
    let spec = workload.spec();
    // Other operations advance by as many records as a read.
    let passed = operations.saturating_mul(u64::from(spec.multi_get));
    let (rounds, rest) = (passed / records, passed % records);
    let weights = spec.mix.weights();
    let reads = weights[Op::Read] * f64::from(spec.multi_get);
    let others: f64 = Op::ALL
        .into_iter()
        .filter(|op| !matches!(op, Op::Read | Op::Insert))
        .map(|op| weights[op])
        .sum();
    let there = (reads * spec.hit_ratio + others) / (reads + others);
    let [top_1_percent, top_10_000] =
        tops.map(|top| there * (rounds as f64 * top as f64 + rest.min(top) as f64) / passed as f64);
    let method = "first records, by arithmetic".to_owned();
    Some(Skew { top_1_percent, top_10_000, operations, method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkloadSpec;

    fn skew(text: &str, records: u64, operations: u64) -> Skew {
        let spec = WorkloadSpec {
            records: model::Count(records),
            popularity: text.parse().unwrap(),
            ..WorkloadSpec::default()
        };
        Workload::new(&spec).unwrap().skew(operations).unwrap()
    }

    fn zeta(n: u64, theta: f64) -> f64 {
        (1..=n).map(|k| (k as f64).powf(-theta)).sum()
    }

    #[test]
    fn measured_skew_matches_definition() {
        let n = 2_000_000;
        let zipf = |top: u64, theta| zeta(top, theta) / zeta(n, theta);
        for (text, one_percent, ten_thousand) in [
            ("uniform", 0.01, 0.005),
            ("sequential", 0.02, 0.01),
            ("zipfian:0.99", zipf(20_000, 0.99), zipf(10_000, 0.99)),
            ("zipfian:0.5", zipf(20_000, 0.5), zipf(10_000, 0.5)),
            ("latest:1.2", zipf(20_000, 1.2), zipf(10_000, 1.2)),
            ("hotspot:0.01,0.9", 0.9, 0.45),
        ] {
            // A sequential stream of half a round reads the first records only.
            let skew = skew(text, n, 1_000_000);
            // Four standard errors of a share of one half.
            assert!((skew.top_1_percent - one_percent).abs() < 0.002, "{text}: {skew:?}");
            assert!((skew.top_10_000 - ten_thousand).abs() < 0.002, "{text}: {skew:?}");
            assert_eq!(skew.operations, 1_000_000);
        }
    }

    /// Both ways to find the top of a scattered popularity, on either side of the limit.
    #[test]
    fn exact_and_approximate_tops_agree() {
        let table = skew("scrambled_zipfian", TABLED, 2_000_000);
        let approximation = skew("scrambled_zipfian", TABLED + 1, 2_000_000);
        assert_ne!(table.method, approximation.method);
        assert!((table.top_1_percent - approximation.top_1_percent).abs() < 0.002);
        assert!((table.top_10_000 - approximation.top_10_000).abs() < 0.002);
        let million = skew("scrambled_zipfian", 1_000_000, 2_000_000);
        assert!((million.top_10_000 - 0.394).abs() < 0.002, "{million:?}");
        assert_eq!(million.top_1_percent, million.top_10_000);
    }

    #[test]
    fn measures_few_records_and_no_requests() {
        let all = skew("scrambled_zipfian", 50, 10_000);
        assert_eq!(all.top_10_000, 1.0);
        assert!(all.top_1_percent > 0.02 && all.top_1_percent < 0.2, "{all:?}");
        let load = Workload::new(&WorkloadSpec::preset("ycsb-load").unwrap()).unwrap();
        assert_eq!(load.skew(1000), None);
        assert_eq!(Workload::new(&WorkloadSpec::default()).unwrap().skew(0), None);
    }

    #[test]
    fn top_records_are_cached() {
        let of = Scattered { ranks: 7, theta: 0.5, records: 3 };
        let first = cached_test(of, || TopRecordTest::by_mass(of, [1, 3]));
        assert!(Arc::ptr_eq(&first, &cached_test(of, || panic!("looked for again"))));
        let other = Scattered { theta: 0.6, ..of };
        assert!(!Arc::ptr_eq(
            &first,
            &cached_test(other, || TopRecordTest::by_mass(other, [1, 3]))
        ));
    }

    #[test]
    fn threshold_splits_ties() {
        let masses = [0.5, 0.0, 0.25, 0.25, 0.25, 0.25, 1.0, 0.0];
        for (top, mass, part) in
            [(1, 1.0, 1.0), (2, 0.5, 1.0), (3, 0.25, 0.25), (6, 0.25, 1.0), (7, 0.0, 0.5)]
        {
            let entry = threshold(&masses, top);
            assert_eq!((entry.mass, entry.part), (mass, part), "top {top}");
        }
    }
}
