//! External changes to a file are reported, and affect nothing else.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spill::fs::{Fs, Os};
use spill::{ColdReads, Error, Options, Store, Table};

use crate::hook_fs::{Call, hook_fs};
use crate::{copy, in_memory, tiny};

/// Flips a bit of a file.
fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] ^= 4;
    file.write_all_at(&byte, at).unwrap();
}

fn log_files(home: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(home.join("log")).unwrap();
    names.map(|entry| entry.unwrap().path()).collect()
}

/// Flips a bit in the last byte of the keys in the log. All have one length, and none occurs twice.
fn flip_keys(home: &Path, keys: &HashSet<Vec<u8>>) {
    let len = keys.iter().next().unwrap().len();
    let mut flipped = 0;
    for path in log_files(home) {
        let content = std::fs::read(&path).unwrap();
        for (at, _) in content.windows(len).enumerate().filter(|(_, part)| keys.contains(*part)) {
            flip(&path, (at + len - 1) as u64);
            flipped += 1;
        }
    }
    assert_eq!(flipped, keys.len());
}

/// Keys that leaves do not distinguish: a compaction reads them from the log.
fn long_key(number: u32) -> Vec<u8> {
    [&[b'p'; 150][..], &number.to_be_bytes()].concat()
}

/// Evenly distributed keys.
fn even_key(number: u64) -> Vec<u8> {
    format!("{:016x}-suffix", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

fn is_damaged<T>(found: &spill::Result<T>) -> bool {
    matches!(found, Err(Error::Damaged { .. }))
}

fn filled_store(home: &Path, options: &Options, keys: impl Iterator<Item = Vec<u8>>) {
    let store = Store::open(home, options.clone()).unwrap();
    let table = store.table("t").unwrap();
    keys.for_each(|key| table.put(&key, b"value").unwrap());
    store.flush().unwrap();
}

fn open(home: &Path, options: &Options) -> (Store, Table) {
    let store = Store::open(home, options.clone()).unwrap();
    let table = store.table("t").unwrap();
    (store, table)
}

/// A compaction that took a damaged key for a greater one would stop looking for the keys behind
/// it.
#[test]
fn damaged_key_does_not_resurrect_another() {
    let home = tempfile::tempdir().unwrap();
    filled_store(home.path(), &tiny(), (0..100).map(long_key));
    flip_keys(home.path(), &HashSet::from([long_key(5)]));
    let (store, table) = open(home.path(), &tiny());
    table.delete(&long_key(50)).unwrap();
    table.put(&long_key(60), b"new").unwrap();
    assert!(is_damaged(&store.flush()));
    assert_eq!(table.get(&long_key(50)).unwrap(), None);
    assert_eq!(table.get(&long_key(60)).unwrap().unwrap(), b"new");
    assert!(is_damaged(&table.get(&long_key(5))));
}

/// Bounds of leaves derive from keys.
#[test]
fn damaged_keys_at_range_bounds_hide_no_other() {
    let home = tempfile::tempdir().unwrap();
    let is_flipped = |number: u32| number % 40 == 20;
    filled_store(home.path(), &tiny(), (0..2000).map(|number| long_key(2 * number)));
    let flipped = (0..2000).filter(|&number| is_flipped(number));
    flip_keys(home.path(), &flipped.map(|number| long_key(2 * number)).collect());
    let (store, table) = open(home.path(), &tiny());
    let mut refused = 0;
    for number in (0..2000).step_by(7) {
        refused += usize::from(table.put(&long_key(2 * number + 1), b"value").is_err());
    }
    assert!(is_damaged(&store.flush()) && refused == 0, "{refused}");
    for number in 0..2000 {
        let found = table.get(&long_key(2 * number));
        match is_flipped(number) {
            true => assert!(is_damaged(&found), "{number}: {found:?}"),
            // Reading it may inspect a damaged key, which could be the same one.
            false => assert!(matches!(found, Ok(Some(_))) || is_damaged(&found), "{number}"),
        }
    }
}

/// A filter built from the damaged key would exclude the real one.
#[test]
fn damaged_key_is_reported_despite_a_filter() {
    const KEYS: u64 = 12_000;
    let home = tempfile::tempdir().unwrap();
    let options = Options {
        bloom_bits: 10,
        memory: 64 << 10,
        growth: 2,
        space_amplification: 100.0,
        ..tiny()
    };
    filled_store(home.path(), &options, (0..KEYS).map(even_key));
    let damaged: HashSet<Vec<u8>> = (KEYS - 3000..KEYS).step_by(20).map(even_key).collect();
    flip_keys(home.path(), &damaged);
    let (store, table) = open(home.path(), &options);
    for number in KEYS..3 * KEYS {
        if table.put(&even_key(number), b"value").is_err() {
            break;
        }
        if number % 500 == 0 {
            assert!(damaged.iter().all(|key| is_damaged(&table.get(key))), "{number}");
        }
    }
    assert!(store.statistics().filter_bytes > 0);
    assert!(damaged.iter().all(|key| is_damaged(&table.get(key))));
}

/// An unreadable tombstone must not make the collector think that the record is live.
#[test]
fn damaged_tombstone_still_deletes() {
    const KEYS: u64 = 3000;
    let home = tempfile::tempdir().unwrap();
    let options = Options { memory: 16 << 10, ..tiny() };
    {
        let (store, table) = open(home.path(), &options);
        (0..KEYS + 40).for_each(|number| table.put(&even_key(number), &[b'v'; 100]).unwrap());
        store.flush().unwrap();
        (0..20).for_each(|number| table.delete(&even_key(number)).unwrap());
        store.flush().unwrap();
        assert_eq!(store.statistics().levels, 2);
    }
    for path in log_files(home.path()) {
        let content = std::fs::read(&path).unwrap();
        for number in 0..20 {
            let key = even_key(number);
            let found = content.windows(key.len()).enumerate().filter(|(_, part)| *part == key);
            for end in found.map(|(at, _)| at + key.len()) {
                if content.get(end) != Some(&b'v') {
                    flip(&path, end as u64 - 1);
                }
            }
        }
    }
    let (_store, table) = open(home.path(), &options);
    let all_are_told = || (0..20).all(|number| is_damaged(&table.get(&even_key(number))));
    assert!(all_are_told());
    for number in 0..20_000_u64 {
        let key = even_key(20 + number.wrapping_mul(7919) % (KEYS - 20));
        if table.put(&key, &[b'v'; 100]).is_err() {
            break;
        }
    }
    assert!(all_are_told());
}

/// Everything else stays readable and writable, and the damage is still reported.
#[test]
fn damaged_value_can_be_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let path = {
        filled_store(home.path(), &tiny(), (0..100).map(long_key));
        log_files(home.path()).into_iter().next().unwrap()
    };
    let needle = [&long_key(7)[..], b"value"].concat();
    let content = std::fs::read(&path).unwrap();
    let at = content.windows(needle.len()).position(|part| part == needle).unwrap();
    flip(&path, (at + needle.len() - 1) as u64);
    let (store, table) = open(home.path(), &tiny());
    assert!(is_damaged(&table.get(&long_key(7))));
    table.put(&long_key(7), b"new").unwrap();
    store.flush().unwrap();
    assert_eq!(table.get(&long_key(7)).unwrap().unwrap(), b"new");
}

/// The segment with most garbage would be the victim each time.
#[test]
fn uncollectable_segment_is_skipped() {
    let home = tempfile::tempdir().unwrap();
    let options = Options { segment: 256 << 10, memory: 64 << 10, ..tiny() };
    let mut random = 1_u64;
    let mut key = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((random >> 33) as u32 % 2000).to_be_bytes()
    };
    {
        let (store, table) = open(home.path(), &options);
        (0..2000_u32).for_each(|number| table.put(&number.to_be_bytes(), &[1; 1000]).unwrap());
        store.flush().unwrap();
    }
    let mut logs = log_files(home.path());
    logs.sort();
    flip(&logs[2], 100_000);
    let (store, table) = open(home.path(), &options);
    for _ in 0..20_000 {
        table.put(&key(), &[2; 1000]).unwrap();
    }
    let found = store.statistics();
    assert_eq!(found.stuck_segments, 1);
    assert!(found.log_bytes < 2000 * 1000 * 3, "{found:?}");
    assert!(is_damaged(&store.scrub()));
}

