//! Bloom filters of upper levels: created on request, kept over reopening, verified, and without
//! false negatives.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use spill::{Error, Options, Store, Table};

const PAGE: usize = 4096;
const FILTER_PAGE_KIND: u8 = 3;

fn tiny(bloom_bits: u32) -> Options {
    Options {
        memory: 32 << 10,
        segment: 64 << 10,
        growth: 2,
        background: false,
        bloom_bits,
        ..Options::default()
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key{:05}", number * 7919 % 20_000).into_bytes()
}

/// Puts and deletes keys until there are several levels.
fn fill(table: &Table, numbers: std::ops::Range<u32>, round: u32) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut known = BTreeMap::new();
    for number in numbers {
        let value = format!("{number} {round}").into_bytes();
        table.put(&key(number), &value).unwrap();
        known.insert(key(number), value);
        if number % 5 == 4 {
            table.delete(&key(number - 3)).unwrap();
            known.remove(&key(number - 3));
        }
    }
    known
}

fn check_content(table: &Table, known: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let keys: Vec<Vec<u8>> = (0..20_000).map(key).collect();
    let many = table.multi_get(&keys).unwrap();
    for (key, found) in keys.iter().zip(many) {
        assert_eq!(table.get(key).unwrap().as_ref(), known.get(key));
        assert_eq!(found.as_ref(), known.get(key));
    }
}

#[test]
fn filters_survive_reopening_and_contain_every_key() {
    let home = tempfile::tempdir().unwrap();
    let mut known;
    {
        let store = Store::open(home.path(), tiny(10)).unwrap();
        let table = store.table("t").unwrap();
        known = fill(&table, 0..8_000, 0);
        let statistics = store.statistics();
        assert!(statistics.levels > 1 && statistics.filter_bytes > 0, "{statistics:?}");
        check_content(&table, &known);
        store.scrub().unwrap();
    }
    for round in 1..6 {
        let store = Store::open(home.path(), tiny(10)).unwrap();
        let table = store.table("t").unwrap();
        assert!(store.statistics().filter_bytes > 0);
        check_content(&table, &known);
        let from = round * 900;
        let written = fill(&table, from..from + 2_000, round);
        known.retain(|key, _| !(from..from + 2_000).any(|number| self::key(number) == *key));
        known.extend(written);
        check_content(&table, &known);
        store.scrub().unwrap();
    }
}

#[test]
fn filters_follow_the_option_after_compaction() {
    let home = tempfile::tempdir().unwrap();
    let mut known = BTreeMap::new();
    for (round, bits) in [(0, 0), (1, 10), (2, 0)] {
        let store = Store::open(home.path(), tiny(bits)).unwrap();
        let table = store.table("t").unwrap();
        known.extend(fill(&table, round * 5_000..(round + 1) * 5_000, round));
        check_content(&table, &known);
        let statistics = store.statistics();
        assert!(statistics.levels > 1, "{statistics:?}");
        assert_eq!(statistics.filter_bytes > 0, bits > 0, "{statistics:?}");
        store.scrub().unwrap();
    }
}

/// Changes a byte in each page of a filter.
fn damage(index: &Path) -> usize {
    let mut pages = 0;
    for entry in std::fs::read_dir(index).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        for page in bytes.as_chunks_mut::<PAGE>().0 {
            if page[4] == FILTER_PAGE_KIND {
                page[777] ^= 1;
                pages += 1;
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    pages
}

/// Whether an error reports an index file as damaged.
fn is_index_damage(error: &Error) -> bool {
    match error {
        Error::Damaged { path, .. } => path.extension().is_some_and(|extension| extension == "idx"),
        _ => false,
    }
}

#[test]
fn damaged_filter_is_an_error_not_a_missing_key() {
    let home = tempfile::tempdir().unwrap();
    let known = {
        let store = Store::open(home.path(), tiny(10)).unwrap();
        let table = store.table("t").unwrap();
        let known = fill(&table, 0..8_000, 0);
        store.flush().unwrap();
        assert!(store.statistics().filter_bytes > 0);
        known
    };
    assert!(damage(&home.path().join("index")) > 0);
    let store = Store::open(home.path(), tiny(10)).unwrap();
    let table = store.table("t").unwrap();
    let mut told = 0;
    for number in 0..20_000 {
        match table.get(&key(number)) {
            Ok(found) => assert_eq!(found.as_ref(), known.get(&key(number))),
            Err(error) => {
                assert!(is_index_damage(&error), "{error}");
                told += 1;
            }
        }
    }
    assert!(told > 0);
    assert!(is_index_damage(&store.scrub().unwrap_err()));
}
