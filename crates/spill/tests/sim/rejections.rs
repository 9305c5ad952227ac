//! Directories, keys and values that the store rejects.

use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use spill::{Batch, Durability, Error, Options, Store};
use xxhash_rust::xxh3::xxh3_64;

use crate::disk::{End, Kind, Sim};
use crate::history::{Model, Traffic};
use crate::settings;
use crate::target::{STORE_DIR, Target};

fn tiny() -> Options {
    settings::tiny(Durability::None)
}

fn foreign(files: &[(&str, &[u8])]) {
    let sim = Sim::new(1);
    let fs = sim.fs();
    for (name, content) in files {
        let path = Path::new(STORE_DIR).join(name);
        fs.create_dir(path.parent().unwrap()).unwrap();
        sim.put(&path, content.to_vec());
    }
    let before: Vec<_> = sim.files().iter().map(|path| sim.content(path)).collect();
    let names = sim.files();
    for create in [true, false] {
        let options = Options { create, ..tiny() };
        match Target::open(&sim, &options) {
            Err(Error::Foreign { path }) => assert!(path.starts_with(STORE_DIR)),
            Err(other) => panic!("{names:?}: {other}"),
            Ok(_) => panic!("{names:?}: opened"),
        }
        assert_eq!(sim.files(), names, "nothing is added");
        let after: Vec<_> = sim.files().iter().map(|path| sim.content(path)).collect();
        assert_eq!(after, before, "nothing is changed");
    }
}

#[test]
fn foreign_directories_are_rejected_unchanged() {
    foreign(&[("notes.txt", b"hello")]);
    foreign(&[
        ("CURRENT", b"MANIFEST-000005\n"),
        ("MANIFEST-000005", b"\x56\xf9\xb8\xf8\x1c\x00\x01\x01\x1aleveldb"),
        ("000004.log", b""),
        ("LOCK", b""),
    ]);
    foreign(&[("data.mdb", &[0; 8192]), ("lock.mdb", &[0; 8192])]);
    foreign(&[("LOCK", b""), ("log/00000001.log", &[7; 4096])]);
    foreign(&[("MANIFEST", b"a manifest of something else, of some length\n")]);
}