/// The damaged segment would be gathered first, since it alone has garbage. The others must be
/// gathered all the same, by an opening without further operations.
#[test]
fn damaged_small_segment_does_not_stop_gathering() {
    let home = in_memory();
    let session = |number: u32| {
        let (_store, table) = open(home.path(), &tiny());
        let key = if number == 20 { 10 } else { number };
        table.put(&key.to_be_bytes(), b"value").unwrap();
    };
    (0..55).for_each(session);
    open(home.path(), &tiny()).0.flush().unwrap();
    let needle = [&10_u32.to_be_bytes()[..], b"value"].concat();
    let mut logs = log_files(home.path());
    logs.sort();
    let damaged = logs.iter().find(|path| {
        let content = std::fs::read(path).unwrap();
        content.windows(needle.len()).any(|part| part == needle)
    });
    // In the value, behind the file header, the record header and the key.
    flip(damaged.unwrap(), 64 + 18 + 4 + 1);
    let numbers = (55..).take_while(|_| log_files(home.path()).len() <= 66);
    numbers.for_each(session);
    drop(open(home.path(), &tiny()));
    let left = log_files(home.path()).len();
    assert!(left < 40, "{left}");
}

/// A damaged value is reported where it is read: not after it was replaced, and not beside a range.
#[test]
fn damaged_value_is_reported_by_ranges_containing_it() {
    check_ranges_report_value(b"value");
    // A long value is read only when it is returned.
    check_ranges_report_value(&[b'v'; 20_000]);
}

