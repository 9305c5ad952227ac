//! Finds the caches in the curve of latency over size.
//!
//! The curve is first made monotonic, as a larger ring is never faster but for noise. Its flat
//! parts are the levels: parts that rise by less than `MAX_SLOPE` an octave, merged where their
//! latencies differ by less than `MIN_LEVEL_RATIO`. A level's capacity is the largest size whose
//! latency is within `CAPACITY_TOLERANCE`; the last level is the memory. With replacement that is
//! not LRU, a cache serves a part of a ring that is a little too large, so the curve bends at the
//! capacity: capacities are good to about the next size. A flat part shorter than half an octave
//! is not found.

use serde::Serialize;

use super::CurvePoint;

/// Largest rise of the logarithm of latency per octave of a flat part.
const MAX_SLOPE: f64 = 0.22;
/// Smallest ratio of the latencies of two levels.
const MIN_LEVEL_RATIO: f64 = 1.35;
/// How far, as a share, the latency at a level's capacity may exceed the level's.
const CAPACITY_TOLERANCE: f64 = 0.2;
/// Shortest flat part, in octaves.
const MIN_OCTAVES: f64 = 0.5;
/// Largest distance, in octaves, between a level's capacity and that of its cache.
const MATCH_OCTAVES: f64 = 1.0;

/// A level of the memory hierarchy as measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MemoryLevel {
    /// Nanoseconds of a load: the median over the flat part.
    pub ns: f64,
    /// The largest size that it serves; `None` for the last level, which is the memory or ends
    /// beyond the largest size.
    pub bytes: Option<u64>,
}

/// The levels of a curve, the fastest first. `points` are by size.
pub fn find(points: &[CurvePoint]) -> Vec<MemoryLevel> {
    let curve: Vec<(f64, f64)> =
        points.iter().map(|point| ((point.bytes as f64).log2(), point.load.min_ns.ln())).collect();
    let risen = isotonic(&curve.iter().map(|(_, y)| *y).collect::<Vec<_>>());
    let octaves: Vec<f64> = curve.iter().map(|(x, _)| *x).collect();
    let flats = merge_parts(flat_parts(&octaves, &risen), &risen);
    let long = flats.into_iter().filter(|flat| octaves[flat.1] - octaves[flat.0] >= MIN_OCTAVES);
    let flats: Vec<(usize, usize)> = long.collect();
    let level = |(i, flat): (usize, &(usize, usize))| {
        let log = median(&risen[flat.0..=flat.1]);
        let reach = (flat.0..points.len())
            .take_while(|at| risen[*at] <= log + CAPACITY_TOLERANCE.ln_1p())
            .last();
        let last = i + 1 == flats.len();
        let bytes = reach.filter(|_| !last).map(|at| points[at].bytes);
        MemoryLevel { ns: log.exp(), bytes }
    };
    flats.iter().enumerate().map(level).collect()
}

/// A cache as the kernel or hypervisor states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedCache {
    pub name: String,
    pub bytes: u64,
}

/// The stated cache of each level, if one lies within `MATCH_OCTAVES`; no cache matches twice.
pub fn match_caches<'s>(
    levels: &[MemoryLevel],
    stated: &'s [StatedCache],
) -> Vec<Option<&'s StatedCache>> {
    let octaves = |level: &MemoryLevel, cache: &StatedCache| {
        level.bytes.map(|bytes| (bytes as f64 / cache.bytes as f64).log2().abs())
    };
    let nearest = |level: &MemoryLevel| {
        let near = stated.iter().filter_map(|cache| Some((octaves(level, cache)?, cache)));
        near.filter(|(off, _)| *off <= MATCH_OCTAVES)
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, c)| c)
    };
    let owner = |cache: &StatedCache| {
        let near = levels.iter().filter(|level| nearest(level) == Some(cache));
        near.min_by(|a, b| {
            octaves(a, cache)
                .unwrap_or(MATCH_OCTAVES)
                .total_cmp(&octaves(b, cache).unwrap_or(MATCH_OCTAVES))
        })
    };
    levels.iter().map(|level| nearest(level).filter(|c| owner(c) == Some(level))).collect()
}

/// The nearest sequence that never falls (isotonic regression by pool adjacent violators).
fn isotonic(row: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in row {
        let mut pool = (*value, 1);
        while let Some((before, many)) = pools.last().copied().filter(|(mean, _)| *mean > pool.0) {
            let together = many + pool.1;
            let mean = (before * many as f64 + pool.0 * pool.1 as f64) / together as f64;
            pool = (mean, together);
            pools.pop();
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, many)| std::iter::repeat_n(mean, many)).collect()
}

/// First and last index of each run of points between which the curve is flat.
fn flat_parts(octaves: &[f64], row: &[f64]) -> Vec<(usize, usize)> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for i in 1..row.len() {
        let slope = (row[i] - row[i - 1]) / (octaves[i] - octaves[i - 1]).max(1e-9);
        if slope > MAX_SLOPE {
            continue;
        }
        match parts.last_mut() {
            Some(part) if part.1 == i - 1 => part.1 = i,
            _ => parts.push((i - 1, i)),
        }
    }
    parts
}

/// Merges adjacent parts of one level.
fn merge_parts(parts: Vec<(usize, usize)>, row: &[f64]) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for part in parts {
        match all.last_mut() {
            Some(last)
                if median(&row[part.0..=part.1]) - median(&row[last.0..=last.1])
                    < MIN_LEVEL_RATIO.ln() =>
            {
                last.1 = part.1;
            }
            _ => all.push(part),
        }
    }
    all
}

