use std::collections::HashMap;
use std::fs;

use tempfile::TempDir;

use super::*;

fn open(home: &TempDir, options: &str) -> RocksDb {
    let url = format!("rocksdb:{}{options}", home.path().display()).parse().unwrap();
    fs::create_dir_all(home.path().join("data")).unwrap();
    RocksDb::open(&url).unwrap()
}

fn in_force(store: &RocksDb) -> HashMap<String, String> {
    store.options().into_iter().collect()
}

#[test]
fn the_declared_defaults_are_those_in_force() {
    let home = TempDir::new().unwrap();
    let store = open(&home, "");
    let theirs = store.options();
    let declared: Vec<_> = RocksDb::OPTIONS
        .iter()
        .map(|option| (option.name.to_owned(), option.default.to_owned()))
        .collect();
    // Automatic options are reported with their resolved value.
    let resolved = theirs.into_iter().zip(&declared).map(|((name, value), (_, default))| {
        let value = if default == "auto" { default.clone() } else { value };
        (name, value)
    });
    assert_eq!(resolved.collect::<Vec<_>>(), declared);
}

#[test]
fn every_option_takes_effect() {
    let home = TempDir::new().unwrap();
    let requested = "cache=64MiB&cache_kind=lru&direct_io=on&wal=off&compression=zstd&memtable=8MiB\
                 &memtables=4&background_jobs=3&bloom_bits=10&databases=2&statistics=on";
    let store = open(&home, &format!("?{requested}"));
    let theirs = in_force(&store);
    for option in requested.split('&') {
        let (name, value) = option.split_once('=').unwrap();
        assert_eq!(theirs[name], value, "{name}");
    }
    assert!(store.capabilities().survives == Some(crate::Survives::Nothing));
}

#[test]
fn cache_of_zero_disables_it() {
    let home = TempDir::new().unwrap();
    assert_eq!(in_force(&open(&home, "?cache=0"))["cache"], "0");
}

