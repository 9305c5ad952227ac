//! Workloads of caches that were measured in production or published as a benchmark.

use model::{Bytes, Count, Op};

use crate::{KeyForm, KeySpec, LengthSource, LengthSpec, Mix, Popularity, ValueSpec, WorkloadSpec};

/// The longest value: memcached takes a little less than 1 MiB with key and header.
const LONGEST_VALUE: Option<Bytes> = Some(Bytes(1_000_000));

/// Values of 0 to 14 bytes of Facebook's ETC pool, each with its probability.
const ETC_SHORT: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
    0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
];

/// Facebook's ETC pool: Atikoglu et al., "Workload Analysis of a Large-Scale Key-Value Store",
/// SIGMETRICS 2012, in the parameters that mutilate uses.
///
/// - Keys: generalised extreme value, mean 36.2 B, up to memcached's 250 B. A key always has its
///   length. (P(length < 11), which distinct keys need, is 2 in 10^7.)
/// - Values: 44 % of up to 14 B from a table, the others generalised Pareto; mean 194 B, drawn for
///   every write.
/// - 30 GETs a SET, the ratio of the paper.
/// - Popularity: the paper shows that it is much skewed, but gives no law for it. mutilate draws
///   uniformly, which leaves no part of the data in the processor's caches; here it is Zipf's law
///   with YCSB's constant.
/// - 100,000 records: with memcached's own 50 to 60 B a record they fit its default of 64 MiB.
pub(super) fn etc() -> WorkloadSpec {
    let values = (0..).zip(ETC_SHORT).map(|(size, weight)| (Bytes(size), weight)).collect();
    let tail = LengthSpec::Pareto {
        location: 15.0,
        scale: 214.476,
        shape: 0.348_238,
        min: None,
        max: LONGEST_VALUE,
    };
    let key = LengthSpec::Gev {
        location: 30.7984,
        scale: 8.20449,
        shape: 0.078_688,
        min: None,
        max: Some(Bytes(250)),
    };
    WorkloadSpec {
        records: Count(100_000),
        key: KeySpec { form: KeyForm::Text, size: Some(key) },
        value: ValueSpec {
            size: LengthSpec::Discrete { values, tail: Some(Box::new(tail)) },
            ..ValueSpec::default()
        },
        popularity: Popularity::Zipfian { theta: crate::popularity::THETA },
        mix: Mix::default().with(Op::Read, 30.0).with(Op::Update, 1.0),
        ..WorkloadSpec::default()
    }
}