fn check_ranges_report_value(value: &[u8]) {
    let home = tempfile::tempdir().unwrap();
    let keys: Vec<Vec<u8>> = (0..5).map(long_key).collect();
    {
        let (store, table) = open(home.path(), &tiny());
        keys.iter().for_each(|key| table.put(key, value).unwrap());
        store.flush().unwrap();
    }
    let needle = [&keys[2][..], value].concat();
    let found = log_files(home.path()).into_iter().find_map(|path| {
        let content = std::fs::read(&path).unwrap();
        let at = content.windows(needle.len()).position(|part| part == needle)?;
        Some((path, at))
    });
    let (path, at) = found.unwrap();
    flip(&path, (at + needle.len() - 1) as u64);
    let (_store, table) = open(home.path(), &tiny());
    let walk = |low: usize, high: usize| {
        let mut range = table.range(&keys[low][..]..=&keys[high][..]);
        let forward = std::iter::from_fn(|| match range.next() {
            Ok(pair) => pair.map(|(key, _)| Some(key.to_vec())),
            Err(_) => Some(None),
        });
        let forward: Vec<_> = forward.collect();
        let mut range = table.range(&keys[low][..]..=&keys[high][..]);
        let backward = std::iter::from_fn(|| match range.next_back() {
            Ok(pair) => pair.map(|(key, _)| Some(key.to_vec())),
            Err(_) => Some(None),
        });
        (forward, backward.collect::<Vec<_>>())
    };
    let key = |number: usize| Some(keys[number].clone());
    assert_eq!(walk(0, 1), (vec![key(0), key(1)], vec![key(1), key(0)]));
    assert_eq!(walk(3, 4), (vec![key(3), key(4)], vec![key(4), key(3)]));
    assert_eq!(walk(1, 3), (vec![key(1), None], vec![key(3), None]));
    table.put(&keys[2], b"new").unwrap();
    assert_eq!(walk(1, 3), (vec![key(1), key(2), key(3)], vec![key(3), key(2), key(1)]));
    table.delete(&keys[2]).unwrap();
    assert_eq!(walk(1, 3), (vec![key(1), key(3)], vec![key(3), key(1)]));
}

