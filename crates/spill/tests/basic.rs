//! The store as a whole: written, read, opened again.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use spill::{Batch, Options, Store};

fn small() -> Options {
    Options { memory: 32 << 10, segment: 64 << 10, ..Options::default() }
}

fn key(number: u64) -> Vec<u8> {
    format!("user{:019}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

fn value(number: u64, round: u64) -> Vec<u8> {
    let len = 20 + (number * 7 + round) % 300;
    (0..len).map(|byte| (byte * 31 + number + round * 17) as u8).collect()
}

#[test]
fn keeps_what_it_is_given_over_many_spills_and_openings() {
    for background in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background, ..small() };
        let mut model = BTreeMap::new();
        for round in 0..6 {
            let store = Store::open(home.path(), options.clone()).unwrap();
            let table = store.table("t").unwrap();
            for step in 0..6000_u64 {
                let number = (step * 7919 + round * 31) % 4000;
                if step % 11 == 3 {
                    table.delete(&key(number)).unwrap();
                    model.remove(&key(number));
                } else {
                    table.put(&key(number), &value(number, round)).unwrap();
                    model.insert(key(number), value(number, round));
                }
            }
            for number in 0..4000 {
                assert_eq!(table.get(&key(number)).unwrap(), model.get(&key(number)).cloned());
            }
            let forward: Vec<_> = table.range(..).pairs().map(Result::unwrap).collect();
            assert!(forward.iter().map(|(key, value)| (key, value)).eq(model.iter()));
            let backward: Vec<_> = table.range(..).pairs().rev().map(Result::unwrap).collect();
            assert!(backward.iter().map(|(key, value)| (key, value)).eq(model.iter().rev()));
            store.scrub().unwrap();
            let statistics = store.statistics();
            assert!(statistics.spills > 3, "{statistics:?}");
            if round == 5 {
                assert!(store.settle(Duration::from_secs(20)).unwrap());
                assert!(store.statistics().collected_segments > 0, "{statistics:?}");
                println!("{:?}", store.statistics());
            }
        }
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        let all: Vec<_> = table.range(..).pairs().map(Result::unwrap).collect();
        assert!(all.iter().map(|(key, value)| (key, value)).eq(model.iter()));
        store.scrub().unwrap();
    }
}

#[test]
fn snapshots_and_batches_and_checkpoints() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path().join("s"), small()).unwrap();
    let one = store.table("one").unwrap();
    let two = store.table("two").unwrap();
    for number in 0..500 {
        let mut batch = Batch::new();
        batch.put(&one, &key(number), &value(number, 0));
        batch.put(&two, &key(number), &value(number, 1));
        store.write(&batch).unwrap();
    }
    let snapshot = store.snapshot();
    for number in 0..500 {
        one.put(&key(number), &value(number, 2)).unwrap();
        two.delete(&key(number)).unwrap();
    }
    store.checkpoint(home.path().join("c")).unwrap();
    for round in 3..30 {
        for number in 0..500 {
            one.put(&key(number), &value(number, round)).unwrap();
        }
    }
    store.settle(Duration::from_secs(10)).unwrap();
    for number in 0..500 {
        assert_eq!(snapshot.get(&one, &key(number)).unwrap(), Some(value(number, 0)));
        assert_eq!(snapshot.get(&two, &key(number)).unwrap(), Some(value(number, 1)));
    }
    assert_eq!(snapshot.range(&two, ..).pairs().count(), 500);
    assert_eq!(two.range(..).pairs().count(), 0);
    let copy = Store::open(home.path().join("c"), small()).unwrap();
    let copied = copy.table("one").unwrap();
    for number in 0..500 {
        assert_eq!(copied.get(&key(number)).unwrap(), Some(value(number, 2)));
    }
    assert_eq!(copy.table("two").unwrap().range(..).pairs().count(), 0);
    copy.scrub().unwrap();
    let keys: Vec<_> = (0..600).map(key).collect();
    let values = one.multi_get(&keys).unwrap();
    assert!(values[..500].iter().all(Option::is_some) && values[500..].iter().all(Option::is_none));
}
