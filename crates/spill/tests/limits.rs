//! The documented limits are exact.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use spill::{Batch, Error, MAX_BATCH_WRITES, MAX_KEY_LEN, MAX_TABLE_NAME_LEN, Options, Store};

/// Segment bytes that a value, and that the records of a batch, cannot use.
const VALUE_OVERHEAD: usize = 1194;
const BATCH_OVERHEAD: usize = 152;

#[test]
fn longest_keys_and_values_are_accepted_and_longer_rejected() {
    for segment in [64 << 10, 1 << 20] {
        let home = tempfile::tempdir().unwrap();
        let options = Options { segment, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        let key = vec![b'k'; MAX_KEY_LEN];
        let value = vec![b'v'; segment - VALUE_OVERHEAD];
        table.put(&key, &value).unwrap();
        table.put(b"", &value).unwrap();
        let longer = vec![b'v'; value.len() + 1];
        assert!(matches!(table.put(b"", &longer), Err(Error::ValueTooLong { .. })));
        assert!(matches!(table.put(&[0; MAX_KEY_LEN + 1], b""), Err(Error::KeyTooLong { .. })));

        // Two records of 18 bytes, a key of one byte, and the value.
        let whole = segment - BATCH_OVERHEAD;
        let mut batch = Batch::new();
        batch.put(&table, b"a", &vec![1; 1999]);
        batch.put(&table, b"b", &vec![2; whole - 2024 - 19]);
        store.write(&batch).unwrap();
        batch.delete(&table, b"c");
        assert!(matches!(store.write(&batch), Err(Error::BatchTooLong { .. })));

        drop((batch, table, store));
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        assert_eq!(table.get(&key).unwrap(), Some(value.clone()));
        assert_eq!(table.get(b"").unwrap(), Some(value));
        assert_eq!(table.read(b"b", <[u8]>::len).unwrap(), Some(whole - 2043));
        assert_eq!(table.get(b"c").unwrap(), None);
    }
}

#[test]
fn batch_limits_are_enforced() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), Options::default()).unwrap();
    let table = store.table("t").unwrap();
    let mut batch = Batch::new();
    let key = |number: usize| number.to_be_bytes();
    (0..MAX_BATCH_WRITES).for_each(|number| batch.put(&table, &key(number), b"v"));
    store.write(&batch).unwrap();
    batch.put(&table, b"one more", b"v");
    let refused = store.write(&batch).unwrap_err();
    assert!(matches!(refused, Error::TooManyWrites { limit: MAX_BATCH_WRITES, .. }), "{refused}");
    assert_eq!(table.range(..).pairs().count(), MAX_BATCH_WRITES);
}

#[test]
fn table_name_limit_is_enforced() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), Options::default()).unwrap();
    store.table(&"n".repeat(MAX_TABLE_NAME_LEN)).unwrap().put(b"k", b"v").unwrap();
    let refused = store.table(&"n".repeat(MAX_TABLE_NAME_LEN + 1)).err().unwrap();
    assert!(matches!(refused, Error::NameTooLong { limit: MAX_TABLE_NAME_LEN, .. }), "{refused}");
    assert_eq!(store.tables().len(), 1);
}

#[test]
fn invalid_options_are_rejected_by_name() {
    let wrong = [
        ("segment", Options { segment: 4096, ..Options::default() }),
        ("segment", Options { segment: (1 << 20) + 1, ..Options::default() }),
        ("memory", Options { memory: 1 << 10, ..Options::default() }),
        ("memory", Options { memory: usize::MAX, ..Options::default() }),
        ("frozen", Options { frozen: 0, ..Options::default() }),
        ("growth", Options { growth: 1, ..Options::default() }),
        ("bloom_bits", Options { bloom_bits: 33, ..Options::default() }),
        ("space_amplification", Options { space_amplification: 1.0, ..Options::default() }),
        ("space_amplification", Options { space_amplification: f64::NAN, ..Options::default() }),
        (
            "space_amplification",
            Options { space_amplification: f64::INFINITY, ..Options::default() },
        ),
        ("throttle", Options { throttle: Duration::MAX, ..Options::default() }),
        (
            "durability",
            Options {
                durability: spill::Durability::Interval(Duration::ZERO),
                ..Options::default()
            },
        ),
    ];
    let home = tempfile::tempdir().unwrap();
    for (option, options) in wrong {
        let refused = Store::open(home.path(), options.clone()).err();
        match &refused {
            Some(Error::Option { name, .. }) => assert_eq!(*name, option, "{options:?}"),
            other => panic!("{options:?}: {other:?}"),
        }
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was made");
}