/// Where all heads tie, a range inspects some keys outside of it.
#[test]
fn damaged_keys_are_reported_by_ranges_meeting_them() {
    let key = |number: u32| format!("{}{number:05}", "p".repeat(200)).into_bytes();
    for damaged in [100..101, 40..160, 0..120, 80..200] {
        let home = tempfile::tempdir().unwrap();
        filled_store(home.path(), &tiny(), (0..200).map(key));
        flip_keys(home.path(), &damaged.clone().map(key).collect());
        let (_store, table) = open(home.path(), &tiny());
        for number in 0..199 {
            let (low, high) = (key(number), key(number + 1));
            let pairs = || table.range(&low[..]..=&high[..]).pairs();
            let ways: [spill::Result<Vec<_>>; 2] = [pairs().collect(), pairs().rev().collect()];
            for found in ways {
                if damaged.contains(&number) || damaged.contains(&(number + 1)) {
                    assert!(is_damaged(&found), "{damaged:?}, {number}: {found:?}");
                } else if number + 4 < damaged.start || number >= damaged.end + 4 {
                    // Nearby keys may be inspected without need.
                    assert_eq!(found.unwrap().len(), 2, "{damaged:?}, {number}");
                }
            }
        }
        let all: spill::Result<Vec<_>> = table.range(..).pairs().collect();
        assert!(is_damaged(&all), "{damaged:?}: {all:?}");
    }
}

#[test]
fn truncated_or_extended_manifest_is_reported() {
    let home = tempfile::tempdir().unwrap();
    filled_store(home.path(), &tiny(), (0..10).map(long_key));
    let path = home.path().join("MANIFEST");
    let len = std::fs::metadata(&path).unwrap().len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 43).unwrap();
    assert!(is_damaged(&Store::open(home.path(), tiny())));
    file.set_len(len).unwrap();
    let (_store, table) = open(home.path(), &tiny());
    assert_eq!(table.get(&long_key(9)).unwrap().unwrap(), b"value");
}

