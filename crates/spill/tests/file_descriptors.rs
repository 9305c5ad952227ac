//! A process out of file descriptors. The limit belongs to the process, so this test is alone in
//! its binary.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spill::{Error, Options, Store};

/// Tables whose names fill the manifest several times.
const TABLES: u32 = 200;

fn name(number: u32) -> String {
    format!("{number:01000}")
}

/// Opens files until the limit is reached.
fn exhaust_descriptors() -> Vec<std::fs::File> {
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

/// Rewriting a long manifest needs one descriptor. Without it tables are rejected, and with it
/// nothing else is missing.
#[test]
fn manifest_rewrite_needs_one_descriptor() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let store = Store::open(&path, Options { background: false, ..Options::default() }).unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(100), ..before }).unwrap();
    let mut others = exhaust_descriptors();

    let (mut number, mut refused) = (0, 0);
    while number < TABLES {
        match store.table(&name(number)) {
            Ok(table) => {
                table.put(b"key", &number.to_le_bytes()).unwrap();
                table.put(b"other key", b"value").unwrap();
                number += 1;
            }
            Err(Error::Io { source, .. }) => {
                assert_eq!(source.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
                refused += 1;
                assert!(refused < 1000, "one descriptor is not enough for the manifest");
                drop(others.pop());
                store.table(&name(number)).unwrap();
                others.extend(exhaust_descriptors());
            }
            Err(other) => panic!("{other}"),
        }
        store.sync().unwrap();
    }
    assert!(refused > 1, "the manifest did not grow");

    drop(others);
    setrlimit(Resource::Nofile, before).unwrap();
    drop(store);
    check(&path);
}

fn check(path: &Path) {
    let store = Store::open(path, Options::default()).unwrap();
    assert_eq!(store.tables().len(), TABLES as usize);
    for number in 0..TABLES {
        let found = store.table(&name(number)).unwrap().get(b"key").unwrap();
        assert_eq!(found.unwrap(), number.to_le_bytes());
    }
}
