//! The simulator against closed forms.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use cachesim::cache::{Cache, Geometry, Replacement};
use cachesim::memory::{CacheShape, Caches, ConsumedPolicy, Hits, Level};
use proptest::prelude::*;

const KINDS: [Replacement; 4] =
    [Replacement::Lru, Replacement::TreePlru, Replacement::Random, Replacement::Rrip];

fn shape(sets: u32, ways: u32, cores: usize) -> CacheShape {
    CacheShape {
        shared: Geometry { slices: 1, sets, ways },
        shared_replacement: Replacement::Random,
        private: Geometry { slices: 1, sets: 16, ways: 4 },
        private_replacement: Replacement::Lru,
        directory_ways: 16,
        cores,
        inclusive: false,
        consumed: ConsumedPolicy::Migrate { ways: 1 },
    }
}

/// Looks a line up and lets it in if it is not there; says whether it was.
fn reference(cache: &mut Cache, line: u32, ways: u32) -> bool {
    let set = cache.set_of(line);
    match cache.find(set, line) {
        Some(way) => {
            cache.touch(set, way);
            true
        }
        None => {
            cache.insert(set, line, ways, false);
            false
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// A ring that fits the card's ways never misses once it has been round.
    #[test]
    fn a_ring_that_fits_its_ways_never_misses(
        ways in 1_u32..=8,
        sets in prop::sample::select(vec![64_u32, 256, 1024]),
        kind in prop::sample::select(KINDS.to_vec()),
        share in 0.1_f64..=1.0,
        rounds in 2_u32..5,
    ) {
        let shape = CacheShape { shared_replacement: kind, ..shape(sets, 11, 1) };
        let mut caches = Caches::new(shape, 7);
        let mask = 0x7ff & !(0x7ff >> ways);
        // One slice and lines in a row: each set gets as many as any other.
        let lines = ((f64::from(sets * ways) * share) as u32).max(1);
        prop_assert_eq!(caches.device_write(0, lines, false, Some(mask)).misses, u64::from(lines));
        for _ in 1..rounds {
            let hits = caches.device_write(0, lines, false, Some(mask));
            prop_assert_eq!(hits, Hits { hits: u64::from(lines), misses: 0 });
            prop_assert_eq!(caches.device_read(0, lines).misses, 0);
        }
        prop_assert_eq!(caches.memory.reads() + caches.memory.writes(), 0);
    }

    /// A larger LRU cache holds whatever a smaller one with the same sets holds.
    #[test]
    fn lru_is_a_stack(
        accesses in prop::collection::vec(0_u32..200, 1..2000),
        small in 1_u32..8,
        more in 1_u32..8,
    ) {
        let cache = |ways| Cache::new(Geometry { slices: 1, sets: 4, ways }, Replacement::Lru, 0);
        let (mut little, mut large) = (cache(small), cache(small + more));
        for line in accesses {
            let hit = reference(&mut little, line, u32::MAX);
            let in_large = reference(&mut large, line, u32::MAX);
            prop_assert!(!hit || in_large);
        }
        for (line, _, _) in little.lines() {
            prop_assert!(large.find(large.set_of(line), line).is_some());
        }
    }

    /// LRU as the textbook has it: a list a set, the last used in front.
    #[test]
    fn lru_agrees_with_a_list(
        accesses in prop::collection::vec(0_u32..100, 1..1000),
        ways in 1_u32..=11,
    ) {
        let mut cache = Cache::new(Geometry { slices: 1, sets: 2, ways }, Replacement::Lru, 0);
        let mut lists: [Vec<u32>; 2] = Default::default();
        for line in accesses {
            let list = &mut lists[(line % 2) as usize];
            let place = list.iter().position(|known| *known == line);
            prop_assert_eq!(reference(&mut cache, line, u32::MAX), place.is_some());
            if let Some(place) = place {
                list.remove(place);
            }
            list.insert(0, line);
            list.truncate(ways as usize);
        }
    }

    /// Nothing is counted twice or lost: every line asked for is a hit or a miss, no line stands
    /// in two ways, none is anywhere it was not put, and no change is lost: each line that
    /// was written is dirty in a cache or was written back.
    #[test]
    fn lines_are_conserved(
        steps in prop::collection::vec((0_u8..5, 0_u32..600, 1_u32..20, 0_usize..3), 1..400),
        inclusive in any::<bool>(),
        consumed in 0_u8..3,
        card in prop::sample::select(vec![0_u32, 0x3, 0x1, 0xf]),
    ) {
        let consumed = match consumed {
            0 => ConsumedPolicy::Keep,
            1 => ConsumedPolicy::Move,
            _ => ConsumedPolicy::Migrate { ways: 0b1000 },
        };
        let shape = CacheShape { inclusive, consumed, ..shape(32, 4, 3) };
        let mut caches = Caches::new(shape, 3);
        let (mut asked, mut counted) = (0, 0);
        for (what, first, lines, core) in steps {
            asked += u64::from(lines);
            let before = caches.memory;
            match what {
                0 | 1 => {
                    let ways = (card != 0).then_some(card);
                    let hits = caches.device_write(first, lines, what == 1, ways);
                    counted += hits.total();
                    if card == 0 {
                        let written = caches.memory.device_writes - before.device_writes;
                        prop_assert_eq!(written, u64::from(lines));
                    }
                }
                2 => counted += caches.device_read(first, lines).total(),
                _ => {
                    for line in first..first + lines {
                        let reads = caches.memory.core_reads;
                        let level = caches.core_access(core, line, what == 3, 0xf);
                        let came = caches.memory.core_reads - reads;
                        prop_assert_eq!(came, u64::from(level == Level::Memory));
                        let private = caches.private(core);
                        let way = private.find(private.set_of(line), line);
                        prop_assert!(way.is_some(), "what a core read is in its cache");
                        counted += 1;
                    }
                }
            }
            let mut ways_by_line = BTreeMap::new();
            for (line, way, _) in caches.shared().lines() {
                prop_assert!(ways_by_line.insert(line, way).is_none(), "line {} stands twice", line);
                prop_assert_eq!(caches.shared().find(caches.shared().set_of(line), line), Some(way));
            }
            for core in 0..3 {
                for (line, _, dirty) in caches.private(core).lines() {
                    prop_assert!(!inclusive || ways_by_line.contains_key(&line), "inclusion of {}", line);
                    let others = (0..3).filter(|other| *other != core).filter(|other| {
                        let cache = caches.private(*other);
                        cache.find(cache.set_of(line), line).is_some()
                    });
                    prop_assert!(!dirty || others.count() == 0, "a changed line has one holder");
                }
            }
        }
        prop_assert_eq!(asked, counted);
    }

    /// Written lines reach memory exactly as often as they leave the caches changed.
    #[test]
    fn every_write_is_in_a_cache_or_in_memory(
        writes in prop::collection::vec(0_u32..2000, 1..1500),
        inclusive in any::<bool>(),
    ) {
        let mut caches = Caches::new(CacheShape { inclusive, ..shape(32, 4, 1) }, 5);
        // As each line is written once, each is changed in exactly one place or written back.
        let mut once: Vec<u32> = writes;
        once.sort_unstable();
        once.dedup();
        for line in &once {
            caches.core_access(0, *line, true, 0xf);
        }
        let mut dirty: Vec<u32> = caches.shared().lines().chain(caches.private(0).lines())
            .filter(|(_, _, dirty)| *dirty).map(|(line, _, _)| line).collect();
        dirty.sort_unstable();
        dirty.dedup();
        prop_assert_eq!(dirty.len() as u64 + caches.memory.writes(), once.len() as u64);
    }
}

/// Random replacement under random use: with `n` lines in a set of `w` ways, each as likely as
/// any other, the line asked for is there with probability w / n.
#[test]
fn random_replacement_hits_as_often_as_it_must() {
    for (ways, lines) in [(2_u32, 3_u64), (4, 16), (11, 12), (8, 80)] {
        let geometry = Geometry { slices: 1, sets: 1, ways };
        let mut cache = Cache::new(geometry, Replacement::Random, 11);
        let mut draws = model::random::Draws::from(5);
        let mut hits = 0;
        let rounds = 200_000;
        for i in 0..rounds + 2000 {
            let line = model::random::below(draws.next(), lines) as u32;
            let hit = reference(&mut cache, line, u32::MAX);
            hits += u64::from(hit && i >= 2000);
        }
        let share = hits as f64 / f64::from(rounds);
        let expected = f64::from(ways) / lines as f64;
        assert!((share - expected).abs() < 0.006, "{ways} of {lines}: {share} not {expected}");
    }
}

/// A cycle of one line more than the ways: LRU never hits; random replacement evicts a given line
/// at each miss with chance 1/w, so that the hit rate h solves h = (1 - 1/w)^(m n), where m is the
/// miss rate and m n the misses in a round of n accesses (mean field, exact for large w).
#[test]
fn a_cycle_that_does_not_fit_behaves_as_theory_says() {
    let run = |kind, ways: u32| {
        let geometry = Geometry { slices: 1, sets: 1, ways };
        let mut cache = Cache::new(geometry, kind, 3);
        let n = ways + 1;
        let hits = (0..400 * n).filter(|i| reference(&mut cache, i % n, u32::MAX) && *i >= 100 * n);
        hits.count() as f64 / f64::from(300 * n)
    };
    assert_eq!(run(Replacement::Lru, 16), 0.0);
    // One of 33 lines is always out; what goes next is any of 32: the next miss comes after a
    // uniform number of accesses, on average half a round, so 2 misses a round.
    let hits = run(Replacement::Random, 32);
    assert!((hits - (1.0 - 2.0 / 33.0)).abs() < 0.01, "{hits}");
}

/// With direct cache access off, the card's writes throw out what caches hold and go to memory.
#[test]
fn plain_access_to_memory_invalidates() {
    let mut caches = Caches::new(shape(64, 8, 2), 1);
    assert_eq!(caches.core_access(1, 5, true, 0xff), Level::Memory);
    assert_eq!(caches.device_write(5, 1, false, None).hits, 0);
    assert_eq!(caches.core_access(1, 5, false, 0xff), Level::Memory);
    assert_eq!(caches.memory.device_writes, 1);
}

/// What the card wrote and a core read stays in the inclusive ways; the next packet updates it
/// there and takes it from the core.
#[test]
fn a_consumed_line_migrates_and_is_updated_where_it_is() {
    let mut caches = Caches::new(shape(64, 8, 1), 1);
    caches.device_write(9, 1, false, Some(0xc0));
    let way = |caches: &Caches| caches.shared().find(9, 9).unwrap();
    assert!(way(&caches) >= 6);
    assert_eq!(caches.core_access(0, 9, false, 0xff), Level::Shared);
    assert_eq!(way(&caches), 0, "the inclusive way of this shape");
    assert_eq!(caches.device_write(9, 1, false, Some(0xc0)).hits, 1);
    assert_eq!(way(&caches), 0);
    assert_eq!(caches.core_access(0, 9, false, 0xff), Level::Shared, "the core lost its copy");
}

/// A line that only a prefetcher took, and one that a core wrote and gave up, are hits of the next
/// packet, which brings them to the card's ways.
#[test]
fn unread_lines_return_to_the_card_s_ways() {
    let mut caches = Caches::new(shape(64, 8, 1), 1);
    let way = |caches: &Caches, line| caches.shared().find(line as usize, line).unwrap();
    let card = Some(0xc0);
    caches.device_write(9, 1, false, card);
    caches.prefetch(0, 9, 0xff);
    assert_eq!(way(&caches, 9), 0, "the inclusive way of this shape");
    assert_eq!(caches.core_access(0, 9, false, 0xff), Level::Private);
    assert_eq!(caches.device_write(9, 1, false, card).hits, 1);
    assert!(way(&caches, 9) >= 6);
    assert_eq!(caches.core_access(0, 9, false, 0xff), Level::Shared, "the core lost its copy");

    // Five lines of one private set, which has four ways.
    for line in [1, 17, 33, 49, 65] {
        caches.core_access(0, line, true, 0x3c);
    }
    assert!((2..6).contains(&way(&caches, 1)));
    assert_eq!(caches.device_write(1, 1, false, card).hits, 1);
    assert!(way(&caches, 1) >= 6);
}

/// What is pushed out unread costs a write and a read of memory, as a line does that the card writes
/// past the cache: being pushed out alone makes direct cache access no worse than none.
#[test]
fn a_line_that_is_pushed_out_unread_costs_what_it_costs_without_direct_cache_access() {
    const LINES: u32 = 100_000;
    for inclusive in [false, true] {
        let shape = CacheShape { inclusive, consumed: ConsumedPolicy::Keep, ..shape(64, 8, 1) };
        let traffic = |ways: Option<u32>| {
            let mut caches = Caches::new(shape, 1);
            caches.device_write(0, LINES, false, ways);
            (0..LINES).for_each(|line| _ = caches.core_access(0, line, false, 0xff));
            f64::from(caches.memory.reads() as u32 + caches.memory.writes() as u32)
        };
        let (on, off) = (traffic(Some(0xc0)), traffic(None));
        assert_eq!(off, 2.0 * f64::from(LINES));
        // The last lines are still in the card's two ways of 64 sets.
        assert!(on <= off && on >= off - 2.0 * 128.0, "{on} {off}");
    }
}

/// The ways of the card bound what it allocates, not what it updates: a buffer that a core has just
/// read is written where that read put it.
#[test]
fn in_an_inclusive_cache_the_card_updates_lines_in_every_way() {
    let shape = CacheShape { inclusive: true, consumed: ConsumedPolicy::Keep, ..shape(64, 8, 1) };
    let mut caches = Caches::new(shape, 1);
    let lines = 64 * 8;
    for line in 0..lines {
        assert_eq!(caches.core_access(0, line, false, 0xff), Level::Memory);
    }
    let hits = caches.device_write(0, lines, false, Some(0xc0));
    assert_eq!(hits, Hits { hits: u64::from(lines), misses: 0 });
    let changed = caches.shared().lines().filter(|(_, _, dirty)| *dirty);
    assert_eq!(changed.count(), lines as usize, "all of the cache, though the card has two ways");
}