/// An unreadable level must not be skipped: the older versions it hides would appear.
#[test]
fn range_ends_after_an_error() {
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
    let found = log_files(home.path()).into_iter().find_map(|path| {
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

/// What opening has read is read again.
#[test]
fn scrub_checks_manifest_and_segment_headers() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    let manifest = home.path().join("MANIFEST");
    let end = std::fs::metadata(&manifest).unwrap().len();
    let manifest = [0, 9, 40, end - 1].map(|at| (manifest.clone(), at));
    let headers = log_files(home.path()).into_iter().map(|path| (path, 10));
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

#[test]
fn missing_manifest_is_reported_as_damage() {
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

/// A device that cannot read two blocks of the first segment.
fn fs_with_bad_sector() -> Arc<dyn Fs> {
    fs_with_bad_sector_in("00000001.log")
}

fn fs_with_bad_sector_in(segment: &'static str) -> Arc<dyn Fs> {
    hook_fs(segment, |call| match call {
        Call::Read(from, to) if from < 12_288 && to > 8_192 => Err(rustix::io::Errno::IO.into()),
        _ => Ok(()),
    })
}

/// An unreadable value only prevents its reading, like a damaged one, and can be replaced.
#[test]
fn unreadable_value_can_be_overwritten() {
    for cold_reads in [ColdReads::Page, ColdReads::Around] {
        let home = in_memory();
        let options = Options { segment: 1 << 20, memory: 16 << 10, cold_reads, ..tiny() };
        filled_store_with(home.path(), &options, 10, 20_000);
        let store = Store::open_on(fs_with_bad_sector(), home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        assert!(matches!(table.get(&0_u32.to_be_bytes()), Err(Error::Io { .. })));
        for key in 1..10_u32 {
            assert_eq!(table.get(&key.to_be_bytes()).unwrap().unwrap(), [1; 20_000]);
        }
        table.put(&0_u32.to_be_bytes(), b"new").unwrap();
        assert_eq!(table.range(..).pairs().filter(|pair| pair.is_ok()).count(), 10);
        store.flush().unwrap();
        for key in 0..2000_u32 {
            table.put(&key.to_be_bytes(), b"more").unwrap();
        }
        store.flush().unwrap();
        let pairs: Vec<_> = table.range(..).pairs().map(|pair| pair.unwrap().1).collect();
        assert!(pairs.len() == 2000 && pairs.iter().all(|value| value == b"more"));
    }
}

/// A segment with an unreadable live value is not collected, like one with a damaged value.
#[test]
fn unreadable_segment_is_not_collected() {
    const KEYS: u32 = 100;
    let log_bytes = |fs: fn() -> Arc<dyn Fs>| {
        let home = in_memory();
        let cold_reads = ColdReads::Page;
        let options = Options { segment: 1 << 20, cold_reads, throttle: Duration::ZERO, ..tiny() };
        filled_store_with(home.path(), &options, KEYS, 20_000);
        let store = Store::open_on(fs(), home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        for round in 0..20 * KEYS {
            // Some stay in each segment.
            let key = round.wrapping_mul(2_654_435_761) % KEYS;
            if !key.is_multiple_of(10) {
                let _ = table.put(&key.to_be_bytes(), &[2; 20_000]);
            }
        }
        let _ = store.settle(Duration::from_secs(10));
        let statistics = store.statistics();
        (statistics.log_bytes, statistics.stuck_segments)
    };
    let (without, none) = log_bytes(|| Arc::new(Os::new()));
    let (with, stuck) = log_bytes(fs_with_bad_sector);
    assert_eq!((none, stuck), (0, 1));
    assert!(with < 2 * without, "{with} bytes instead of {without}");
}

/// The same where a newer record of one of its keys, in another segment, is unreadable.
#[test]
fn segment_with_unreadable_newer_keys_is_not_collected() {
    let settled = |is_bad: bool| {
        let home = in_memory();
        let options = Options {
            memory: 128 << 10,
            segment: 256 << 10,
            growth: 2,
            space_amplification: 20.0,
            throttle: Duration::ZERO,
            ..tiny()
        };
        let filled_store = |fill: &dyn Fn(&Table)| {
            drop(open(home.path(), &options));
            let before: HashSet<_> = log_files(home.path()).into_iter().collect();
            let (store, table) = open(home.path(), &options);
            fill(&table);
            store.flush().unwrap();
            drop((store, table));
            let mut made = log_files(home.path());
            made.retain(|path| !before.contains(path));
            made.sort();
            made
        };
        filled_store(&|table| {
            for chunk in 0..20_u32 {
                for filler in 0..150 {
                    table.put(format!("{chunk}-{filler}").as_bytes(), &[1; 600]).unwrap();
                }
                for key in chunk * 100..(chunk + 1) * 100 {
                    table.put(&key.to_be_bytes(), &[1; 300]).unwrap();
                }
                for filler in 0..150 {
                    table.put(format!("{chunk}-{filler}").as_bytes(), &[1; 600]).unwrap();
                }
            }
        });
        let second = filled_store(&|table| {
            for key in (0..1250_u32).filter(|key| !key.is_multiple_of(5)) {
                table.put(&key.to_be_bytes(), &[2; 300]).unwrap();
            }
        });
        let has_records = |path: &&PathBuf| {
            std::fs::read(path).unwrap()[8192..12_288].iter().any(|&byte| byte != 0)
        };
        let bad = second.iter().find(has_records).unwrap().file_name().unwrap();
        let name: &'static str = Box::leak(bad.to_str().unwrap().to_owned().into_boxed_str());
        let fs = if is_bad { fs_with_bad_sector_in(name) } else { Arc::new(Os::new()) };
        let options = Options { space_amplification: 1.1, ..options };
        let store = Store::open_on(fs, home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        for key in 3000..3200_u32 {
            let _ = table.put(&key.to_be_bytes(), &[2; 1000]);
        }
        let _ = store.settle(Duration::from_secs(3));
        store.statistics()
    };
    let (good, bad) = (settled(false), settled(true));
    assert!(good.stuck_segments == 0 && bad.stuck_segments > 0);
    assert!(bad.log_bytes < good.log_bytes * 5 / 4, "{} for {}", bad.log_bytes, good.log_bytes);
}

/// Readable records beside a bad sector are read: one by one, together, and in a range.
#[test]
fn records_beside_a_bad_sector_are_read() {
    for cold_reads in [ColdReads::Page, ColdReads::Around] {
        let home = in_memory();
        let options = Options { segment: 1 << 20, memory: 1 << 20, cold_reads, ..tiny() };
        filled_store_with(home.path(), &options, 100, 1000);
        // All in one populated part; each has 1,024 bytes, the first at 64.
        let good: Vec<[u8; 4]> = (0..7).chain(12..50).map(u32::to_be_bytes).collect();
        let open = || {
            let store = Store::open_on(fs_with_bad_sector(), home.path(), options.clone()).unwrap();
            store.table("t").unwrap()
        };
        let found = open().multi_get(&good).unwrap();
        assert!(found.iter().all(|value| value.as_deref() == Some(&[1; 1000])));
        for key in &good {
            assert_eq!(open().get(key).unwrap().unwrap(), [1; 1000]);
        }
        let before = &0_u32.to_be_bytes()[..]..&7_u32.to_be_bytes()[..];
        assert_eq!(open().range(before).pairs().filter(|pair| pair.is_ok()).count(), 7);
        assert!(matches!(open().get(&9_u32.to_be_bytes()), Err(Error::Io { .. })));
    }
}

/// A collector that cannot create a segment for a while must not skip segments for that.
#[test]
fn file_descriptor_shortage_marks_no_segment_stuck() {
    let home = in_memory();
    let options = Options { segment: 256 << 10, throttle: Duration::ZERO, ..tiny() };
    let fill = |table: &Table| {
        for round in 0..3_u8 {
            for key in (0..4000_u32).filter(|key| round == 0 || !key.is_multiple_of(5)) {
                table.put(&key.to_be_bytes(), &[round; 1000]).unwrap();
            }
        }
    };
    let much = Options { space_amplification: 20.0, ..options.clone() };
    let (store, table) = open(home.path(), &much);
    fill(&table);
    store.flush().unwrap();
    drop((store, table));
    let has_none = Arc::new(AtomicBool::new(false));
    let none = Arc::clone(&has_none);
    let fs = hook_fs("/log/", move |call| match call {
        Call::Make if none.load(Ordering::SeqCst) => Err(rustix::io::Errno::MFILE.into()),
        _ => Ok(()),
    });
    let store =
        Store::open_on(fs, home.path(), Options { space_amplification: 1.2, ..options }).unwrap();
    has_none.store(true, Ordering::SeqCst);
    for _ in 0..30 {
        store.settle(Duration::from_secs(1)).unwrap_err();
    }
    has_none.store(false, Ordering::SeqCst);
    assert_eq!(store.statistics().stuck_segments, 0);
    let before = store.statistics().log_bytes;
    assert!(store.settle(Duration::from_secs(10)).unwrap());
    assert!(store.statistics().log_bytes < before * 2 / 3);
}

fn filled_store_with(home: &Path, options: &Options, keys: u32, len: usize) {
    let store = Store::open(home, options.clone()).unwrap();
    let table = store.table("t").unwrap();
    (0..keys).for_each(|key| table.put(&key.to_be_bytes(), &vec![1; len]).unwrap());
    store.flush().unwrap();
}

/// A file of another store with the same keys, in place of ours, is reported, and none of its
/// values is returned.
#[test]
fn files_of_another_store_are_reported() {
    let home = in_memory();
    let at = |name: &str| home.path().join(name);
    let key = |number: u32| format!("key{number:05}");
    for is_flushed in [true, false] {
        let made = ["ours", "theirs"].map(|name| {
            let store = Store::open(at(name), tiny()).unwrap();
            let table = store.table("t").unwrap();
            (0..500).for_each(|number| table.put(key(number).as_bytes(), name.as_bytes()).unwrap());
            if is_flushed {
                store.flush().unwrap();
            }
            store
        });
        // As after a kill.
        let killed = ["ours", "theirs"].map(|name| at(&format!("{name}, killed")));
        copy(&at("ours"), &killed[0]);
        copy(&at("theirs"), &killed[1]);
        drop(made);
        let mut told = 0;
        for file in files_in(&killed[0], &killed[0]) {
            let _ = std::fs::remove_dir_all(at("mixed"));
            copy(&killed[0], &at("mixed"));
            std::fs::copy(killed[1].join(&file), at("mixed").join(&file)).unwrap();
            let mixed = Store::open(at("mixed"), tiny()).and_then(|store| {
                let table = store.table("t")?;
                let mut found = 0;
                for pair in table.range(..).pairs() {
                    assert_eq!(pair?.1, b"ours", "{file:?}");
                    found += 1;
                }
                Ok(found)
            });
            match mixed {
                // Without the staging file its records are lost.
                Ok(found) => assert!(file == Path::new("staging") && (is_flushed || found < 500)),
                Err(Error::Damaged { .. }) => told += 1,
                Err(other) => panic!("{file:?}: {other}"),
            }
        }
        assert!(told >= 3, "{told} were reported");
        killed.iter().for_each(|path| std::fs::remove_dir_all(path).unwrap());
        ["ours", "theirs"].iter().for_each(|name| std::fs::remove_dir_all(at(name)).unwrap());
    }
}

fn files_in(folder: &Path, begin: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files_in(&path, begin),
            false => vec![path.strip_prefix(begin).unwrap().to_owned()],
        })
        .collect()
}

/// What lies between two read pages was not read, and may raise a signal in the mapping.
#[test]
fn record_is_read_completely_before_mapping() {
    let home = tempfile::tempdir().unwrap();
    let options = Options { background: false, cold_reads: ColdReads::Page, ..Options::default() };
    {
        let store = Store::open(home.path(), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        for (key, len) in [(b"a", 3000), (b"b", 12_000), (b"c", 3000)] {
            table.put(key, &vec![7; len]).unwrap();
        }
    }
    let is_bad = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&is_bad);
    let fs = hook_fs("/log/", move |call| match call {
        Call::Read(from, to) if fails.load(Ordering::SeqCst) && from < 3 << 12 && to > 1 << 12 => {
            Err(std::io::Error::from_raw_os_error(libc::EIO))
        }
        _ => Ok(()),
    });
    let store = Store::open_on(fs, home.path(), options).unwrap();
    let table = store.table("t").unwrap();
    is_bad.store(true, Ordering::SeqCst);
    assert_eq!(table.get(b"a").unwrap().unwrap().len(), 3000);
    assert_eq!(table.get(b"c").unwrap().unwrap().len(), 3000);
    assert!(matches!(table.get(b"b"), Err(Error::Io { .. })));
}

/// A segment shorter than its durable length: an interrupted copy.
#[test]
fn truncated_segment_is_reported() {
    let home = in_memory();
    let options = Options { background: false, ..Options::default() };
    let [store, cut] = ["store", "cut"].map(|name| home.path().join(name));
    filled_store_with(&store, &options, 2000, 1000);
    let log = log_files(&store).into_iter().min().unwrap();
    let whole = std::fs::read(&log).unwrap();
    let records = 2000 * 1000;
    for len in [63, 64, 8 << 10, 1 << 20, 1_900_544, records] {
        for read_only in [true, false] {
            let _ = std::fs::remove_dir_all(&cut);
            copy(&store, &cut);
            std::fs::write(cut.join("log").join(log.file_name().unwrap()), &whole[..len]).unwrap();
            let open = Store::open(&cut, Options { read_only, ..options.clone() });
            assert!(is_damaged(&open), "{len}, {:?}", open.err());
        }
    }
}

/// Copies may lack empty directories.
#[test]
fn missing_directory_is_created_or_reported() {
    for is_merged in [false, true] {
        for (missing, read_only) in
            [("index", true), ("index", false), ("log", true), ("log", false)]
        {
            let home = in_memory();
            {
                let store = Store::open(home.path(), tiny()).unwrap();
                store.table("t").unwrap().put(b"key", b"value").unwrap();
                if is_merged {
                    store.flush().unwrap();
                }
            }
            std::fs::remove_dir_all(home.path().join(missing)).unwrap();
            let open = Store::open(home.path(), Options { read_only, ..tiny() });
            if is_merged || missing == "log" {
                assert!(is_damaged(&open), "{missing}: {:?}", open.err());
                continue;
            }
            let value = open.unwrap().table("t").unwrap().get(b"key").unwrap();
            assert_eq!(value.unwrap(), b"value");
            assert_eq!(home.path().join(missing).exists(), !read_only);
        }
    }
}