/// The median of a sorted row.
fn median(row: &[f64]) -> f64 {
    row[row.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::super::sizes;
    use super::*;
    use crate::batches::BatchSpread;

    /// A machine: capacity and latency of each cache, and the latency of the memory.
    struct ModelledMachine {
        caches: &'static [(u64, f64)],
        memory: f64,
    }

    const DESKTOP: ModelledMachine = ModelledMachine {
        caches: &[(48 << 10, 1.0), (1 << 20, 3.6), (32 << 20, 12.0)],
        memory: 110.0,
    };

    /// The share of a ring that a cache serves, by its replacement policy.
    type Serves = fn(capacity: u64, size: u64) -> f64;
    const STRICT: Serves = |capacity, size| f64::from(u8::from(size <= capacity));
    const RANDOM: Serves = |capacity, size| (capacity as f64 / size as f64).min(1.0);

    fn curve(machine: &ModelledMachine, serves: Serves, noise: f64) -> Vec<CurvePoint> {
        let mut draws = model::random::Draws::from(7);
        let mut ns = |size: u64| {
            let (mut left, mut mean) = (1.0, 0.0);
            for (capacity, ns) in machine.caches {
                // What an inner cache serves, an outer one would have served too.
                let served = serves(*capacity, size).max(1.0 - left) - (1.0 - left);
                mean += served * ns;
                left -= served;
            }
            (mean + left * machine.memory) * (1.0 + noise * (draws.unit() - 0.5))
        };
        let point = |bytes| {
            let load = BatchSpread::of(vec![ns(bytes)], 1).unwrap();
            CurvePoint { bytes, load }
        };
        sizes(4 << 10, 512 << 20).into_iter().map(point).collect()
    }

    fn assert_finds(machine: &ModelledMachine, points: &[CurvePoint], tolerance: f64) {
        let levels = find(points);
        assert_eq!(levels.len(), machine.caches.len() + 1, "{levels:?}");
        for (level, (bytes, ns)) in levels.iter().zip(machine.caches) {
            let off = (level.bytes.unwrap() as f64 / *bytes as f64).log2().abs();
            assert!(off <= tolerance, "{level:?} is no {bytes} B");
            assert!((level.ns / ns - 1.0).abs() < 0.15, "{level:?} is not {ns} ns");
        }
        let last = levels.last().unwrap();
        assert!(last.bytes.is_none() && (last.ns / machine.memory - 1.0).abs() < 0.2, "{last:?}");
    }

    #[test]
    fn finds_lru_caches_exactly() {
        assert_finds(&DESKTOP, &curve(&DESKTOP, STRICT, 0.0), 0.0);
        assert_finds(&DESKTOP, &curve(&DESKTOP, STRICT, 0.1), 0.33);
    }

    #[test]
    fn finds_caches_with_random_replacement() {
        assert_finds(&DESKTOP, &curve(&DESKTOP, RANDOM, 0.0), 0.5);
        assert_finds(&DESKTOP, &curve(&DESKTOP, RANDOM, 0.05), 0.5);
    }

    #[test]
    fn finds_the_levels_of_other_machines() {
        let two = ModelledMachine { caches: &[(32 << 10, 1.4), (512 << 10, 5.0)], memory: 90.0 };
        let server = ModelledMachine {
            caches: &[(32 << 10, 1.6), (5 << 18, 4.5), (24 << 20, 22.0)],
            memory: 95.0,
        };
        for serves in [STRICT, RANDOM] {
            assert_finds(&two, &curve(&two, serves, 0.04), 0.5);
            assert_finds(&server, &curve(&server, serves, 0.04), 0.5);
        }
    }

    #[test]
    fn a_flat_curve_has_no_cache() {
        let flat = ModelledMachine { caches: &[], memory: 80.0 };
        let levels = find(&curve(&flat, STRICT, 0.1));
        assert_eq!(levels.len(), 1, "{levels:?}");
        assert_eq!(levels[0].bytes, None);
        assert!(find(&[]).is_empty());
        assert!(find(&curve(&flat, STRICT, 0.0)[..1]).is_empty());
    }

    #[test]
    fn levels_match_stated_caches() {
        let level = |bytes: Option<u64>| MemoryLevel { ns: 1.0, bytes };
        let stated = |name: &str, bytes: u64| StatedCache { name: name.to_owned(), bytes };
        let levels = [40 << 10, 64 << 10, 1 << 20].map(|bytes| level(Some(bytes)));
        let levels = [levels.as_slice(), &[level(None)]].concat();
        let caches = [stated("l1d", 48 << 10), stated("l2", 1 << 20), stated("l3", 256 << 20)];
        let names: Vec<Option<&str>> =
            match_caches(&levels, &caches).iter().map(|c| c.map(|c| c.name.as_str())).collect();
        // Two levels are near the first cache; the nearer one is it. A hypervisor may state a last
        // cache of which little is to be had.
        assert_eq!(names, [Some("l1d"), None, Some("l2"), None]);
    }

    #[test]
    fn isotonic_rows_never_fall() {
        assert_eq!(isotonic(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(isotonic(&[3.0, 2.0, 1.0]), [2.0; 3]);
    }
}
