//! File system calls that take long, fail, or find no space.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use spill::{Durability, Error, Options, Store};

use crate::hook_fs::{Call, hook_fs};
use crate::{in_memory, tiny};

/// Only the creator of a table waits for the device.
#[test]
fn creating_a_table_does_not_block_writers() {
    let home = tempfile::tempdir().unwrap();
    let (gate, is_closed) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let (at_gate, closed) = (Arc::clone(&gate), Arc::clone(&is_closed));
    let fs = hook_fs("MANIFEST", move |call| {
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
        // The table's state stays in flight to the device.
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
        // An error means that the put waited for the table.
        assert_eq!(seen.unwrap().unwrap(), b"meanwhile");
        new.put(b"k", b"new").unwrap();
        assert_eq!(new.get(b"k").unwrap().unwrap(), b"new");
    });
    store.flush().unwrap();
    assert_eq!(store.table("new").unwrap().get(b"k").unwrap().unwrap(), b"new");
}

/// A store on a device whose files of some names find no space while the flag is set.
fn on_full_device(home: &Path, of: &'static str, options: Options) -> (Store, Arc<AtomicBool>) {
    let is_full = Arc::new(AtomicBool::new(false));
    let full = Arc::clone(&is_full);
    let fs = hook_fs(of, move |call| match call {
        Call::Write if full.load(Ordering::SeqCst) => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    (Store::open_on(fs, home, options).unwrap(), is_full)
}

/// The previous state counts: nothing is unknown, and no reopening is needed.
#[test]
fn manifest_append_without_space_does_not_halt() {
    let home = tempfile::tempdir().unwrap();
    let (store, is_full) = on_full_device(home.path(), "MANIFEST", tiny());
    let table = store.table("t").unwrap();
    is_full.store(true, Ordering::SeqCst);
    // More often than there are table numbers.
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

/// Compaction is retried, and writes resume as soon as one succeeds.
#[test]
fn compaction_without_space_for_manifest_is_retried() {
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

/// With interval syncs, a write is only accepted while no more than the interval is at risk.
#[test]
fn interval_sync_failure_is_reported_to_writers() {
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
fn writes_resume_once_a_sync_succeeds() {
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

/// Writes resume once any sync succeeds.
#[test]
fn refused_writes_resume_after_explicit_sync() {
    const RUN: Duration = Duration::from_secs(3);
    let home = in_memory();
    let fails = Arc::new(AtomicBool::new(false));
    let does_fail = Arc::clone(&fails);
    let fs = hook_fs("/log/", move |call| match call {
        Call::Write if does_fail.swap(false, Ordering::SeqCst) => {
            Err(ErrorKind::StorageFull.into())
        }
        _ => Ok(()),
    });
    let durability = Durability::Interval(Duration::from_micros(200));
    // No compaction takes its share of the failures.
    let options = Options { durability, memory: 1 << 30, ..Options::default() };
    let store = Store::open_on(fs, home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = store.sync();
                }
            });
        }
        let begin = Instant::now();
        for number in 0_u32.. {
            match table.put(&number.to_be_bytes(), &[7; 100]) {
                Ok(()) if begin.elapsed() > RUN => break,
                Ok(()) if number % 7 == 0 => fails.store(true, Ordering::SeqCst),
                Ok(()) => {}
                Err(error) if begin.elapsed() > 2 * RUN => {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{error}, although calls succeed again");
                }
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// A compaction that failed and was then done by a flush refuses no later write.
#[test]
fn retried_compaction_does_not_refuse_writes() {
    let home = in_memory();
    let (is_full, is_slow) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (full, slow) = (Arc::clone(&is_full), Arc::clone(&is_slow));
    let fs = hook_fs("/index/", move |call| {
        if slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(50));
        }
        match call {
            Call::Write if full.load(Ordering::SeqCst) => Err(ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    });
    let options = Options { memory: 64 << 10, frozen: 1, ..Options::default() };
    let store = Store::open_on(fs, home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    is_full.store(true, Ordering::SeqCst);
    // One set of memtables waits, and no write is refused.
    (0..1000_u32).for_each(|key| table.put(&key.to_be_bytes(), b"value").unwrap());
    std::thread::sleep(Duration::from_millis(50));
    is_full.store(false, Ordering::SeqCst);
    store.flush().unwrap();
    is_slow.store(true, Ordering::SeqCst);
    for key in 0..10_000_u32 {
        table.put(&key.to_be_bytes(), b"value").unwrap();
    }
}

/// Failed syncs leave no repeated work for the next one.
#[test]
fn repeated_failed_syncs_do_not_accumulate() {
    let home = in_memory();
    let (is_full, syncs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (full, counted) = (Arc::clone(&is_full), Arc::clone(&syncs));
    let fs = hook_fs("/log/", move |call| {
        if call == Call::Sync {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        match call {
            Call::Write if full.load(Ordering::SeqCst) => Err(ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    });
    let store = Store::open_on(fs, home.path(), Options::default()).unwrap();
    let table = store.table("t").unwrap();
    table.put(b"key", b"value").unwrap();
    store.sync().unwrap();
    is_full.store(true, Ordering::SeqCst);
    for key in 0..500_u32 {
        table.put(&key.to_be_bytes(), b"value").unwrap();
        store.sync().unwrap_err();
    }
    is_full.store(false, Ordering::SeqCst);
    syncs.store(0, Ordering::Relaxed);
    store.sync().unwrap();
    let syncs = syncs.load(Ordering::Relaxed);
    assert!(syncs < 10, "{syncs} syncs");
}

/// A panic during a manifest append must not delete the files that the manifest names.
#[test]
fn panic_in_manifest_append_leaves_a_valid_store() {
    let home = in_memory();
    let panics = Arc::new(AtomicBool::new(false));
    let does_panic = Arc::clone(&panics);
    let fs = hook_fs("MANIFEST", move |call| {
        assert!(call != Call::Sync || !does_panic.load(Ordering::SeqCst), "as requested");
        Ok(())
    });
    let options = Options { background: false, ..Options::default() };
    let store = Store::open_on(fs, home.path(), options.clone()).unwrap();
    let table = store.table("t").unwrap();
    (0..1000_u32).for_each(|key| table.put(&key.to_be_bytes(), b"value").unwrap());
    panics.store(true, Ordering::SeqCst);
    let flushed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.flush()));
    assert!(flushed.is_err());
    drop((table, store));
    let store = Store::open(home.path(), options).unwrap();
    store.scrub().unwrap();
    assert_eq!(store.table("t").unwrap().range(..).pairs().count(), 1000);
}

/// Failed syncs of a compaction or caller do not count as interval syncs.
#[test]
fn failed_sync_does_not_count_for_the_interval() {
    const INTERVAL: Duration = Duration::from_millis(50);
    for calls_sync in [false, true] {
        let home = in_memory();
        let durability = Durability::Interval(INTERVAL);
        let options = Options { durability, background: false, memory: 16 << 10, ..tiny() };
        let (store, fails) = on_full_device(home.path(), "/log/", options);
        let table = store.table("t").unwrap();
        fails.store(true, Ordering::SeqCst);
        let begin = Instant::now();
        for number in 0_u32.. {
            let written = table.put(&number.to_be_bytes(), b"value");
            if let Err(error) = written {
                assert!(matches!(error, Error::Full { .. }), "{error}");
                break;
            }
            assert!(begin.elapsed() < 20 * INTERVAL, "writes are accepted without a sync");
            if calls_sync {
                store.sync().unwrap_err();
            }
            std::thread::sleep(INTERVAL / 50);
        }
        fails.store(false, Ordering::SeqCst);
        table.put(b"key", b"value").unwrap();
    }
}

/// A failed sync between long intervals is retried soon.
#[test]
fn interval_sync_is_retried_before_the_next_interval() {
    let home = in_memory();
    let durability = Durability::Interval(Duration::from_secs(3600));
    let options = Options { durability, ..Options::default() };
    let (store, fails) = on_full_device(home.path(), "/log/", options);
    let table = store.table("t").unwrap();
    table.put(b"key", b"value").unwrap();
    fails.store(true, Ordering::SeqCst);
    store.sync().unwrap_err();
    fails.store(false, Ordering::SeqCst);
    let begin = Instant::now();
    while let Err(error) = table.put(b"key", b"value") {
        assert!(begin.elapsed() < Duration::from_secs(10), "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A compaction syncs its new files, but not the reused ones.
#[test]
fn compaction_syncs_its_new_files() {
    const TABLES: u32 = 5;
    let home = in_memory();
    let syncs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&syncs);
    let fs = hook_fs("/index/", move |call| {
        counted.fetch_add(u32::from(call == Call::Sync), Ordering::Relaxed);
        Ok(())
    });
    let options = Options { background: false, ..Options::default() };
    let store = Store::open_on(fs, home.path(), options).unwrap();
    let tables = (0..TABLES).map(|number| store.table(&number.to_string()).unwrap());
    let tables: Vec<_> = tables.collect();
    for table in &tables {
        (0..5000_u32).for_each(|key| table.put(&key.to_be_bytes(), b"value").unwrap());
    }
    store.flush().unwrap();
    for round in 0..5_u32 {
        for table in &tables {
            table.put(&(round * 900).to_be_bytes(), b"other").unwrap();
        }
        syncs.store(0, Ordering::Relaxed);
        store.flush().unwrap();
        assert_eq!(syncs.load(Ordering::Relaxed), TABLES);
    }
    assert!(std::fs::read_dir(home.path().join("index")).unwrap().count() > TABLES as usize);
}

/// Failed jobs are retried after a pause, even if two kinds fail.
#[test]
fn failed_background_jobs_back_off() {
    let home = in_memory();
    let (is_full, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (full, tried) = (Arc::clone(&is_full), Arc::clone(&tries));
    let fs = hook_fs("MANIFEST", move |call| match call {
        // From the first release of collected segments on.
        Call::Write if full.load(Ordering::SeqCst) => {
            let is_release = std::thread::current().name() == Some("spill-release");
            if !is_release && tried.load(Ordering::SeqCst) == 0 {
                return Ok(());
            }
            tried.fetch_add(1, Ordering::SeqCst);
            Err(ErrorKind::StorageFull.into())
        }
        _ => Ok(()),
    });
    let store = Store::open_on(fs, home.path(), Options { background: true, ..tiny() }).unwrap();
    let table = store.table("t").unwrap();
    let mut number = 0_u32;
    let mut put = || {
        number += 1;
        table.put(&(number.wrapping_mul(7919) % 700).to_be_bytes(), &[7; 300])
    };
    while store.statistics().collected_segments < 5 {
        put().unwrap();
    }
    is_full.store(true, Ordering::SeqCst);
    while put().is_ok() {}
    std::thread::sleep(Duration::from_millis(500));
    tries.store(1, Ordering::SeqCst);
    std::thread::sleep(Duration::from_secs(2));
    // Each is tried ten times a second.
    let tries = tries.load(Ordering::SeqCst);
    assert!(tries < 60, "{tries} tries in 2 s");
}

/// A sync that panicked has synced nothing, and nobody is told otherwise.
#[test]
fn panic_in_sync_halts_the_store() {
    let home = in_memory();
    let panics = Arc::new(AtomicBool::new(false));
    let does_panic = Arc::clone(&panics);
    let fs = hook_fs("/log/", move |call| {
        let does_panic = call == Call::Sync && does_panic.swap(false, Ordering::SeqCst);
        assert!(!does_panic, "as requested");
        Ok(())
    });
    let store = Store::open_on(fs, home.path(), Options::default()).unwrap();
    let table = store.table("t").unwrap();
    table.put(b"key", b"value").unwrap();
    panics.store(true, Ordering::SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| store.sync())).is_err());
    assert!(matches!(store.sync(), Err(Error::Halted { .. })));
    assert!(matches!(table.put(b"key", b"other"), Err(Error::Halted { .. })));
    assert_eq!(table.get(b"key").unwrap().unwrap(), b"value");
    drop((table, store));
    let store = Store::open(home.path(), Options::default()).unwrap();
    assert_eq!(store.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
}

/// A segment that could neither be created nor removed does not block the next attempt.
#[test]
fn leftover_segment_file_is_replaced() {
    let home = in_memory();
    let (fails, made) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let does_fail = Arc::clone(&fails);
    let fs = hook_fs("/log/", move |call| {
        let refused = || Err(io::Error::from_raw_os_error(libc::EIO));
        let is_first_write = call == Call::Write && made.swap(false, Ordering::SeqCst);
        match call {
            Call::Make => made.store(true, Ordering::SeqCst),
            Call::Write if is_first_write && does_fail.load(Ordering::SeqCst) => return refused(),
            Call::Remove if does_fail.swap(false, Ordering::SeqCst) => return refused(),
            _ => {}
        }
        Ok(())
    });
    let store = Store::open_on(fs, home.path(), tiny()).unwrap();
    let table = store.table("t").unwrap();
    fails.store(true, Ordering::SeqCst);
    let refused = (0..1000_u32).filter(|key| table.put(&key.to_be_bytes(), &[7; 1000]).is_err());
    assert_eq!(refused.count(), 1);
    assert!(!fails.load(Ordering::SeqCst));
    store.scrub().unwrap();
}

/// Copies fill memtables, which wait for failing compactions; nobody writes.
#[test]
fn garbage_collection_respects_the_memory_limit() {
    const KEYS: u64 = 400_000;
    let home = in_memory();
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    {
        let options =
            Options { background: false, space_amplification: 10.0, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        for number in (0..KEYS).chain((0..KEYS).step_by(2)) {
            table.put(&key(number), b"").unwrap();
        }
        store.flush().unwrap();
    }
    let options = Options { memory: 256 << 10, space_amplification: 1.1, ..Options::default() };
    let bound = (1 + options.frozen) * options.memory;
    let (store, is_full) = on_full_device(home.path(), "/index/", options);
    is_full.store(true, Ordering::SeqCst);
    let mut most = 0;
    let mut watch = |enough: usize, limit: Duration| {
        let begin = Instant::now();
        while most < enough && begin.elapsed() < limit {
            most = most.max(store.statistics().memory_bytes as usize);
            std::thread::sleep(Duration::from_millis(5));
        }
        most
    };
    assert!(watch(bound / 2, Duration::from_secs(60)) >= bound / 2);
    // A memtable takes memory in blocks.
    let most = watch(bound * 3 / 2, Duration::from_secs(2));
    assert!(most < bound * 3 / 2, "{most} bytes, {bound} are allowed");
    is_full.store(false, Ordering::SeqCst);
    assert!(store.settle(Duration::from_secs(60)).unwrap());
    let table = store.table("t").unwrap();
    assert!((0..KEYS).all(|number| table.get(&key(number)).unwrap().is_some()));
}

/// A manifest write that failed but arrived completely may count at the next opening.
#[test]
fn manifest_written_despite_error_leaves_a_valid_store() {
    let home = in_memory();
    let at = home.path().join("store");
    let fails = Arc::new(AtomicBool::new(false));
    let does_fail = Arc::clone(&fails);
    let fs = hook_fs("MANIFEST", move |call| match call {
        Call::Written if does_fail.swap(false, Ordering::SeqCst) => {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
        _ => Ok(()),
    });
    let store = Store::open_on(fs, &at, Options { memory: 1 << 20, ..tiny() }).unwrap();
    let table = store.table("t").unwrap();
    for key in 0..40_u32 {
        table.put(&key.to_be_bytes(), &[7; 1000]).unwrap();
    }
    fails.store(true, Ordering::SeqCst);
    assert!(store.flush().is_err());
    crate::copy(&at, &home.path().join("killed"));
    let killed = Store::open(home.path().join("killed"), tiny()).unwrap();
    assert_eq!(killed.table("t").unwrap().range(..).pairs().count(), 40);
    store.flush().unwrap();
}

/// A record that arrived although its write found no space, and that cannot be erased, may reappear
/// at the next opening.
#[test]
fn record_written_despite_full_disk_halts() {
    for arrives in [true, false] {
        let home = in_memory();
        let is_full = Arc::new(AtomicBool::new(false));
        let full = Arc::clone(&is_full);
        let writes = AtomicU32::new(0);
        let fs = hook_fs("/log/", move |call| {
            let fails = match call {
                _ if !full.load(Ordering::SeqCst) => false,
                // The erasing write, and the first write where nothing arrives.
                Call::Write => writes.fetch_add(1, Ordering::SeqCst) > 0 || !arrives,
                Call::Written => true,
                _ => false,
            };
            if fails { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
        });
        let options = Options { background: false, ..Options::default() };
        let store = Store::open_on(fs, home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        is_full.store(true, Ordering::SeqCst);
        assert!(matches!(table.put(b"long", &[0; 100_000]), Err(Error::Full { .. })));
        is_full.store(false, Ordering::SeqCst);
        let next = table.put(b"next", b"value");
        assert_eq!(matches!(next, Err(Error::Halted { .. })), arrives, "{next:?}");
    }
}

/// Where links fail, a checkpoint begins nothing.
#[test]
fn failed_checkpoint_leaves_nothing_behind() {
    let home = in_memory();
    let [at, into] = ["store", "copy"].map(|name| home.path().join(name));
    let fs = hook_fs("/store/", move |call| match call {
        Call::Link => Err(ErrorKind::CrossesDevices.into()),
        _ => Ok(()),
    });
    let store = Store::open_on(fs, &at, tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    let logs = || std::fs::read_dir(at.join("log")).unwrap().count();
    let before = logs();
    for _ in 0..2 {
        let Err(Error::Io { source, .. }) = store.checkpoint(&into) else { panic!("it was made") };
        assert_eq!(source.kind(), ErrorKind::CrossesDevices);
    }
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 0);
    assert_eq!(logs(), before);
}
