//! Zipf's law and what is none, drift, sizes.

use model::random::mix;
use workload::Popularity;

use super::{described, described_by, generated};

#[test]
fn the_exponent_of_generated_requests_is_recovered() {
    for (theta, records) in [(0.6, 20_000), (0.8, 20_000), (0.99, 50_000), (1.2, 50_000)] {
        let keys = generated(Popularity::Zipfian { theta }, records, 1_500_000, 7);
        let zipf = described(keys).popularity.zipf.unwrap();
        assert!(zipf.is_zipf, "{theta}: {zipf:?}");
        assert!((zipf.theta_low..=zipf.theta_high).contains(&theta), "{theta}: {zipf:?}");
        assert!(zipf.theta_high - zipf.theta_low < 0.3 * theta, "{theta}: {zipf:?}");
    }
}

#[test]
fn a_sample_of_the_keys_recovers_it_too() {
    let keys = generated(Popularity::Zipfian { theta: 0.9 }, 200_000, 3_000_000, 3);
    let description = described_by(20_000, keys, |_| 100);
    let zipf = description.popularity.zipf.unwrap();
    assert!(zipf.is_zipf && zipf.theta_low <= 0.9 && 0.9 <= zipf.theta_high, "{zipf:?}");
    assert!(!description.keys.exact && !description.popularity.ranks_exact);
}

#[test]
fn what_is_not_zipf_is_not_called_so() {
    let others = [
        Popularity::Uniform,
        Popularity::Hotspot { keys: 0.2, operations: 0.8 },
        Popularity::Exponential { percentile: 95.0, fraction: 0.857 },
    ];
    for popularity in others {
        for (records, requests) in [(100_000, 200_000), (10_000, 1_000_000)] {
            let keys = generated(popularity.clone(), records, requests, 5);
            if let Some(zipf) = described(keys).popularity.zipf {
                assert!(!zipf.is_zipf, "{popularity:?} of {records}: {zipf:?}");
            }
        }
    }
}

#[test]
fn drift_is_noticed_only_where_the_popular_set_moves() {
    let zipfian = generated(Popularity::Zipfian { theta: 0.9 }, 50_000, 600_000, 9);
    let still = described(zipfian.iter().copied()).drift.unwrap();
    assert!(!still.moves && still.successive > 0.6, "{still:?}");
    let uniform = generated(Popularity::Uniform, 50_000, 600_000, 9);
    let uniform = described(uniform).drift.unwrap();
    assert!(!uniform.moves, "{uniform:?}");
    // The keys are others after each sixth of the trace.
    let jumping = zipfian.iter().enumerate().map(|(at, key)| key + at as u64 / 100_000 * 50_000);
    let jumping = described(jumping).drift.unwrap();
    assert!(jumping.moves && jumping.first_and_last < 0.05, "{jumping:?}");
    // One key after the other comes and goes.
    let sliding = zipfian.iter().enumerate().map(|(at, key)| key + at as u64 / 2000);
    let sliding = described(sliding).drift.unwrap();
    assert!(sliding.moves, "{sliding:?}");
}

#[test]
fn slow_drift_is_noticed_and_has_a_half_life() {
    let zipfian = generated(Popularity::Zipfian { theta: 0.9 }, 50_000, 600_000, 9);
    // Of a quarter of the keys each becomes another one at some time.
    let slow = zipfian.iter().enumerate().map(|(at, key)| {
        let fate = mix(*key ^ 0xd51f);
        let moved = fate.is_multiple_of(4) && at as u64 > (fate >> 32) % 600_000;
        if moved { key + 50_000 } else { *key }
    });
    let slow = described(slow).drift.unwrap();
    assert!(slow.moves && slow.is_slow, "{slow:?}");
    assert!(slow.successive > slow.within - 0.05 && slow.far < slow.within - 0.05, "{slow:?}");
    let far = slow.by_distance.last().unwrap();
    assert!(far.in_common < slow.by_distance[0].in_common, "{slow:?}");
    // Each key is another one 400,000 requests later, each at its own time: half after 200,000.
    let turning = zipfian.iter().enumerate().map(|(at, key)| {
        let age = at as u64 + mix(*key ^ 0xa9e) % 400_000;
        key + age / 400_000 * 50_000
    });
    let turning = described(turning).drift.unwrap();
    assert!(turning.moves && !turning.is_slow, "{turning:?}");
    let half_life = turning.half_life_requests.unwrap();
    assert!((120e3..280e3).contains(&half_life), "{half_life}: {turning:?}");
    for seed in 1..6 {
        let still = generated(Popularity::Zipfian { theta: 0.9 }, 50_000, 600_000, seed);
        let still = described(still).drift.unwrap();
        assert!(!still.moves && still.half_life_requests.is_none(), "{seed}: {still:?}");
    }
}

#[test]
fn size_and_popularity_are_correlated_where_they_are() {
    let keys = generated(Popularity::Zipfian { theta: 0.9 }, 5_000, 300_000, 1);
    let of = |size: fn(u64) -> u32| {
        let description = described_by(1 << 17, keys.iter().copied(), size);
        description.popularity.size_correlation.map(|figure| figure.value)
    };
    assert!(of(|key| 10_000 - key as u32).unwrap() > 0.8);
    assert!(of(|key| 10 + key as u32).unwrap() < -0.8);
    let mixed = |key: u64| (model::random::mix(key) % 1000) as u32 + 1;
    assert!(of(mixed).unwrap().abs() < 0.06);
    assert_eq!(of(|_| 100), None);
}

#[test]
fn one_hit_wonders_and_shares_are_counted() {
    // 900 keys once; 100 keys eleven times.
    let keys = (0..900).chain((0..1100).map(|request| 1000 + request % 100));
    let description = described(keys);
    let popularity = description.popularity;
    assert_eq!((popularity.one_hit_wonders.value, popularity.one_hit_wonders.exact), (0.9, true));
    assert_eq!(popularity.top_10_percent.value, 1100.0 / 2000.0);
    assert_eq!((popularity.ranks[0].rank, popularity.ranks[0].requests), (1.0, 11));
    assert_eq!((description.keys.value, description.keys.exact), (1000.0, true));
}
