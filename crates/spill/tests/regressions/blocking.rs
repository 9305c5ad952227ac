//! Calls that waited for longer than they should, or for what was none of theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use spill::fs::Fs;
use spill::{CachedWrites, Options, Store};

use crate::hook_fs::{Call, hooked};
use crate::in_memory;

/// What is told if something never ends.
const LONG: Duration = Duration::from_secs(10);

/// How long a call takes beside four threads that write new keys. None: too long.
fn beside_a_load(options: Options, call: fn(&Store)) -> Option<Duration> {
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
        let took = is_done.recv_timeout(LONG).ok();
        is_over.store(true, Ordering::Relaxed);
        took
    })
}

/// A flush merges what was written before it, not what others go on to write.
#[test]
fn flush_terminates_beside_writers() {
    let options = Options { memory: 1 << 20, frozen: 32, ..Options::default() };
    assert!(beside_a_load(options.clone(), |store| store.flush().unwrap()).is_some());
    let settle = |store: &Store| {
        store.settle(Duration::from_millis(100)).unwrap();
    };
    assert!(beside_a_load(options, settle).is_some());
}

/// A write of a few bytes to the log that takes long says nothing of what a byte takes: those who write
/// next do not wait as if it did.
#[test]
fn one_slow_short_write_delays_once() {
    const HANGS: Duration = Duration::from_millis(200);
    let home = in_memory();
    let hangs = Arc::new(AtomicBool::new(false));
    let does_hang = Arc::clone(&hangs);
    let fs = hooked("/log/", move |call| {
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
    // It was 7 to 22 s.
    assert!(begin.elapsed() < 10 * HANGS + Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// Who asks for a table that is there does not wait for the device on which another is made.
#[test]
fn opening_an_existing_table_does_not_wait_for_creation() {
    let home = in_memory();
    let (is_made, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (made, on) = (Arc::clone(&is_made), Arc::clone(&goes_on));
    let fs = hooked("MANIFEST", move |call| {
        let begin = Instant::now();
        while call == Call::Sync
            && made.load(Ordering::SeqCst)
            && !on.load(Ordering::SeqCst)
            && begin.elapsed() < LONG
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
        assert!(is_done.recv_timeout(LONG / 2).is_ok());
        assert!(!maker.is_finished());
        goes_on.store(true, Ordering::SeqCst);
    });
}

/// A file system on which some calls hang until the second flag is set; the first says that one does.
fn hanging(
    of: &'static str,
    is_one: fn(Call) -> bool,
) -> (Arc<dyn Fs>, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (hangs, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (does_hang, on) = (Arc::clone(&hangs), Arc::clone(&goes_on));
    let fs = hooked(of, move |call| {
        if is_one(call) {
            does_hang.store(true, Ordering::SeqCst);
            let begin = Instant::now();
            while !on.load(Ordering::SeqCst) && begin.elapsed() < LONG {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    (fs, hangs, goes_on)
}

/// A segment is made ahead so that no writer waits for the file system: nor does one who only has to
/// freeze an L0 meanwhile.
#[test]
fn preallocation_does_not_block_writers() {
    let home = in_memory();
    let is_ahead = |call| call == Call::Make && thread::current().name() == Some("spill-free");
    let (fs, hangs, goes_on) = hanging("/log/", is_ahead);
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
    // Some L0s, and a hundredth of a segment.
    let begin = Instant::now();
    (0..1000).for_each(|_| put(0));
    let took = begin.elapsed();
    goes_on.store(true, Ordering::SeqCst);
    assert!(took < LONG / 2, "{took:?}");
}

/// The longest write of a few bytes beside a call, where 28 slots wait to be written, each for `HANGS`.
fn longest_beside(call: impl Fn(&Store) + Sync) -> Duration {
    let home = in_memory();
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let fs = hooked("/log/", move |call| {
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

/// What is on its way to the log is waited for with no lock held.
#[test]
fn waiting_for_a_sync_does_not_block_writers() {
    let scrub = longest_beside(|store| {
        store.scrub().unwrap();
    });
    assert!(scrub < 14 * HANGS, "{scrub:?}");
    // It goes to its segment by itself, behind the others.
    let long = |store: &Store| store.table("t").unwrap().put(b"long", &[7; 70_000]).unwrap();
    let long = longest_beside(long);
    assert!(long < 14 * HANGS, "{long:?}");
}

/// Without threads as well: what a write would do is left while a checkpoint keeps all as it is.
#[test]
fn checkpoint_does_not_block_writers_without_background_threads() {
    let home = in_memory();
    let (fs, hangs, goes_on) = hanging("/copy/log", |call| call == Call::SyncFolder);
    let options = Options { background: false, memory: 64 << 10, ..Options::default() };
    let store = Store::open_on(fs, home.path().join("store"), options).unwrap();
    let table = store.table("t").unwrap();
    thread::scope(|scope| {
        let checkpoint = scope.spawn(|| store.checkpoint(home.path().join("copy")));
        while !hangs.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        let begin = Instant::now();
        // More than one L0.
        (0..1500_u32).for_each(|key| table.put(&key.to_be_bytes(), b"value").unwrap());
        let took = begin.elapsed();
        assert!(!checkpoint.is_finished());
        goes_on.store(true, Ordering::SeqCst);
        checkpoint.join().unwrap().unwrap();
        assert!(took < LONG / 2, "{took:?}");
    });
    assert!(store.statistics().memory_bytes > 64 << 10);
}
