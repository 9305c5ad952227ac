//! The limits that the README states are exact.
#![allow(clippy::unwrap_used)]

use spill::{Batch, Error, LONGEST_KEY, Options, Store};

/// Bytes of a segment that a value, and that the records of a batch, cannot have.
const BESIDE_VALUE: usize = 1194;
const BESIDE_BATCH: usize = 152;

#[test]
fn as_long_as_allowed_and_no_longer() {
    for segment in [64 << 10, 1 << 20] {
        let home = tempfile::tempdir().unwrap();
        let options = Options { segment, ..Options::default() };
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        let key = vec![b'k'; LONGEST_KEY];
        let value = vec![b'v'; segment - BESIDE_VALUE];
        table.put(&key, &value).unwrap();
        table.put(b"", &value).unwrap();
        let longer = vec![b'v'; value.len() + 1];
        assert!(matches!(table.put(b"", &longer), Err(Error::ValueTooLong { .. })));
        assert!(matches!(table.put(&[0; LONGEST_KEY + 1], b""), Err(Error::KeyTooLong { .. })));

        // Two records of 18 bytes, a key of one and the value.
        let whole = segment - BESIDE_BATCH;
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
