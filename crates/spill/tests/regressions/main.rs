//! Regression tests.
#![allow(clippy::unwrap_used)]

mod blocking;
mod damage;
mod hook_fs;
mod io_errors;
mod shutdown;
mod staging;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spill::{Batch, Error, Options, Store};

fn tiny() -> Options {
    Options { memory: 32 << 10, segment: 64 << 10, background: false, ..Options::default() }
}

/// For tests that open a store many times, each with syncs.
fn in_memory() -> tempfile::TempDir {
    match std::path::Path::new("/dev/shm") {
        memory if memory.exists() => tempfile::tempdir_in(memory).unwrap(),
        _ => tempfile::tempdir().unwrap(),
    }
}

/// Copies the files of a directory as a kill would leave them.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, to).unwrap();
        }
    }
}

/// The last key of a leaf ends with zeros, and the next leaf's first key continues it: the bound
/// between them must be above the former.
#[test]
fn key_with_trailing_zeros_at_leaf_end_is_found() {
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

/// Options may change between openings: records of large segments are collected into small ones.
#[test]
fn garbage_collection_works_after_segment_size_shrinks() {
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

/// The last of several writes of a key in one batch wins, and no other is ever visible.
#[test]
fn last_write_of_a_key_in_a_batch_wins() {
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

/// The staging file of a store created with fewer slots.
#[test]
fn staging_file_of_another_length_is_accepted() {
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

/// No level knows what a memtable replaced within itself. Fast updates of few records must not fill
/// the device before a compaction finds that most of the log is dead.
#[test]
fn updates_of_few_keys_keep_the_log_small() {
    const VALUE: usize = 4 << 10;
    let home = tempfile::tempdir().unwrap();
    let options = Options { segment: 1 << 20, ..Options::default() };
    let store = Store::open(home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    let mut max_value_len = 0;
    for round in 0..100_u32 {
        for number in 0..500_u32 {
            table.put(&number.to_be_bytes(), &[round as u8; VALUE]).unwrap();
        }
        max_value_len = max_value_len.max(store.statistics().log_bytes);
    }
    // Without that estimate the log would reach 100 times the live data before a compaction ends.
    // At full throttle it is 2.5 times as large as allowed, some 50 MB with the usual 8 MiB; a slow
    // device adds a compaction's time at 4 MB/s.
    let live = 500 * VALUE as u64;
    assert!(max_value_len < 40 * live, "{} times the live data", max_value_len / live);
    for number in 0..500_u32 {
        assert_eq!(table.get(&number.to_be_bytes()).unwrap(), Some(vec![99; VALUE]));
    }
}

/// Tables of two stores may have the same number.
#[test]
fn table_of_another_store_is_rejected() {
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
fn settle_accepts_any_limit() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    store.table("t").unwrap().put(b"k", b"v").unwrap();
    assert!(store.settle(Duration::MAX).unwrap());
}

/// An incomplete checkpoint is recognised, and neither it nor what it may have become is touched.
#[test]
fn unfinished_checkpoint_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (at, copy) = (home.path().join("store"), home.path().join("copy"));
    let store = Store::open(&at, tiny()).unwrap();
    store.table("t").unwrap().put(b"k", b"v").unwrap();
    store.checkpoint(&copy).unwrap();
    let refused = store.checkpoint(&copy).err().unwrap();
    assert!(matches!(refused, Error::NotEmpty { .. }), "{refused}");
    // As if interrupted before the last step: it is complete.
    std::fs::write(copy.join("UNFINISHED"), b"").unwrap();
    let copied = Store::open(&copy, tiny()).unwrap();
    copied.table("t").unwrap().put(b"mine", b"w").unwrap();
    for store in [&store, &copied] {
        let refused = store.checkpoint(&copy).err().unwrap();
        assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    }
    drop(copied);
    let copied = Store::open(&copy, tiny()).unwrap();
    assert_eq!(copied.table("t").unwrap().get(b"mine").unwrap().unwrap(), b"w");
    drop(copied);
    std::fs::remove_file(copy.join("MANIFEST")).unwrap();
    let refused = Store::open(&copy, tiny()).err().unwrap();
    assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
}

/// A device of its own: its file system creates a directory there.
#[test]
fn lost_and_found_counts_as_an_empty_directory() {
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

/// What another program left under names that a store uses too.
#[test]
fn foreign_files_with_store_names_are_left_alone() {
    let files =
        [("staging", "notes"), ("index/00000001.idx", "an index"), ("log", "of somebody's")];
    for (name, content) in files {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("index")).unwrap();
        std::fs::write(home.path().join(name), content).unwrap();
        let refused = Store::open(home.path(), tiny()).err();
        assert!(matches!(refused, Some(Error::Foreign { .. })), "{name}: {refused:?}");
        assert_eq!(std::fs::read_to_string(home.path().join(name)).unwrap(), content);
    }
}

/// Stands for a hundred million segments: the next number has one digit more.
#[test]
fn nine_digit_segment_numbers_work() {
    let home = tempfile::tempdir().unwrap();
    let put = |key: &[u8]| {
        let store = Store::open(home.path(), tiny()).unwrap();
        store.table("t").unwrap().put(key, b"value").unwrap();
    };
    put(b"one");
    std::fs::write(home.path().join("log/99999999.log"), b"").unwrap();
    put(b"other");
    assert!(home.path().join("log/100000000.log").exists());
    let store = Store::open(home.path(), tiny()).unwrap();
    for key in [&b"one"[..], b"other"] {
        assert_eq!(store.table("t").unwrap().get(key).unwrap().unwrap(), b"value");
    }
    drop(store);
    // Beyond the highest number: not ours.
    std::fs::write(home.path().join("log/300000000.log"), b"").unwrap();
    put(b"third");
}

/// A copied store may have holes, which a full device cannot fill.
#[test]
fn staging_file_has_no_holes() {
    use std::os::unix::fs::MetadataExt;
    let home = tempfile::tempdir().unwrap();
    Store::open(home.path(), tiny()).unwrap().table("t").unwrap().put(b"k", b"v").unwrap();
    let path = home.path().join("staging");
    let len = std::fs::metadata(&path).unwrap().len();
    std::fs::remove_file(&path).unwrap();
    std::fs::File::create(&path).unwrap().set_len(len).unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    assert!(std::fs::metadata(&path).unwrap().blocks() * 512 >= len);
    assert_eq!(store.table("t").unwrap().get(b"k").unwrap().unwrap(), b"v");
}

/// Each session leaves a nearly empty segment, and each segment is an open file.
#[test]
fn short_sessions_do_not_accumulate_segments() {
    const SESSIONS: u32 = 150;
    for background in [false, true] {
        let home = in_memory();
        let options = Options { background, ..tiny() };
        let mut most = 0;
        for session in 0..SESSIONS {
            let store = Store::open(home.path(), options.clone()).unwrap();
            store.table("t").unwrap().put(&session.to_be_bytes(), b"value").unwrap();
            drop(store);
            most = most.max(std::fs::read_dir(home.path().join("log")).unwrap().count());
        }
        assert!(most < 80, "{most}");
        let left = std::fs::read_dir(home.path().join("log")).unwrap().count();
        assert!(left < 64, "{left}");
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        for session in 0..SESSIONS {
            assert_eq!(table.get(&session.to_be_bytes()).unwrap().unwrap(), b"value");
        }
        store.scrub().unwrap();
    }
}

/// One of several concurrent openers creates the store, and the others get an error.
#[test]
fn concurrent_creation_succeeds_once() {
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = home.path();
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_micros(700) * thread);
                    let answer = Store::open(path, tiny());
                    let is_right = matches!(answer, Ok(_) | Err(Error::Locked { .. }));
                    assert!(is_right, "{:?}", answer.err());
                });
            }
        });
    }
}

