//! RocksDB's mixgraph.

use model::{Bytes, Count, Op};

use crate::popularity::KeyRanges;
use crate::{InsertOrder, KeyForm, KeySpec, LengthSpec, Mix, Popularity, ValueSpec, WorkloadSpec};

/// ZippyDB as db_bench's `mixgraph` models it: Cao et al., "Characterizing, Modeling, and
/// Benchmarking RocksDB Key-Value Workloads at Facebook", FAST 2020, in the parameters of the command
/// that goes with the paper; ranges, sizes and scans also in RocksDB's pull request 5953.
///
/// - 50 million records with keys of 48 B: the number as eight bytes, and bytes behind it.
/// - 83 % get, 14 % put, 3 % seek.
/// - Values and scans: generalised Pareto, rounded up (hence the location of one half), and above
///   1,024 B and 10,000 records their remainder: both are db_bench's defaults.
/// - Popularity: 30 key ranges by two exponentials, and within each a power law.
pub(super) fn mixgraph() -> WorkloadSpec {
    let pareto = |by: u64, scale: f64, shape: f64| {
        let law = LengthSpec::Pareto { location: 0.5, scale, shape, min: None, max: None };
        LengthSpec::Modulo { by: Bytes(by), of: Box::new(law) }
    };
    WorkloadSpec {
        records: Count(50_000_000),
        key: KeySpec { form: KeyForm::Binary, size: Some(LengthSpec::fixed(48)) },
        value: ValueSpec { size: pareto(1024, 25.45, 0.2615), ..ValueSpec::default() },
        order: InsertOrder::Ordered,
        popularity: Popularity::KeyRanges(KeyRanges {
            count: 30,
            range: [14.18, -2.917, 0.0164, -0.08082],
            key: Some([0.002_312, 0.3467]),
        }),
        mix: Mix::default().with(Op::Read, 0.83).with(Op::Update, 0.14).with(Op::Scan, 0.03),
        scan: pareto(10_000, 14.236, 2.517),
        ..WorkloadSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::statistics::distance;
    use crate::{BLOCK, Workload};

    #[test]
    fn mixgraph_has_the_published_statistics() {
        let workload = Workload::new(&mixgraph()).unwrap();
        let mut stream = workload.stream();
        let (mut ranges, mut operations) = ([0u64; 30], [0u64; Op::ALL.len()]);
        let (mut values, mut scans) = (Vec::new(), Vec::new());
        let draws = 1_000_000;
        let mut key = Vec::new();
        for index in 0..draws {
            if index % BLOCK == 0 {
                stream.seek(index / BLOCK);
            }
            let operation = stream.next(u64::MAX).unwrap();
            operations[operation.op as usize] += 1;
            ranges[(operation.record * 30 / 50_000_000) as usize] += 1;
            match operation.op {
                Op::Update => {
                    workload.key(operation.record, &mut key);
                    values.push(workload.value_length(&key, operation.salt) as usize);
                }
                Op::Scan => scans.push(operation.scan as usize),
                _ => {}
            }
        }
        for (op, share) in [(Op::Read, 0.83), (Op::Update, 0.14), (Op::Scan, 0.03)] {
            let share: f64 = share;
            let expected = draws as f64 * share;
            let sigma = (expected * (1.0 - share)).sqrt();
            assert!((operations[op as usize] as f64 - expected).abs() < 5.0 * sigma, "{op}");
        }
        // The published shares of the ranges, in falling order as the hot ones are scattered.
        let mass = |x: u32| {
            let x = f64::from(x);
            14.18 * (-2.917 * x).exp() + 0.0164 * (-0.08082 * x).exp()
        };
        let sum: f64 = (1..=30).map(mass).sum();
        ranges.sort_unstable_by(|a, b| b.cmp(a));
        for (x, &observed) in (1..=30).zip(&ranges) {
            let expected = mass(x) / sum * draws as f64;
            // Neighbours that chance exchanges differ by less than that.
            assert!((observed as f64 - expected).abs() < 6.0 * expected.sqrt(), "{x}: {observed}");
        }
        // P(value <= k) of the law rounded up; 9 in 100,000 have a remainder.
        let pareto = |k: f64, scale: f64, shape: f64| {
            1.0 - (1.0 + shape * k.max(0.0) / scale).powf(-1.0 / shape)
        };
        let wrapped = |k: usize, by: usize, rounds: usize, scale: f64, shape: f64| -> f64 {
            let mass = |round: usize| {
                let begin = (round * by) as f64;
                pareto(begin + k as f64, scale, shape) - pareto(begin - 1.0, scale, shape)
            };
            (0..rounds).map(mass).sum()
        };
        let value_distance = distance(values, |k| wrapped(k, 1024, 20, 25.45, 0.2615));
        assert!(value_distance < 1.95, "{value_distance}");
        // After 1,000 rounds 0.3 % of the lengths are left out, spread evenly.
        let rounds = 1000;
        let left = 1.0 - pareto(rounds as f64 * 1e4 - 1.0, 14.236, 2.517);
        let scan_distance = distance(scans, |k| {
            wrapped(k, 10_000, rounds, 14.236, 2.517) + left * (k + 1) as f64 / 1e4
        });
        assert!(scan_distance < 1.95, "{scan_distance}");
    }

    #[test]
    fn the_most_popular_records_are_known() {
        let skew = Workload::new(&mixgraph()).unwrap().skew(1_000_000).unwrap();
        // 1 % of the records, 500,000, lie in the hottest range almost all; see `top_of_ranges`.
        assert!((0.3..0.9).contains(&skew.top_1_percent), "{skew:?}");
        assert!(skew.top_10_000 < skew.top_1_percent, "{skew:?}");
    }
}