#[test]
fn the_options_file_comes_before_the_url() {
    let home = TempDir::new().unwrap();
    // Users start from a file that RocksDB wrote.
    drop(open(&home, "?compression=lz4&memtable=16MiB&bloom_bits=12&background_jobs=5"));
    let written = fs::read_dir(home.path().join("data/0000"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-"))
        .max()
        .unwrap();
    let file = home.path().join("options.ini");
    fs::copy(written, &file).unwrap();
    let other = TempDir::new().unwrap();
    let options = format!("?options_file={}&memtable=32MiB&cache=1GiB", file.display());
    let theirs = in_force(&open(&other, &options));
    for (name, value) in [
        ("compression", "lz4"),
        ("bloom_bits", "12"),
        ("background_jobs", "5"),
        ("memtable", "32MiB"),
        ("cache", "1GiB"),
    ] {
        assert_eq!(theirs[name], value, "{name}");
    }
}

#[test]
fn a_wrong_options_file_is_refused() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("options.ini");
    let refused = || {
        let url: StoreUrl = format!("rocksdb:x?options_file={}", file.display()).parse().unwrap();
        url.check().unwrap_err().to_string()
    };
    assert!(refused().contains("No such file"), "{}", refused());
    fs::write(&file, "[DBOptions]\nno_such_option=1\n").unwrap();
    assert!(refused().contains("no_such_option"), "{}", refused());
}

#[test]
fn databases_share_one_cache_and_the_keys() {
    let home = TempDir::new().unwrap();
    let store = open(&home, "?databases=4&cache=8MiB&statistics=on");
    let mut session = store.session().unwrap();
    for number in 0..4000_u32 {
        session.update(format!("key{number:06}").as_bytes(), &[7; 100]).unwrap();
    }
    store.settle(Duration::from_secs(60)).unwrap();
    for number in 0..4000_u32 {
        assert!(session.read(format!("key{number:06}").as_bytes(), |_| ()).unwrap());
    }
    let used = |database: &Database| database.number(c"rocksdb.block-cache-usage").unwrap();
    assert!(used(&store.databases[0]) > 0);
    assert!(store.databases.iter().all(|it| used(it) == used(&store.databases[0])));
    for database in &store.databases {
        let keys = database.number(c"rocksdb.estimate-num-keys").unwrap();
        assert!((800..1200).contains(&keys), "{keys} of 4000 in one of four databases");
    }
}

#[test]
fn statistics_count_what_was_written() {
    let home = TempDir::new().unwrap();
    let store = open(&home, "?statistics=on&compression=none");
    let mut session = store.session().unwrap();
    for number in 0..1000_u32 {
        session.update(&number.to_be_bytes(), &[7; 1000]).unwrap();
    }
    store.settle(Duration::from_secs(60)).unwrap();
    let all: HashMap<_, _> = store.statistics().into_iter().map(|it| (it.name, it.value)).collect();
    for name in ["user.written.total", "wal.written.total", "flush.written.total", "sst.live"] {
        assert!(all[name] > 1e6 && all[name] < 1.2e6, "{name} {}", all[name]);
    }
    assert_eq!((all["files"], all["runs"], all["keys.estimated"]), (1.0, 1.0, 1000.0));
}

#[test]
fn settle_empties_level_0() {
    let home = TempDir::new().unwrap();
    let store = open(&home, "?memtable=256KiB&compression=none");
    let level_0 = || {
        let files = store.databases[0].text(c"rocksdb.num-files-at-level0").unwrap();
        files.parse::<u64>().unwrap()
    };
    let mut session = store.session().unwrap();
    for round in 0..3_u32 {
        for number in 0..500_u32 {
            session.update(&number.to_be_bytes(), &[round as u8; 1000]).unwrap();
        }
        store.settle(Duration::from_secs(60)).unwrap();
        assert_eq!(level_0(), 0, "round {round}");
    }
    // The usual trigger is back: two flushes leave two files.
    for number in 0..2_u32 {
        session.update(&number.to_be_bytes(), b"late").unwrap();
        store.databases[0].flush(true).unwrap();
    }
    assert_eq!(level_0(), 2);
}

#[test]
fn sync_without_a_log_is_refused() {
    let error =
        RocksDb::check(&"rocksdb:x?sync=on&wal=off".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("leave one of the two out"), "{error}");
}

/// A library that is present must work: otherwise every other test of RocksDB would be skipped
/// silently.
#[test]
fn present_library_is_available() {
    if library::is_missing() {
        eprintln!("skipped: there is no RocksDB here");
        return;
    }
    assert!(RocksDb::linked().is_ok(), "{:?}", RocksDb::linked());
}

#[test]
fn reported_version_is_the_one_in_use() {
    let home = TempDir::new().unwrap();
    let reported = RocksDb::linked().unwrap();
    let store = open(&home, "");
    let (version, library) = (store.version(), &in_force(&store)["library"]);
    assert!(reported.starts_with(&format!("{version}, {library}")), "{reported}");
    assert!(version.starts_with("RocksDB ") && version.contains('.'), "{version}");
}

/// A library can be named by its path; other files and a second library are refused.
#[test]
fn loads_a_library_by_path() {
    let home = TempDir::new().unwrap();
    let check = |library: &str| {
        let url: StoreUrl = format!("rocksdb:x?library={library}").parse().unwrap();
        url.check().map_err(|error| error.to_string())
    };
    let Some(path) = library::libraries().into_iter().next() else {
        eprintln!("skipped: there is no shared library of RocksDB here");
        return;
    };
    let store = open(&home, &format!("?library={}", path.display()));
    assert_eq!(in_force(&store)["library"], path.display().to_string());
    assert!(store.version().contains("(sha256 "), "{}", store.version());
    drop(store);
    let copy = home.path().join("librocksdb.so");
    fs::copy(&path, &copy).unwrap();
    let refused = check(copy.to_str().unwrap()).unwrap_err();
    assert!(refused.contains("is loaded already") && refused.contains("merge"), "{refused}");
    assert!(check("/nowhere/librocksdb.so").unwrap_err().contains("/nowhere/librocksdb.so"));
    #[cfg(not(feature = "rocksdb-bundled"))]
    assert!(check("bundled").unwrap_err().contains("--features rocksdb-bundled"));
}

#[test]
fn keys_stay_in_their_database() {
    // The location of existing data depends on these.
    let place = |number: u64| spread(format!("user{number}").as_bytes(), 16);
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(place), [4, 1, 7, 14, 1, 11, 3, 1]);
}
