//! Calls that blocked too long, or for something unrelated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use spill::fs::Fs;
use spill::{CachedWrites, Options, Store};

use crate::hook_fs::{Call, hook_fs};
use crate::in_memory;

/// Reported if something never ends.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Duration of a call beside four threads that write new keys; `None`: too long.
fn time_beside_load(options: Options, call: fn(&Store)) -> Option<Duration> {
    let home = in_memory();
    let store = Store::open(home.path(), options).unwrap();
    let (is_over, number) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let table = store.table("t").unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    table.put(&key.to_be_bytes(), b"value").unwrap();
                }
            });
        }
        thread::sleep(Duration::from_secs(1));
        let (done, is_done) = channel();
        let store = &store;
        scope.spawn(move || {
            let begin = Instant::now();
            call(store);
            let _ = done.send(begin.elapsed());
        });
        let took = is_done.recv_timeout(TIMEOUT).ok();
        is_over.store(true, Ordering::Relaxed);
        took
    })
}

/// A flush compacts what was written before it, not what others keep writing.
#[test]
fn flush_terminates_beside_writers() {
    let options = Options { memory: 1 << 20, frozen: 32, ..Options::default() };
    assert!(time_beside_load(options.clone(), |store| store.flush().unwrap()).is_some());
    let settle = |store: &Store| {
        store.settle(Duration::from_millis(100)).unwrap();
    };
    assert!(time_beside_load(options, settle).is_some());
}