/// A segment that was full by an earlier segment size is not small.
#[test]
fn log_is_unchanged_by_a_larger_segment_size() {
    let home = tempfile::tempdir().unwrap();
    {
        let store = Store::open(home.path(), tiny()).unwrap();
        let table = store.table("t").unwrap();
        (0..6000_u32).for_each(|key| table.put(&key.to_be_bytes(), &[7; 1000]).unwrap());
        store.flush().unwrap();
    }
    let store = Store::open(home.path(), Options { segment: 16 << 20, ..tiny() }).unwrap();
    assert!(store.settle(Duration::from_secs(10)).unwrap());
    assert_eq!(store.statistics().copied_bytes, 0);
}

/// A range that outlives its store and directory removes its own files, and none of a store created
/// there since.
#[test]
fn dropped_range_removes_no_foreign_files() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let fill = |store: &Store, round: u32| {
        let table = store.table("t").unwrap();
        (0..300_u32).for_each(|key| table.put(&key.to_be_bytes(), &[round as u8; 1000]).unwrap());
        table
    };
    let store = Store::open(&path, tiny()).unwrap();
    let range = fill(&store, 1).range(..);
    (2..5).for_each(|round| drop(fill(&store, round)));
    store.settle(Duration::from_secs(5)).unwrap();
    drop(store);
    std::fs::remove_dir_all(&path).unwrap();
    let store = Store::open(&path, tiny()).unwrap();
    fill(&store, 100);
    store.flush().unwrap();
    drop(store);
    drop(range);
    let store = Store::open(&path, tiny()).unwrap();
    store.scrub().unwrap();
    let pairs: Vec<_> = store.table("t").unwrap().range(..).pairs().collect();
    assert_eq!(pairs.len(), 300);
    assert!(pairs.into_iter().all(|pair| pair.unwrap().1 == [100; 1000]));
}

