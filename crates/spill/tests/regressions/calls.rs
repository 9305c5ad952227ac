//! Calls of the file system that take long, or find no space.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use spill::{Durability, Error, Options, Store};

use crate::hooked::{Call, hooked};
use crate::tiny;

/// Nobody waits for the device while a table is made but who makes it.
#[test]
fn writers_go_on_while_a_table_is_made() {
    let home = tempfile::tempdir().unwrap();
    let (gate, is_closed) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let (at_gate, closed) = (Arc::clone(&gate), Arc::clone(&is_closed));
    let fs = hooked("MANIFEST", move |call| {
        if call == Call::Sync && closed.swap(false, Ordering::SeqCst) {
            at_gate.wait();
            at_gate.wait();
        }
        Ok(())
    });
    let store = Store::open_on(fs, home.path(), Options { background: true, ..tiny() }).unwrap();
    let table = store.table("t").unwrap();
    table.put(b"k", b"before").unwrap();
    is_closed.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let new = scope.spawn(|| store.table("new"));
        // The table's state is on its way to the device, and stays so.
        gate.wait();
        let (done, is_done) = std::sync::mpsc::channel();
        let table = &table;
        let writer = scope.spawn(move || {
            table.put(b"k", b"meanwhile").unwrap();
            done.send(table.get(b"k").unwrap()).unwrap();
        });
        let seen = is_done.recv_timeout(Duration::from_secs(5));
        gate.wait();
        writer.join().unwrap();
        let new = new.join().unwrap().unwrap();
        // An error: the put waits for the table.
        assert_eq!(seen.unwrap().unwrap(), b"meanwhile");
        new.put(b"k", b"new").unwrap();
        assert_eq!(new.get(b"k").unwrap().unwrap(), b"new");
    });
    store.flush().unwrap();
    assert_eq!(store.table("new").unwrap().get(b"k").unwrap().unwrap(), b"new");
}

/// A store on a device whose files of some names find no space as long as the flag is set.
fn on_full_device(home: &Path, of: &'static str, options: Options) -> (Store, Arc<AtomicBool>) {
    let is_full = Arc::new(AtomicBool::new(false));
    let full = Arc::clone(&is_full);
    let fs = hooked(of, move |call| match call {
        Call::Write if full.load(Ordering::SeqCst) => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    (Store::open_on(fs, home, options).unwrap(), is_full)
}

/// The state of before counts: nothing is unknown, and nothing has to be opened again.
#[test]
fn a_manifest_without_space_halts_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (store, is_full) = on_full_device(home.path(), "MANIFEST", tiny());
    let table = store.table("t").unwrap();
    is_full.store(true, Ordering::SeqCst);
    // More often than there are numbers for tables.
    for _ in 0..66_000 {
        let refused = store.table("u").err();
        assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
    }
    is_full.store(false, Ordering::SeqCst);
    table.put(b"k", b"v").unwrap();
    store.table("u").unwrap().put(b"k", b"w").unwrap();
    drop((table, store));
    let store = Store::open(home.path(), tiny()).unwrap();
    assert_eq!(store.tables(), ["t", "u"]);
    assert_eq!(store.table("u").unwrap().get(b"k").unwrap().unwrap(), b"w");
}

/// Merges try again, and writes go on as soon as one has succeeded.
#[test]
fn merges_without_space_for_the_manifest_are_made_up_for() {
    for background in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background, ..tiny() };
        let (store, is_full) = on_full_device(home.path(), "MANIFEST", options);
        let table = store.table("t").unwrap();
        is_full.store(true, Ordering::SeqCst);
        let put = |number: u32| table.put(&(number % 500).to_be_bytes(), &[7; 200]);
        let limit = Instant::now() + Duration::from_secs(60);
        let refused = (0..).find_map(|number| put(number).err()).unwrap();
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        is_full.store(false, Ordering::SeqCst);
        while let Err(error) = put(1) {
            assert!(matches!(error, Error::Full { .. }) && Instant::now() < limit, "{error}");
            std::thread::sleep(Duration::from_millis(10));
        }
        store.flush().unwrap();
    }
}

/// With an interval a write is only taken while no more than may be is left to chance.
#[test]
fn what_cannot_be_synced_at_an_interval_is_told() {
    for background in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let durability = Durability::Interval(Duration::from_millis(20));
        let options = Options { background, durability, ..Options::default() };
        let (store, is_full) = on_full_device(home.path(), "/log/", options);
        let table = store.table("t").unwrap();
        table.put(b"k", b"before").unwrap();
        is_full.store(true, Ordering::SeqCst);
        let limit = Instant::now() + Duration::from_secs(60);
        let refused = loop {
            std::thread::sleep(Duration::from_millis(5));
            match table.put(b"k", b"taken") {
                Err(error) => break error,
                Ok(()) => assert!(Instant::now() < limit, "background: {background}"),
            }
        };
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        table.put(b"l", b"refused").unwrap_err();
        assert_eq!(table.get(b"l").unwrap(), None, "it had no effect");
        is_full.store(false, Ordering::SeqCst);
        while table.put(b"k", b"after").is_err() {
            assert!(Instant::now() < limit, "background: {background}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whoever syncs, and before the next interval is over.
#[test]
fn writes_are_taken_once_a_sync_succeeds() {
    let home = tempfile::tempdir().unwrap();
    let durability = Durability::Interval(Duration::from_secs(1));
    let options = Options { background: true, durability, ..Options::default() };
    let (store, is_full) = on_full_device(home.path(), "/log/", options);
    let table = store.table("t").unwrap();
    is_full.store(true, Ordering::SeqCst);
    let limit = Instant::now() + Duration::from_secs(60);
    while table.put(b"k", b"v").is_ok() {
        assert!(Instant::now() < limit);
        std::thread::sleep(Duration::from_millis(5));
    }
    is_full.store(false, Ordering::SeqCst);
    store.sync().unwrap();
    table.put(b"k", b"v").unwrap();
}
