//! What was wrong once.
#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use spill::fs::{Access, File, Fs, Map, Mode, Os};
use spill::{Batch, Error, Options, Store};

fn tiny() -> Options {
    Options { memory: 32 << 10, segment: 64 << 10, background: false, ..Options::default() }
}

/// The last key of a leaf ends with zeros, and the first of the next has more behind them: the
/// bound between the leaves must be above the former.
#[test]
fn a_key_that_ends_with_zeros_at_the_end_of_a_leaf_is_found() {
    const LEAF: usize = 240;
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), Options { memory: 1 << 20, ..tiny() }).unwrap();
    let table = store.table("t").unwrap();
    let mut keys: Vec<Vec<u8>> =
        (0..LEAF - 1).map(|number| format!("A{number:04}").into_bytes()).collect();
    keys.push(b"a\0".to_vec());
    keys.extend((0..LEAF).map(|number| format!("a\0b{number:04}").into_bytes()));
    assert!(keys.is_sorted());
    for key in &keys {
        table.put(key, key).unwrap();
    }
    store.flush().unwrap();
    for key in &keys {
        assert_eq!(table.get(key).unwrap().as_ref(), Some(key), "{key:?}");
    }
}

/// Options may differ from one opening to the next: what lives in large segments is collected
/// into small ones.
#[test]
fn large_segments_are_collected_into_small_ones() {
    let home = tempfile::tempdir().unwrap();
    let value = |number: u32, round: u32| vec![(number + round) as u8; 20_000];
    {
        let options = Options { segment: 4 << 20, memory: 64 << 10, ..tiny() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        table.put(b"long", &vec![7; 1 << 20]).unwrap();
        for number in 0..600_u32 {
            table.put(&number.to_be_bytes(), &value(number, 0)).unwrap();
        }
        store.flush().unwrap();
    }
    let store = Store::open(home.path(), tiny()).unwrap();
    let table = store.table("t").unwrap();
    for number in (0..600_u32).filter(|number| number % 3 != 0) {
        table.put(&number.to_be_bytes(), &value(number, 1)).unwrap();
    }
    assert!(store.settle(std::time::Duration::from_secs(20)).unwrap());
    assert!(store.statistics().collected_segments > 0, "{:?}", store.statistics());
    for number in 0..600_u32 {
        let round = u32::from(number % 3 != 0);
        assert_eq!(table.get(&number.to_be_bytes()).unwrap(), Some(value(number, round)));
    }
    assert_eq!(table.get(b"long").unwrap(), Some(vec![7; 1 << 20]));
    store.scrub().unwrap();
}

/// Of several writes of a key in one batch the last counts, and nobody ever sees another.
#[test]
fn only_the_last_write_of_a_key_in_a_batch_is_seen() {
    let home = tempfile::tempdir().unwrap();
    let options = Options { memory: 1 << 20, segment: 1 << 20, ..Options::default() };
    let store = Store::open(home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let is_last = table.read(b"k", |value| value == b"last").unwrap();
                    assert_ne!(is_last, Some(false));
                }
            });
        }
        let mut batch = Batch::new();
        batch.put(&table, b"k", b"first");
        batch.put(&table, b"k", b"last");
        let written = (0..200_000).try_for_each(|_| store.write(&batch));
        is_over.store(true, Ordering::Relaxed);
        written.unwrap();
    });
}

/// The staging file of a store that was made when it had fewer slots.
#[test]
fn a_staging_file_of_another_length_is_used_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let put = |round: u32| {
        let store = Store::open(home.path(), tiny()).unwrap();
        let table = store.table("t").unwrap();
        assert_eq!(table.get(b"k").unwrap().is_some(), round > 0);
        for number in 0..300_u32 {
            table.put(&number.to_be_bytes(), &[7; 1000]).unwrap();
        }
        table.put(b"k", &round.to_be_bytes()).unwrap();
    };
    put(0);
    let staging = std::fs::OpenOptions::new().write(true).open(home.path().join("staging"));
    let eight_slots = 2 * 4096 + 8 * (68 << 10);
    staging.unwrap().set_len(eight_slots).unwrap();
    put(1);
    put(2);
    let staging = std::fs::metadata(home.path().join("staging")).unwrap();
    assert_eq!(staging.len(), eight_slots);
}

