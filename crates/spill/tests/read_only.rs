//! Read-only opening on a real disk: on read-only media, beside other readers, and after a kill.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use spill::{Error, Options, Store};

fn reading() -> Options {
    Options { read_only: true, ..Options::default() }
}

fn fill(dir: &Path) -> Store {
    let store = Store::open(dir, Options { background: false, ..Options::default() }).unwrap();
    let table = store.table("t").unwrap();
    for number in 0..1000_u32 {
        table.put(&number.to_be_bytes(), &[number as u8; 300]).unwrap();
    }
    store.flush().unwrap();
    for number in 500..1500_u32 {
        table.put(&number.to_be_bytes(), &[!number as u8; 300]).unwrap();
    }
    store
}

fn check(store: &Store) {
    let table = store.table("t").unwrap();
    assert_eq!(table.range(..).pairs().count(), 1500);
    for number in 0..1500_u32 {
        let byte = if number < 500 { number as u8 } else { !number as u8 };
        assert_eq!(table.get(&number.to_be_bytes()).unwrap(), Some(vec![byte; 300]), "{number}");
    }
    store.scrub().unwrap();
}

/// Files of a directory with modification times.
fn listing(dir: &Path) -> String {
    let listed = Command::new("find").arg(dir).args(["-printf", "%p %s %T@\n"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn read_only_openers_share_a_store_without_trace() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("store");
    let writer = fill(&dir);
    assert!(matches!(Store::open(&dir, reading()), Err(Error::Locked { .. })));
    drop(writer);
    let before = listing(&dir);
    let (one, other) =
        (Store::open(&dir, reading()).unwrap(), Store::open(&dir, reading()).unwrap());
    check(&one);
    check(&other);
    let refused =
        |done: Result<(), Error>| assert!(matches!(done, Err(Error::ReadOnly)), "{done:?}");
    let table = one.table("t").unwrap();
    refused(table.put(b"k", b"v"));
    refused(table.delete(b"k"));
    refused(one.flush());
    refused(one.drop_table("t"));
    refused(one.table("another").map(|_| ()));
    refused(one.checkpoint(home.path().join("copy")));
    assert!(matches!(Store::open(&dir, Options::default()), Err(Error::Locked { .. })));
    drop((one, other, table));
    assert_eq!(listing(&dir), before);
    check(&Store::open(&dir, Options::default()).unwrap());
}

#[test]
fn read_only_opening_creates_nothing() {
    let home = tempfile::tempdir().unwrap();
    let opened = Store::open(home.path().join("none"), reading());
    assert!(matches!(opened, Err(Error::NoStore { .. })));
    assert!(matches!(Store::open(home.path(), reading()), Err(Error::NoStore { .. })));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

/// Mounted read-only, with what a kill left in the slots. The mount needs root.
#[test]
fn store_on_read_only_media_is_readable() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("store");
    let store = fill(&dir);
    // What a kill would leave: copied while the store is open.
    let (killed, mounted) = (home.path().join("killed"), home.path().join("mounted"));
    assert!(Command::new("cp").arg("-a").arg(&dir).arg(&killed).status().unwrap().success());
    drop(store);
    std::fs::create_dir(&mounted).unwrap();
    let mount = |options: &str| {
        let mount = Command::new("mount").args(["-o", options]).args([&killed, &mounted]).status();
        mount.is_ok_and(|status| status.success())
    };
    if !mount("bind") || !mount("remount,bind,ro") {
        println!("skipped: mounting needs root");
        return;
    }
    let tried = std::panic::catch_unwind(|| {
        let opened = Store::open(&mounted, Options::default());
        let Err(Error::Io { source, .. }) = opened else { panic!("opened for writing") };
        assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        check(&Store::open(&mounted, reading()).unwrap());
    });
    assert!(Command::new("umount").arg(&mounted).status().unwrap().success());
    tried.unwrap();
    check(&Store::open(&killed, Options::default()).unwrap());
}