/// A store is the directory that was opened: it stays in it after a rename, and leaves another
/// store alone that gets the name.
#[test]
fn renamed_directory_keeps_its_open_store() {
    let home = tempfile::tempdir().unwrap();
    let (path, moved) = (home.path().join("store"), home.path().join("moved"));
    let fill = |store: &Store, round: u8| {
        let table = store.table("t").unwrap();
        (0..300_u32).for_each(|key| table.put(&key.to_be_bytes(), &[round; 1000]).unwrap());
        store.flush().unwrap();
    };
    let first = Store::open(&path, tiny()).unwrap();
    fill(&first, 1);
    std::fs::rename(&path, &moved).unwrap();
    let second = Store::open(&path, tiny()).unwrap();
    (2..10).for_each(|round| {
        fill(&first, round);
        fill(&second, 100 + round);
    });
    first.checkpoint(home.path().join("checkpoint")).unwrap();
    first.settle(Duration::from_secs(5)).unwrap();
    assert!(first.statistics().collected_segments > 0);
    drop((first, second));
    for (name, round) in [("moved", 9), ("checkpoint", 9), ("store", 109)] {
        let store = Store::open(home.path().join(name), tiny()).unwrap();
        store.scrub().unwrap();
        let pairs: Vec<_> = store.table("t").unwrap().range(..).pairs().collect();
        assert_eq!(pairs.len(), 300, "{name}");
        assert!(pairs.into_iter().all(|pair| pair.unwrap().1 == [round; 1000]), "{name}");
    }
}

/// Nobody waits for a writer of a pipe with the name of our file.
#[test]
fn pipe_in_place_of_a_file_is_rejected() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let store = Store::open(&path, tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    store.flush().unwrap();
    drop(store);
    let first = |folder: &str| std::fs::read_dir(path.join(folder)).unwrap().next().unwrap();
    let files = [
        path.join("MANIFEST"),
        path.join("staging"),
        first("log").unwrap().path(),
        first("index").unwrap().path(),
    ];
    for file in files {
        let aside = home.path().join("aside");
        std::fs::rename(&file, &aside).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        for read_only in [false, true] {
            let refused = Store::open(&path, Options { read_only, ..tiny() }).err().unwrap();
            assert!(refused.to_string().ends_with("not a regular file"), "{refused}");
        }
        std::fs::rename(&aside, &file).unwrap();
    }
    let store = Store::open(&path, tiny()).unwrap();
    assert_eq!(store.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
}

/// The lock is on the directory itself: removing files does not let a second opener in, and a copy
/// can be read anywhere.
#[test]
fn directory_lock_survives_removal_of_its_files() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let store = Store::open(&path, tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    let known = ["MANIFEST", "staging", "log", "index"];
    for entry in std::fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        if !known.iter().any(|known| entry.file_name() == *known) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let refused = Store::open(&path, tiny()).err().unwrap();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    drop(store);
    let reader = Store::open(&path, Options { read_only: true, ..tiny() }).unwrap();
    assert_eq!(reader.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), known.len(), "a lock is no file");
}

