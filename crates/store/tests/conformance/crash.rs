//! Acknowledged writes survive `kill -9` in durable stores.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::{env, io};

use store::{Directory, Session, Store, StoreUrl, StoreVisitor, Survives, open};

use crate::conformance::support::{Test, on_disk_here, places, read, with};

/// Set in the child only: the store that it writes to.
const URL: &str = "KVMETER_STORE_CRASH_URL";
const ENOUGH: u32 = 3000;

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; 40 + (number % 500) as usize]
}

/// Writes until it is killed, and prints each acknowledged key.
struct WriteForEver;
impl StoreVisitor for WriteForEver {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        let mut session = store.session().unwrap();
        let mut out = io::stdout();
        for number in 0.. {
            session.insert(&number_key(number), &value(number)).unwrap();
            writeln!(out, "acknowledged {number}").unwrap();
        }
    }
}

fn number_key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// The child's own entry; does nothing in an ordinary run of the tests.
#[test]
fn child_of_the_crash_test() {
    let Ok(url) = env::var(URL) else { return };
    let url: StoreUrl = url.parse().unwrap();
    let _directory = Directory::claim(&url, 0).unwrap();
    open(&url, WriteForEver).unwrap();
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    let mut tested = 0;
    for place in places() {
        // A sync of every write would make the test wait for the device alone.
        let syncs = [("sync", "on"), ("durability", "sync")];
        let syncs = syncs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        if place.url.options.iter().any(|option| syncs.contains(option)) {
            continue;
        }
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "conformance::crash::child_of_the_crash_test", "--nocapture"])
            .env(URL, place.url.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut acknowledged = None;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            if let Some(number) = line.unwrap().strip_prefix("acknowledged ") {
                let number: u32 = number.parse().unwrap();
                acknowledged = Some(number);
                if number == ENOUGH {
                    child.kill().unwrap();
                }
            }
        }
        assert!(!child.wait().unwrap().success());
        let acknowledged = acknowledged.unwrap_or_else(|| panic!("{}: no writes", place.url));
        assert!(acknowledged >= ENOUGH, "{}: ended by itself", place.url);

        with(&place.url, &AllThere { acknowledged });
        tested += 1;
    }
    assert!(tested > 0);
}

struct AllThere {
    acknowledged: u32,
}
impl Test for AllThere {
    fn run<S: Store>(&self, store: &S, name: &str) {
        assert!(store.capabilities().survives >= Some(Survives::ProcessKill), "{name}");
        let mut session = store.session().unwrap();
        for number in 0..=self.acknowledged {
            let there = read(&mut session, &number_key(number)).unwrap();
            assert_eq!(there, Some(value(number)), "{name}: {number} of {}", self.acknowledged);
        }
    }
}

#[test]
fn store_without_log_is_not_durable() {
    struct NotDurable;
    impl Test for NotDurable {
        fn run<S: Store>(&self, store: &S, name: &str) {
            assert!(store.capabilities().survives == Some(Survives::Nothing), "{name}");
        }
    }
    if !on_disk_here().any(|adapter| adapter.scheme == "rocksdb") {
        eprintln!("skipped: RocksDB is not here");
        return;
    }
    let home = tempfile::TempDir::new().unwrap();
    let url = format!("rocksdb:{}?wal=off", home.path().display()).parse().unwrap();
    with(&url, &NotDurable);
}
