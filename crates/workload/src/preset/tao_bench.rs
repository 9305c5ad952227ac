//! The cache of TaoBench in Meta's DCPerf, `packages/tao_bench` of facebookresearch/DCPerf, commit
//! 7840c5ce of June 2025.

use std::time::Duration;

use model::{Bytes, Count, Op, Span};

use crate::{
    FetchLatency, KeyForm, KeySpec, LengthSource, LengthSpec, Mix, Popularity, TtlSpec, ValueSpec,
    WorkloadSpec,
};

/// Memory of the server that the records are for: memcached's default.
const MEMORY: f64 = (64 << 20) as f64;
/// `n_bytes_per_item`, `target_hit_ratio` and `tunning_factor` of its `run.py`.
const BYTES_PER_ITEM: f64 = 434.0;
const TARGET_HIT_RATIO: f64 = 0.9;
const TUNING: f64 = 0.807;

/// Of `leader_sizes.json`, the sizes from 31 B on that LZ4 does not shorten, as they are stored:
/// first and last size, and the weight of all between them.
const STORED_EVENLY: [(u64, u64, u64); 7] = [
    (33, 64, 5_027_425),
    (65, 96, 5_946_604),
    (97, 128, 3_970_846),
    (129, 160, 4_614_831),
    (161, 192, 3_737_292),
    (193, 224, 5_407_117),
    (225, 256, 4_619_793),
];

/// The larger ones. TaoBench fills a value with the bytes 0 to 254 in turn, which LZ4 shortens to
/// little more than one turn. Computed with liblz4 (`LZ4_compress_fast`, acceleration 1) for every
/// size of the table; above 283 B neighbouring rows are one.
const STORED: [(u64, u64); 38] = [
    (257, 181_768),
    (258, 181_768),
    (259, 181_768),
    (260, 181_768),
    (261, 181_768),
    (262, 181_768),
    (263, 181_768),
    (264, 181_768),
    (265, 1_635_913),
    (266, 18_705_824),
    (267, 2_473_199),
    (268, 2_173_935),
    (269, 988_155),
    (270, 500_471),
    (271, 407_644),
    (272, 130_205),
    (273, 240_362),
    (274, 96_095),
    (275, 88_258),
    (276, 54_237),
    (277, 73_811),
    (278, 24_911),
    (279, 12_535),
    (280, 6_200),
    (281, 77_644),
    (282, 78_592),
    (283, 6_220),
    (291, 39_761),
    (310, 9_216),
    (330, 5_653),
    (351, 4_272),
    (373, 5_136),
    (397, 10_693),
    (421, 21_899),
    (440, 2_511),
    (472, 1_241),
    (500, 1_085),
    (521, 1_143),
];

/// Reads of uniformly popular keys; a miss is fetched and written.
///
/// - Keys: 219 letters and the number of the record, which has 9 digits at 64 GB a server.
/// - The database is modelled by a law of kvmeter's own: TaoBench sleeps for
///   `tao_slow_path_sleep_us`, 0 as it is run.
pub(super) fn tao_bench() -> WorkloadSpec {
    let evenly = STORED_EVENLY.iter().flat_map(|&(first, last, weight)| {
        (first..=last).map(move |size| (size, weight as f64 / (last + 1 - first) as f64))
    });
    let rows = evenly.chain(STORED.iter().map(|&(size, weight)| (size, weight as f64)));
    let rows: Vec<(u64, f64)> = rows.collect();
    let all: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let values = rows.into_iter().map(|(size, weight)| (Bytes(size), weight / all)).collect();
    let ms = |ms| Span(Duration::from_millis(ms));
    WorkloadSpec {
        records: Count((MEMORY / BYTES_PER_ITEM / TARGET_HIT_RATIO * TUNING) as u64),
        key: KeySpec { form: KeyForm::Text, size: Some(LengthSpec::fixed(228)) },
        value: ValueSpec {
            size: LengthSpec::Discrete { values, tail: None },
            length_by: LengthSource::Write,
            ..ValueSpec::default()
        },
        popularity: Popularity::Uniform,
        mix: Mix::only(Op::Read),
        refill: true,
        miss_latency: Some(FetchLatency::Lognormal { median: ms(5), p99: ms(100) }),
        ttl: Some(TtlSpec { seconds: vec![(36_000, 1.0)] }),
        ..WorkloadSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::statistics::distance;
    use crate::{BLOCK, Workload};

    #[test]
    fn tao_bench_has_the_published_statistics() {
        let spec = tao_bench();
        // 64 MiB of items of 434 B are 154,628, which are to be 90 % of the keys, less the tuning.
        assert_eq!((spec.records.0, spec.is_load()), (138_650, false));
        let workload = Workload::new(&spec).unwrap();
        let mut stream = workload.stream();
        let draws = 400_000;
        let (mut keys, mut lengths, mut key) = (vec![0u64; 100], Vec::new(), Vec::new());
        for index in 0..draws {
            if index % BLOCK == 0 {
                stream.seek(index / BLOCK);
            }
            let operation = stream.next(u64::MAX).unwrap();
            assert_eq!(operation.op, Op::Read);
            workload.key(operation.record, &mut key);
            assert_eq!(key.len(), 228);
            keys[(operation.record * 100 / spec.records.0) as usize] += 1;
            lengths.push(workload.value_length(&key, operation.salt) as usize);
        }
        // Each hundredth of the keys has as many requests: chi-squared with 99 degrees of freedom
        // is above 149 once in a thousand times.
        let due = draws as f64 / 100.0;
        let chi: f64 = keys.iter().map(|n| (*n as f64 - due).powi(2) / due).sum();
        assert!(chi < 149.0, "{chi}");
        // Of the whole table, compressed: P(stored size <= bytes).
        let published = [
            (64, 0.080_240),
            (128, 0.238_527),
            (256, 0.531_865),
            (266, 0.879_737),
            (270, 0.977_666),
            (283, 0.998_362),
            (300, 0.998_985),
        ];
        for (bytes, share) in published {
            let below = lengths.iter().filter(|length| **length <= bytes).count();
            let limit = 5.0 * (share * (1.0 - share) / draws as f64).sqrt() + 4e-5;
            let observed = below as f64 / draws as f64;
            assert!((observed - share).abs() < limit, "{bytes}: {observed}, not {share}");
        }
        let mean = workload.spec().parts().unwrap().values.mean();
        assert!((mean / 200.424_337 - 1.0).abs() < 1e-4, "{mean}");
        let below_64 = lengths.into_iter().filter(|length| *length <= 64).collect();
        let even = distance(below_64, |k| (k as f64 - 32.0) / 32.0);
        assert!(even < 1.95, "{even}");
        assert!(workload.expiry(7) == model::Expiry::After(36_000));
    }
}