/// What L0 replaced in itself is in no level's account: few records, updated as fast as memory
/// takes them, must not fill the device before a merge finds that most of the log is dead.
#[test]
fn updates_of_few_records_keep_the_log_small() {
    const VALUE: usize = 4 << 10;
    let home = tempfile::tempdir().unwrap();
    let options = Options { segment: 1 << 20, ..Options::default() };
    let store = Store::open(home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    let mut largest = 0;
    for round in 0..100_u32 {
        for number in 0..500_u32 {
            table.put(&number.to_be_bytes(), &[round as u8; VALUE]).unwrap();
        }
        largest = largest.max(store.statistics().log_bytes);
    }
    // Without an account of it all that was written stands there before a merge ends, which is 100
    // times what lives. At full throttle the log is 2.5 times as large as it may be, some 50 MB
    // with the 8 MiB that are usual, and a slow device adds a merge's time at 4 MB/s.
    let live = 500 * VALUE as u64;
    assert!(largest < 40 * live, "{} times what lives", largest / live);
    for number in 0..500_u32 {
        assert_eq!(table.get(&number.to_be_bytes()).unwrap(), Some(vec![99; VALUE]));
    }
}

/// Turns a bit of a file, as another hand would.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] ^= 4;
    file.write_all_at(&byte, at).unwrap();
}

fn logs_of(home: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(home.join("log")).unwrap();
    names.map(|entry| entry.unwrap().path()).collect()
}

/// A level that cannot be read must not be left out: what it hides of older ones would show.
#[test]
fn a_range_is_over_after_an_error() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    let table = store.table("t").unwrap();
    let key = |number: u32| format!("key {number:06}").into_bytes();
    (0..20_000).for_each(|number| table.put(&key(number), b"old").unwrap());
    store.flush().unwrap();
    for number in 9_000..9_200 {
        match number % 2 {
            0 => table.put(&key(number), b"a newer value of this key").unwrap(),
            _ => table.delete(&key(number)).unwrap(),
        }
    }
    store.flush().unwrap();
    let needle = b"key 009100a newer value";
    let found = logs_of(home.path()).into_iter().find_map(|path| {
        let content = std::fs::read(&path).unwrap();
        let at = content.windows(needle.len()).position(|window| window == needle)?;
        Some((path, at as u64))
    });
    let (path, at) = found.unwrap();
    flip(&path, at + 15);
    for backwards in [false, true] {
        let mut range = table.range(..);
        let mut step = || match backwards {
            false => {
                range.next().map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())))
            }
            true => range
                .next_back()
                .map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec()))),
        };
        let mut seen = 0;
        let error = loop {
            match step() {
                Ok(Some((key, value))) => {
                    let number: u32 = std::str::from_utf8(&key[4..]).unwrap().parse().unwrap();
                    let is_new = (9_000..9_200).contains(&number);
                    assert_eq!(value == b"old", !is_new, "{number}");
                    seen += 1;
                }
                Ok(None) => panic!("the damage is not seen"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(seen >= 9_000, "{seen}");
        (0..3).for_each(|_| assert_eq!(step().unwrap(), None));
    }
    let pairs = table.range(..).pairs().filter(Result::is_err).count();
    assert_eq!(pairs, 1);
}

/// Tables of two stores may have the same number.
#[test]
fn a_table_of_another_store_is_refused() {
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let stores = homes.each_ref().map(|home| Store::open(home.path(), tiny()).unwrap());
    let tables = stores.each_ref().map(|store| store.table("t").unwrap());
    tables.iter().for_each(|table| table.put(b"k", b"v").unwrap());
    let snapshot = stores[0].snapshot();
    assert_eq!(snapshot.get(&tables[0], b"k").unwrap().unwrap(), b"v");
    let refused = snapshot.get(&tables[1], b"k");
    assert!(matches!(refused, Err(Error::NoTable { .. })), "{refused:?}");
    let mut range = snapshot.range(&tables[1], ..);
    assert!(matches!(range.next(), Err(Error::NoTable { .. })));
    assert_eq!(range.next_back().unwrap(), None);
    let mut batch = Batch::new();
    batch.put(&tables[1], b"k", b"w");
    assert!(matches!(stores[0].write(&batch), Err(Error::NoTable { .. })));
}

#[test]
fn settling_takes_any_limit() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    store.table("t").unwrap().put(b"k", b"v").unwrap();
    assert!(store.settle(Duration::MAX).unwrap());
}

/// What an opening has read is read again.
#[test]
fn scrub_reads_the_manifest_and_the_headers_of_segments() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    let manifest = home.path().join("MANIFEST");
    let end = std::fs::metadata(&manifest).unwrap().len();
    let manifest = [0, 9, 40, end - 1].map(|at| (manifest.clone(), at));
    let headers = logs_of(home.path()).into_iter().map(|path| (path, 10));
    for (path, at) in manifest.into_iter().chain(headers) {
        store.scrub().unwrap();
        flip(&path, at);
        match store.scrub() {
            Err(Error::Damaged { path: named, .. }) => assert_eq!(named, path),
            other => panic!("{}, byte {at}: {other:?}", path.display()),
        }
        flip(&path, at);
    }
    store.scrub().unwrap();
}