/// One slow write of a few bytes says nothing about the cost of a byte: later writers must not be
/// delayed as if it did.
#[test]
fn one_slow_short_write_delays_once() {
    const HANGS: Duration = Duration::from_millis(200);
    let home = in_memory();
    let hangs = Arc::new(AtomicBool::new(false));
    let does_hang = Arc::clone(&hangs);
    let fs = hook_fs("/log/", move |call| {
        if call == Call::Write && does_hang.swap(false, Ordering::SeqCst) {
            thread::sleep(HANGS);
        }
        Ok(())
    });
    let store = Store::open_on(fs, home.path(), Options::default()).unwrap();
    let table = store.table("t").unwrap();
    (0..100_u32).for_each(|key| table.put(&key.to_be_bytes(), &[7; 100]).unwrap());
    store.sync().unwrap();
    table.put(b"key", b"value").unwrap();
    hangs.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| store.sync().unwrap());
        thread::sleep(HANGS / 10);
        for writer in 0..4_u32 {
            let table = &table;
            scope.spawn(move || {
                for number in 0..200_u32 {
                    let key = writer << 16 | number;
                    table.put(&key.to_be_bytes(), &[7; 32 << 10]).unwrap();
                }
            });
        }
    });
    // It used to take 7 to 22 s.
    assert!(begin.elapsed() < 10 * HANGS + Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// Opening an existing table does not wait for the creation of another.
#[test]
fn opening_an_existing_table_does_not_wait_for_creation() {
    let home = in_memory();
    let (is_made, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (made, on) = (Arc::clone(&is_made), Arc::clone(&goes_on));
    let fs = hook_fs("MANIFEST", move |call| {
        let begin = Instant::now();
        while call == Call::Sync
            && made.load(Ordering::SeqCst)
            && !on.load(Ordering::SeqCst)
            && begin.elapsed() < TIMEOUT
        {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let store = Store::open_on(fs, home.path(), Options::default()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    is_made.store(true, Ordering::SeqCst);
    let (done, is_done) = channel();
    thread::scope(|scope| {
        let maker = scope.spawn(|| store.table("new").map(drop));
        thread::sleep(Duration::from_millis(50));
        let store = &store;
        scope.spawn(move || {
            assert_eq!(store.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
            done.send(()).unwrap();
        });
        assert!(is_done.recv_timeout(TIMEOUT / 2).is_ok());
        assert!(!maker.is_finished());
        goes_on.store(true, Ordering::SeqCst);
    });
}

/// A file system on which some calls hang until the second flag is set; the first reports a hanging
/// call.
fn hanging_fs(
    of: &'static str,
    is_one: fn(Call) -> bool,
) -> (Arc<dyn Fs>, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (hangs, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (does_hang, on) = (Arc::clone(&hangs), Arc::clone(&goes_on));
    let fs = hook_fs(of, move |call| {
        if is_one(call) {
            does_hang.store(true, Ordering::SeqCst);
            let begin = Instant::now();
            while !on.load(Ordering::SeqCst) && begin.elapsed() < TIMEOUT {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    (fs, hangs, goes_on)
}

/// Preallocation must not block writers on the file system, not even one that freezes a memtable
/// meanwhile.
#[test]
fn preallocation_does_not_block_writers() {
    let home = in_memory();
    let is_ahead = |call| call == Call::Make && thread::current().name() == Some("spill-free");
    let (fs, hangs, goes_on) = hanging_fs("/log/", is_ahead);
    let options = Options { memory: 16 << 10, segment: 4 << 20, frozen: 64, ..Options::default() };
    let store = Store::open_on(fs, home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    let mut key = 0_u32;
    let mut put = |len: usize| {
        key += 1;
        table.put(&key.to_be_bytes(), &vec![7; len]).unwrap();
    };
    while !hangs.load(Ordering::SeqCst) {
        put(10_000);
    }
    // Several memtables, and a hundredth of a segment.
    let begin = Instant::now();
    (0..1000).for_each(|_| put(0));
    let took = begin.elapsed();
    goes_on.store(true, Ordering::SeqCst);
    assert!(took < TIMEOUT / 2, "{took:?}");
}

/// The longest short write beside a call, while 28 slots wait to be written, each for `HANGS`.
fn longest_write_beside(call: impl Fn(&Store) + Sync) -> Duration {
    let home = in_memory();
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let fs = hook_fs("/log/", move |call| {
        if call == Call::Write && slow.load(Ordering::SeqCst) {
            thread::sleep(HANGS);
        }
        Ok(())
    });
    let options = Options { cached_writes: CachedWrites::Always, ..Options::default() };
    let store = Store::open_on(fs, home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    table.put(b"key", b"value").unwrap();
    store.sync().unwrap();
    is_slow.store(true, Ordering::SeqCst);
    for number in 0..28_u32 {
        table.put(&number.to_be_bytes(), &[7; 60_000]).unwrap();
    }
    thread::scope(|scope| {
        let other = scope.spawn(|| call(&store));
        let mut longest = Duration::ZERO;
        while !other.is_finished() {
            let begin = Instant::now();
            table.put(b"key", b"value").unwrap();
            longest = longest.max(begin.elapsed());
            thread::sleep(Duration::from_millis(1));
        }
        longest
    })
}

const HANGS: Duration = Duration::from_millis(50);

/// Waiting for staged data holds no lock.
#[test]
fn waiting_for_a_sync_does_not_block_writers() {
    let scrub = longest_write_beside(|store| {
        store.scrub().unwrap();
    });
    assert!(scrub < 14 * HANGS, "{scrub:?}");
    // It is written directly, after the staged ones.
    let long = |store: &Store| store.table("t").unwrap().put(b"long", &[7; 70_000]).unwrap();
    let long = longest_write_beside(long);
    assert!(long < 14 * HANGS, "{long:?}");
}

/// Without threads, a write skips its maintenance while a checkpoint holds the locks.
#[test]
fn checkpoint_does_not_block_writers_without_background_threads() {
    let home = in_memory();
    let (fs, hangs, goes_on) = hanging_fs("/copy/log", |call| call == Call::SyncFolder);
    let options = Options { background: false, memory: 64 << 10, ..Options::default() };
    let store = Store::open_on(fs, home.path().join("store"), options).unwrap();
    let table = store.table("t").unwrap();
    thread::scope(|scope| {
        let checkpoint = scope.spawn(|| store.checkpoint(home.path().join("copy")));
        while !hangs.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        let begin = Instant::now();
        // More than one memtable.
        (0..1500_u32).for_each(|key| table.put(&key.to_be_bytes(), b"value").unwrap());
        let took = begin.elapsed();
        assert!(!checkpoint.is_finished());
        goes_on.store(true, Ordering::SeqCst);
        checkpoint.join().unwrap().unwrap();
        assert!(took < TIMEOUT / 2, "{took:?}");
    });
    assert!(store.statistics().memory_bytes > 64 << 10);
}