/// The error says what is in the way.
#[test]
fn non_directory_path_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (file, link) = (home.path().join("file"), home.path().join("link"));
    std::fs::write(&file, b"").unwrap();
    std::os::unix::fs::symlink(home.path().join("nowhere"), &link).unwrap();
    let store = Store::open(home.path().join("store"), tiny()).unwrap();
    for path in [file.clone(), file.join("below"), link] {
        let refused = [Store::open(&path, tiny()).map(drop), store.checkpoint(&path)];
        for refused in refused {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.ends_with("not a directory"), "{refused}");
        }
    }
    let manifest = home.path().join("manifest");
    std::fs::create_dir(&manifest).unwrap();
    std::fs::write(manifest.join("MANIFEST"), b"of something else").unwrap();
    let refused = Store::open(&manifest, tiny()).err().unwrap();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    assert_eq!(std::fs::read_dir(&manifest).unwrap().count(), 1);
}

/// A checkpoint inside its store's directory may be removed and replaced.
#[test]
fn checkpoints_inside_the_store_directory_work() {
    let home = tempfile::tempdir().unwrap();
    let (path, copy) = (home.path().join("store"), home.path().join("store/copies/one"));
    let store = Store::open(&path, tiny()).unwrap();
    let table = store.table("t").unwrap();
    for round in 0..3_u8 {
        table.put(b"key", &[round]).unwrap();
        store.flush().unwrap();
        store.checkpoint(&copy).unwrap();
        let copied = Store::open(&copy, tiny()).unwrap();
        assert_eq!(copied.table("t").unwrap().get(b"key").unwrap().unwrap(), [round]);
        drop(copied);
        std::fs::remove_dir_all(&copy).unwrap();
    }
}

/// A checkpoint path is resolved when the checkpoint is made, even if the store once had that path.
#[test]
fn checkpoint_resolves_relative_paths() {
    let home = tempfile::tempdir().unwrap();
    let (path, moved) = (home.path().join("store"), home.path().join("moved"));
    let store = Store::open(&path, tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    store.flush().unwrap();
    std::fs::rename(&path, &moved).unwrap();
    for copy in [path.clone(), path.join("copy")] {
        store.checkpoint(&copy).unwrap();
        let copied = Store::open(&copy, tiny()).unwrap();
        assert_eq!(copied.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
    }
    assert!(!moved.join("copy").exists());
}

/// Opening waits for the holder of a file lease, such as a file server.
#[test]
fn opening_waits_for_a_file_lease() {
    const FILE: &str = "SPILL_TEST_LEASE";
    if let Some(file) = std::env::var_os(FILE) {
        let file = std::fs::File::open(file).unwrap();
        // SAFETY: calls with numbers only. A broken lease is announced by a signal that would end
        // the process.
        let taken = unsafe {
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_SETLEASE, libc::F_RDLCK)
        };
        println!("lease: {taken}");
        std::thread::sleep(Duration::from_millis(500));
        return;
    }
    let home = in_memory();
    drop(Store::open(home.path(), tiny()).unwrap());
    let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "opening_waits_for_a_file_lease", "--nocapture"])
        .env(FILE, home.path().join("MANIFEST"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(holder.stdout.take().unwrap());
    let mut told = std::io::BufRead::lines(lines).map(Result::unwrap);
    assert!(told.any(|line| line.contains("lease: 0")));
    let opened = Store::open(home.path(), tiny()).map(drop);
    holder.wait().unwrap();
    opened.unwrap();
}
