use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::value_pointer::Tag;

/// Keys that one thread writes while others read. Few under Miri (`cargo +nightly miri test -p
/// spill --lib memtable::tests::readers`, with `-Zmiri-many-seeds`): it models weak memory orders
/// and is thousands of times slower.
const WRITTEN_KEYS: u64 = if cfg!(miri) { 100 } else { 60_000 };
/// Reads between two looks at the number of keys.
const READS_PER_ROUND: usize = if cfg!(miri) { 4 } else { 200 };

fn pointer(number: u64) -> ValuePointer {
    ValuePointer::new((number >> 20) as u32, (number as u32 & 0xf_ffff) * 8, false, Tag::of(number))
}

fn insert(memtable: &Memtable, key: &[u8], sequence: u64) {
    // SAFETY: the tests write from one thread.
    unsafe { memtable.insert(key, sequence, pointer(sequence), 64) };
}

fn keys_of(memtable: &Arc<Memtable>) -> Vec<Vec<u8>> {
    let mut cursor = Cursor::new(Arc::clone(memtable));
    cursor.seek(b"");
    let mut keys = Vec::new();
    while let Some((key, _)) = cursor.current() {
        keys.push(key.to_vec());
        cursor.next();
    }
    keys
}

fn keys_back(memtable: &Arc<Memtable>, from: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut cursor = Cursor::new(Arc::clone(memtable));
    cursor.seek_below(from);
    let mut keys = Vec::new();
    while let Some((key, _)) = cursor.current() {
        keys.push(key.to_vec());
        cursor.previous();
    }
    keys
}

/// The sequences of keys, by interleaved look-ups.
fn sequences(memtable: &Memtable, keys: &[Vec<u8>]) -> Vec<Option<u64>> {
    let mut searches: Vec<Search<'_>> =
        keys.iter().map(|key| Search::new(Some(memtable), key)).collect();
    run_interleaved(&mut searches);
    searches.iter().map(|search| search.found().map(|version| version.sequence)).collect()
}

proptest! {
    #[test]
    fn memtable_behaves_like_an_ordered_map(
        keys in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..4),
                "(user|userlongprefix)[0-9]{1,6}".prop_map(String::into_bytes),
                prop::collection::vec(prop_oneof![Just(0_u8), Just(1)], 0..20),
            ],
            0..1500,
        ),
        probe in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let memtable = Arc::new(Memtable::new(&Arc::new(BlockPool::new(0))));
        let mut model = BTreeMap::new();
        for (sequence, key) in (1..).zip(&keys) {
            insert(&memtable, key, sequence);
            model.insert(key.clone(), sequence);
        }
        prop_assert_eq!(memtable.keys(), model.len());
        for (key, sequence) in &model {
            prop_assert_eq!(memtable.get(key).unwrap().sequence, *sequence);
        }
        prop_assert_eq!(memtable.get(&probe).is_some(), model.contains_key(&probe));
        let probes: Vec<Vec<u8>> = model.keys().cloned().chain([probe.clone()]).collect();
        let expected: Vec<Option<u64>> = probes.iter().map(|key| model.get(key).copied()).collect();
        prop_assert_eq!(sequences(&memtable, &probes), expected);
        let all: Vec<Vec<u8>> = model.keys().cloned().collect();
        prop_assert_eq!(keys_of(&memtable), all.clone());
        let back: Vec<Vec<u8>> = all.iter().rev().cloned().collect();
        prop_assert_eq!(keys_back(&memtable, None), back);
        let below: Vec<Vec<u8>> = model.range(..probe.clone()).rev().map(|(key, _)| key.clone()).collect();
        prop_assert_eq!(keys_back(&memtable, Some(&probe)), below);
        let mut cursor = Cursor::new(Arc::clone(&memtable));
        cursor.seek(&probe);
        let first = model.range(probe..).next().map(|(key, _)| key.as_slice());
        prop_assert_eq!(cursor.current().map(|(key, _)| key), first);
    }
}

#[test]
fn versions_are_kept_newest_first() {
    let memtable = Memtable::new(&Arc::new(BlockPool::new(0)));
    for sequence in 1..=5 {
        insert(&memtable, b"key", sequence);
    }
    let mut version = memtable.get(b"key");
    let mut seen = Vec::new();
    while let Some(one) = version {
        assert_eq!(one.pointer, pointer(one.sequence));
        seen.push(one.sequence);
        version = one.older();
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
}

#[test]
fn readers_see_earlier_inserts_while_it_grows() {
    let memtable = Arc::new(Memtable::new(&Arc::new(BlockPool::new(0))));
    let written = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    // Hashed, so that every leaf changes; with a long common prefix, so that prefixes change.
    let key = |number: u64| {
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("a long common prefix {hash:020}").into_bytes()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..WRITTEN_KEYS {
                insert(&memtable, &key(number), number + 1);
                written.store(number + 1, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            let mut random = 1_u64;
            while !done.load(Ordering::Acquire) {
                let there = written.load(Ordering::Acquire);
                let mut some = || {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 33).checked_rem(there)
                };
                for number in std::iter::repeat_with(&mut some).take(READS_PER_ROUND).flatten() {
                    assert_eq!(memtable.get(&key(number)).unwrap().sequence, number + 1);
                }
                let numbers: Vec<u64> = std::iter::repeat_with(some).take(16).flatten().collect();
                let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| key(number)).collect();
                let found = sequences(&memtable, &keys);
                assert!(found.into_iter().eq(numbers.iter().map(|number| Some(number + 1))));
            }
        });
        while !done.load(Ordering::Acquire) {
            let there = written.load(Ordering::Acquire);
            let keys = keys_of(&memtable);
            assert!(keys.len() as u64 >= there);
            assert!(keys.windows(2).all(|two| two[0] < two[1]));
            let back = keys_back(&memtable, None);
            assert!(back.len() >= keys.len());
            assert!(back.windows(2).all(|two| two[0] > two[1]));
        }
    });
}