/// A checkpoint whose making ended half-way, in a kill or on another file system, is told from
/// anything else, and made again in its place.
#[test]
fn an_unfinished_checkpoint_is_told_and_made_again() {
    let home = tempfile::tempdir().unwrap();
    let (at, copy) = (home.path().join("store"), home.path().join("copy"));
    std::fs::create_dir_all(copy.join("log")).unwrap();
    for left in ["UNFINISHED", "staging", "MANIFEST.new", "log/00000001.log"] {
        std::fs::write(copy.join(left), b"left").unwrap();
    }
    let refused = Store::open(&copy, tiny()).err().unwrap();
    assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    let store = Store::open(&at, tiny()).unwrap();
    store.table("t").unwrap().put(b"k", b"v").unwrap();
    store.checkpoint(&copy).unwrap();
    let copied = Store::open(&copy, tiny()).unwrap();
    assert_eq!(copied.table("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
    let refused = store.checkpoint(&copy).err().unwrap();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
}

/// A device that is a store's alone: its file system has a folder there.
#[test]
fn a_new_file_system_is_an_empty_directory() {
    let home = tempfile::tempdir().unwrap();
    let (at, copy) = (home.path().join("store"), home.path().join("copy"));
    for dir in [&at, &copy] {
        std::fs::create_dir_all(dir.join("lost+found")).unwrap();
    }
    let store = Store::open(&at, tiny()).unwrap();
    store.table("t").unwrap().put(b"k", b"v").unwrap();
    store.checkpoint(&copy).unwrap();
    drop(store);
    for dir in [&at, &copy] {
        let store = Store::open(dir, tiny()).unwrap();
        assert_eq!(store.table("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
    }
}

#[test]
fn a_manifest_that_is_gone_is_damage() {
    let home = tempfile::tempdir().unwrap();
    Store::open(home.path(), tiny()).unwrap().table("t").unwrap().put(b"k", b"v").unwrap();
    let (manifest, aside) = (home.path().join("MANIFEST"), home.path().with_extension("aside"));
    std::fs::rename(&manifest, &aside).unwrap();
    match Store::open(home.path(), tiny()).err() {
        Some(Error::Damaged { path, .. }) => assert_eq!(path, manifest),
        other => panic!("{other:?}"),
    }
    std::fs::rename(&aside, &manifest).unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    assert_eq!(store.table("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
}

/// The real file system, on which a sync of the manifest waits until two have come to `gate`.
struct Gated {
    gate: Arc<Barrier>,
    is_closed: Arc<AtomicBool>,
}

impl Fs for Gated {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Os.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Os.list(path)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>> {
        let file = Os.open(path, mode)?;
        if path.file_stem().is_none_or(|stem| stem != "MANIFEST") {
            return Ok(file);
        }
        let (gate, is_closed) = (Arc::clone(&self.gate), Arc::clone(&self.is_closed));
        Ok(Arc::new(GatedFile { file, gate, is_closed }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Os.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Os.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Os.hard_link(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        Os.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Os.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Os.lock_shared(path)
    }
}

struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Barrier>,
    is_closed: Arc<AtomicBool>,
}

impl File for GatedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }

    fn sync(&self) -> io::Result<()> {
        if self.is_closed.swap(false, Ordering::SeqCst) {
            self.gate.wait();
            self.gate.wait();
        }
        self.file.sync()
    }

    fn start_writeback(&self, part: std::ops::Range<u64>) {
        self.file.start_writeback(part);
    }

    fn map(&self, len: usize, access: Access) -> io::Result<Map> {
        self.file.map(len, access)
    }
}

/// Nobody waits for the device while a table is made but who makes it.
#[test]
fn writers_go_on_while_a_table_is_made() {
    let home = tempfile::tempdir().unwrap();
    let (gate, is_closed) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let fs = Gated { gate: Arc::clone(&gate), is_closed: Arc::clone(&is_closed) };
    let options = Options { background: true, ..tiny() };
    let store = Store::open_on(Arc::new(fs), home.path(), options).unwrap();
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
        assert_eq!(seen.expect("the put waits for the table").unwrap(), b"meanwhile");
        new.put(b"k", b"new").unwrap();
        assert_eq!(new.get(b"k").unwrap().unwrap(), b"new");
    });
    store.flush().unwrap();
    assert_eq!(store.table("new").unwrap().get(b"k").unwrap().unwrap(), b"new");
}