#[test]
fn newer_format_is_rejected_unchanged() {
    let sim = Sim::new(1);
    let mut target = Target::open(&sim, &tiny()).unwrap();
    target.table(0).unwrap().put(b"key", b"value").unwrap();
    drop(target);
    let manifest = Path::new(STORE_DIR).join("MANIFEST");
    let original = sim.content(&manifest).unwrap();
    let mut newer = original.clone();
    // Behind the magic number: the format and the checksum of both.
    newer[8..12].copy_from_slice(&1000_u32.to_le_bytes());
    let check = xxh3_64(&newer[..12]) as u32;
    newer[12..16].copy_from_slice(&check.to_le_bytes());
    sim.put(&manifest, newer.clone());
    let before: Vec<_> = sim.files().iter().map(|path| sim.content(path)).collect();
    match Target::open(&sim, &tiny()) {
        Err(Error::Format { path, found, known }) => {
            assert_eq!((path, found), (manifest.clone(), 1000));
            assert!(known < 1000);
        }
        other => panic!("{:?}", other.err()),
    }
    let after: Vec<_> = sim.files().iter().map(|path| sim.content(path)).collect();
    assert_eq!(after, before);
    sim.put(&manifest, original);
    let mut target = Target::open(&sim, &tiny()).unwrap();
    assert_eq!(target.get(0, b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn missing_directory_is_created_only_on_request() {
    let sim = Sim::new(1);
    let refused = Target::open(&sim, &Options { create: false, ..tiny() });
    assert!(matches!(refused, Err(Error::NoStore { .. })), "{:?}", refused.err());
    assert!(sim.files().is_empty());
    // An existing directory is not a store either.
    sim.fs().create_dir(Path::new(STORE_DIR)).unwrap();
    let refused = Target::open(&sim, &Options { create: false, ..tiny() });
    assert!(matches!(refused, Err(Error::NoStore { .. })), "{:?}", refused.err());
    assert!(sim.files().is_empty());
    // Data synced below a new directory is not lost with it.
    let mut target = Target::open_at(&sim, Path::new("/disk/a/b/store"), &tiny()).unwrap();
    target.table(0).unwrap().put(b"key", b"value").unwrap();
    target.store.sync().unwrap();
    let left = sim.image(End::PowerCut(crate::disk::Loss::Everything), 0);
    let options = Options { create: false, ..tiny() };
    let mut target = Target::open_at(&left, Path::new("/disk/a/b/store"), &options).unwrap();
    assert_eq!(target.get(0, b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn file_in_place_of_the_directory_is_rejected() {
    let sim = Sim::new(1);
    sim.put(Path::new(STORE_DIR), b"a file".to_vec());
    let refused = Target::open(&sim, &tiny()).err().unwrap();
    assert!(matches!(refused, Error::Io { .. } | Error::Foreign { .. }), "{refused}");
    assert_eq!(sim.content(Path::new(STORE_DIR)).unwrap(), b"a file");
}

#[test]
fn second_opener_is_rejected() {
    let sim = Sim::new(1);
    let first = Target::open(&sim, &tiny()).unwrap();
    let refused = Target::open(&sim, &tiny()).err().unwrap();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    drop(first);
    Target::open(&sim, &tiny()).unwrap();
}

/// On the real file system, where the kernel treats the lock like another process's.
#[test]
fn lock_of_another_process_is_respected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path, tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    let lock = std::fs::File::open(&path).unwrap();
    assert!(flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err(), "it holds a lock");
    drop(store);
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let refused = Store::open(&path, tiny()).err().unwrap();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    drop(lock);
    let store = Store::open(&path, tiny()).unwrap();
    assert_eq!(store.table("t").unwrap().get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn oversized_keys_values_and_batches_are_rejected_without_effect() {
    let sim = Sim::new(1);
    let mut target = Target::open(&sim, &tiny()).unwrap();
    let table = target.table(0).unwrap().clone();
    let store = target.store.clone();
    table.put(&[1; 1024], b"the longest key").unwrap();
    let long = [1; 1025];
    for refused in [table.put(&long, b"value"), table.delete(&long)] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::KeyTooLong { len: 1025, limit: 1024 }), "{refused}");
    }
    assert_eq!(table.get(&long).ok().flatten(), None);

    let mut refused = None;
    for len in (60 << 10)..=(64 << 10) {
        let value = vec![len as u8; len];
        match table.put(b"value", &value) {
            Ok(()) => assert!(refused.is_none(), "{len} bytes are accepted, fewer are not"),
            Err(Error::ValueTooLong { len: told, limit }) => {
                assert!(told == len && limit < len && *refused.get_or_insert(limit) == limit);
            }
            Err(other) => panic!("{other}"),
        }
    }
    let limit = refused.expect("a value cannot be as large as a segment");
    assert_eq!(table.get(b"value").unwrap().unwrap().len(), limit, "the limit itself is accepted");

    let mut batch = Batch::new();
    batch.put(&table, b"first of a large batch", b"value");
    for number in 0..70_u32 {
        batch.put(&table, &number.to_be_bytes(), &[7; 1000]);
    }
    let refused = store.write(&batch).unwrap_err();
    assert!(matches!(refused, Error::BatchTooLong { .. }), "{refused}");
    assert_eq!(table.get(b"first of a large batch").unwrap(), None);
    batch.clear();
    batch.put(&table, b"beside a long key", b"value");
    batch.put(&table, &long, b"value");
    assert!(matches!(store.write(&batch), Err(Error::KeyTooLong { .. })));
    assert_eq!(table.get(b"beside a long key").unwrap(), None);
    store.write(&Batch::new()).unwrap();
    drop((table, store, batch));
    drop(target);
    let mut target = Target::open(&sim, &tiny()).unwrap();
    assert_eq!(target.get(0, b"beside a long key").unwrap(), None);
    assert_eq!(target.get(0, b"value").unwrap().unwrap().len(), limit);
    target.store.scrub().unwrap();
}

#[test]
fn out_of_range_options_are_rejected_by_name() {
    let sim = Sim::new(1);
    let wrong = [
        ("segment", Options { segment: 4096, ..tiny() }),
        ("segment", Options { segment: (64 << 10) + 1, ..tiny() }),
        ("memory", Options { memory: 0, ..tiny() }),
        ("space_amplification", Options { space_amplification: 0.5, ..tiny() }),
        ("space_amplification", Options { space_amplification: f64::NAN, ..tiny() }),
        (
            "durability",
            Options { durability: Durability::Interval(std::time::Duration::ZERO), ..tiny() },
        ),
    ];
    for (expected, options) in wrong {
        match Target::open(&sim, &options).err() {
            Some(Error::Option { name, .. }) => assert_eq!(name, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert!(sim.files().is_empty(), "{expected}: nothing is made");
    }
}

/// The files do not depend on the options.
#[test]
fn options_may_change_at_each_opening() {
    let sim = Sim::new(1);
    let traffic = Traffic { seed: 3, keys: 400, max_value_len: 30_000 };
    let mut model = Model::default();
    let segments = [2 << 20, 64 << 10, 256 << 10, 64 << 10, 1 << 20, 64 << 10];
    for (round, segment) in segments.into_iter().enumerate() {
        let options = Options { segment, memory: (64 << 10) << (round % 3), ..tiny() };
        let mut target = Target::open(&sim, &options).unwrap();
        let found = Model::read(&target.store, false).unwrap();
        assert_eq!(found.digest(), model.digest(), "{}", found.difference(&model));
        for number in 0..2000 {
            let write = traffic.write(round * 2000 + number);
            target.write(&write).unwrap();
            model.apply(&write);
        }
        assert!(target.settle().unwrap());
        let found = Model::read(&target.store, true).unwrap();
        assert_eq!(found.digest(), model.digest(), "{}", found.difference(&model));
        target.store.scrub().unwrap();
    }
}

/// On read-only media: an error when opened for writing, and no change.
#[test]
fn read_only_disk_is_reported() {
    let sim = Sim::new(1);
    let traffic = Traffic { seed: 3, keys: 50, max_value_len: 3000 };
    let mut target = Target::open(&sim, &tiny()).unwrap();
    let mut model = Model::default();
    for number in 0..300 {
        let write = traffic.write(number);
        target.write(&write).unwrap();
        model.apply(&write);
    }
    let left = sim.image(End::Kill, 0);
    left.set_read_only(true);
    let refused = Target::open(&left, &tiny()).err().unwrap();
    assert!(
        matches!(&refused, Error::Io { source, .. }
            if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem),
        "{refused}"
    );
    left.set_read_only(false);
    let target = Target::open(&left, &tiny()).unwrap();
    let found = Model::read(&target.store, false).unwrap();
    assert_eq!(found.digest(), model.digest(), "{}", found.difference(&model));
}

/// The cost of an idle store; closing twice is opening twice.
#[test]
fn reopening_preserves_content() {
    let sim = Sim::new(1);
    let traffic = Traffic { seed: 3, keys: 50, max_value_len: 3000 };
    let mut target = Target::open(&sim, &tiny()).unwrap();
    let mut model = Model::default();
    for number in 0..200 {
        let write = traffic.write(number);
        target.write(&write).unwrap();
        model.apply(&write);
    }
    let mut used = Vec::new();
    for _ in 0..20 {
        drop(target);
        used.push((sim.used(), sim.files().len()));
        target = Target::open(&sim, &tiny()).unwrap();
        let found = Model::read(&target.store, false).unwrap();
        assert_eq!(found.digest(), model.digest(), "{}", found.difference(&model));
    }
    let (early, late) = (used[3], used[19]);
    assert!(late.0 <= early.0 + (128 << 10), "opening grows it: {used:?}");
    assert!(late.1 <= early.1 + 4, "opening adds files: {used:?}");
    sim.start_trace();
    drop(target);
    let calls = sim.take_trace();
    assert!(calls.iter().all(|call| call.kind != Kind::Lock));
}