/// CloudSuite's data caching: a Twitter data set in memcached, scaled to the memory of the server
/// (`Spec::scaled`; its documentation takes 28 for 10 GB).
///
/// - 300,000 records: it says that the unscaled data takes about 360 MB, and its loader counts an
///   item as its value, 1,057 B on average, and 150 B.
/// - Popularity: its loader extends the data by Zipf's law with 0.915, which stands here for the
///   whole.
/// - Keys: 1 to 248 random letters and figures, uniformly, as its loader draws them; 4 % are
///   lengthened to the 11 that distinct keys need.
/// - Values: **an approximation**. The data set itself was not available. The mean and the smallest
///   item of 550 B are as published; the shape in between is assumed, with a moderate tail. A key
///   always has its length, as in the data set.
/// - 80 % GET, 20 % SET; Poisson arrivals; p99 below 1 ms.
pub(super) fn data_caching() -> WorkloadSpec {
    let value = LengthSpec::Pareto {
        location: 500.0,
        scale: 417.75,
        shape: 0.25,
        min: None,
        max: LONGEST_VALUE,
    };
    WorkloadSpec {
        records: Count(300_000),
        key: KeySpec {
            form: KeyForm::Text,
            size: Some(LengthSpec::Uniform { min: Bytes(1), max: Bytes(248) }),
        },
        value: ValueSpec { size: value, length_by: LengthSource::Key, ..ValueSpec::default() },
        popularity: Popularity::Zipfian { theta: 0.915 },
        mix: Mix::default().with(Op::Read, 0.8).with(Op::Update, 0.2),
        ..WorkloadSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::preset::statistics::distance;

    /// Lengths of all keys, and of the values of the load and of as many updates.
    fn lengths(workload: &Workload) -> (Vec<usize>, Vec<usize>) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for record in 0..workload.spec().records.0 {
            workload.key(record, &mut key);
            workload.value(&key, workload.load_salt(record), &mut value);
            keys.push(key.len());
            values.push(value.len());
        }
        (keys, values)
    }

    fn mean(lengths: &[usize]) -> f64 {
        lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
    }

    #[test]
    fn etc_has_the_published_distributions() {
        let workload = Workload::new(&etc()).unwrap();
        let (keys, values) = lengths(&workload);
        assert!(keys.iter().all(|length| (1..=250).contains(length)));
        // Mean of the GEV: location + scale (gamma(1 - shape) - 1) / shape = 36.22; standard
        // deviation 11.8, so that five standard errors are 0.19.
        assert!((mean(&keys) - 36.22).abs() < 0.19, "{}", mean(&keys));
        let gev = |k: usize| {
            let z = 1.0 + 0.078688 * (k as f64 + 0.5 - 30.7984) / 8.20449;
            (-z.powf(-1.0 / 0.078688)).exp()
        };
        let key_distance = distance(keys, gev);
        assert!(key_distance < 1.95, "{key_distance}");

        let listed: f64 = ETC_SHORT.iter().sum();
        assert!((listed - 0.44155).abs() < 1e-9);
        let cdf = |k: usize| match ETC_SHORT.get(..=k) {
            Some(short) => short.iter().sum(),
            None => {
                let x: f64 = k as f64 + 0.5 - 15.0;
                1.0 - (1.0 - listed) * (1.0 + 0.348238 * x / 214.476).powf(-1.0 / 0.348238)
            }
        };
        // Standard deviation of a value: 390; five standard errors 6.2.
        assert!((mean(&values) - 194.4).abs() < 6.2, "{}", mean(&values));
        let short = (0..15).map(|k| values.iter().filter(|length| **length == k).count() as f64);
        let chi: f64 = short
            .zip(ETC_SHORT)
            .map(|(observed, weight)| (observed - weight * 1e5).powi(2) / (weight * 1e5))
            .sum();
        // 15 degrees of freedom: exceeded once in 10^5.
        assert!(chi < 48.5, "{chi}");
        let value_distance = distance(values, cdf);
        assert!(value_distance < 1.95, "{value_distance}");
    }

    #[test]
    fn etc_matches_published_mix_and_fits_default_memory() {
        let spec = etc();
        let shares = spec.mix.shares().unwrap();
        assert!((shares[Op::Read] / shares[Op::Update] - 30.0).abs() < 1e-9);
        // With 60 B of its own for each record, and a quarter lost between its sizes of chunks.
        assert!((spec.data_bytes() + 60 * spec.records.0) * 5 / 4 < 64 << 20);
        let parts = spec.parts().unwrap();
        assert!((parts.keys.mean() - 36.22).abs() < 0.05, "{}", parts.keys.mean());
        assert!((parts.values.mean() - 194.4).abs() < 0.5, "{}", parts.values.mean());
    }

    #[test]
    fn data_caching_has_the_known_mean_and_scales() {
        let spec = data_caching();
        let workload = Workload::new(&spec).unwrap();
        let (keys, values) = lengths(&workload);
        // Standard deviation of a value: 788; five standard errors of 300,000 are 7.2.
        assert!((mean(&values) - 1057.0).abs() < 7.2, "{}", mean(&values));
        assert!(values.iter().all(|length| (500..=1_000_000).contains(length)));
        let pareto =
            |k: usize| 1.0 - (1.0 + 0.25 * (k as f64 + 0.5 - 500.0) / 417.75).max(0.0).powi(-4);
        let value_distance = distance(values, pareto);
        assert!(value_distance < 1.95, "{value_distance}");
        let key_distance = distance(keys, |k| if k < 11 { 0.0 } else { k as f64 / 248.0 });
        assert!(key_distance < 1.95, "{key_distance}");
        let scaled = spec.scaled(28.0).unwrap();
        assert_eq!(scaled.records, Count(8_400_000));
        let bytes = scaled.data_bytes() as f64;
        assert!((9.5e9..10.5e9).contains(&bytes), "{bytes}");
        // An update keeps the length of the key's value.
        let (mut key, mut value) = (Vec::new(), Vec::new());
        workload.key(5, &mut key);
        workload.value(&key, 1, &mut value);
        let length = value.len();
        workload.value(&key, 2, &mut value);
        assert_eq!(value.len(), length);
    }
}
