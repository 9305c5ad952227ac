//! A process that is killed at any moment, on the real file system: every write that it had
//! acknowledged is there, and what is there is what some number of its writes had left.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use spill::{Options, Store};

use crate::history::{History, Model, Traffic};
use crate::random::Random;
use crate::settings;
use crate::target::Target;

const PLACE: &str = "SPILL_TEST_PLACE";
const KEYS: usize = 400;

fn traffic() -> Traffic {
    Traffic { seed: 21, keys: KEYS, largest: 12_000, tables: 3 }
}

fn options(mode: usize) -> Options {
    Options { background: true, ..settings::tiny(settings::MODES[mode]) }
}

/// How far the child has come, in a file: a kill does not lose what was written to it.
struct Progress {
    file: File,
}

impl Progress {
    const STARTED: u64 = 0;
    const ACKNOWLEDGED: u64 = 8;

    fn set(&self, which: u64, count: usize) {
        self.file.write_all_at(&(count as u64).to_le_bytes(), which).unwrap();
    }

    fn get(&self, which: u64) -> usize {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, which).unwrap();
        u64::from_le_bytes(bytes) as usize
    }
}

fn progress(folder: &Path) -> Progress {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    Progress { file: options.open(folder.join("progress")).unwrap() }
}

/// No test: the process that is killed. It writes from where the last one was found on.
#[test]
#[ignore = "started and killed by the tests below"]
fn child() {
    let Some(folder) = std::env::var_os(PLACE) else { return };
    let folder = Path::new(&folder);
    let mode: usize = std::env::var("SPILL_TEST_MODE").unwrap().parse().unwrap();
    let progress = progress(folder);
    let mut target = Target::of(Store::open(folder.join("store"), options(mode)).unwrap());
    let from = progress.get(Progress::STARTED);
    let mut random = Random::new(from as u64);
    for number in from.. {
        progress.set(Progress::STARTED, number + 1);
        target.write(&traffic().write(number)).unwrap();
        progress.set(Progress::ACKNOWLEDGED, number + 1);
        match random.below(3000) {
            0 => target.store.flush().unwrap(),
            1..4 => target.store.sync().unwrap(),
            4 => {
                drop(target);
                target = Target::of(Store::open(folder.join("store"), options(mode)).unwrap());
            }
            _ => {}
        }
    }
}

/// Ends the child however the test does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, mode: usize) -> Running {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, folder)
        .env("SPILL_TEST_MODE", mode.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    Running(child)
}

fn rounds(mode: usize, rounds: usize) {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let rounds = if settings::every() { rounds * 50 } else { rounds };
    let mut random = Random::of(seed, mode as u64);
    let folder = tempfile::tempdir().unwrap();
    let progress = progress(folder.path());
    progress.set(Progress::STARTED, 0);
    progress.set(Progress::ACKNOWLEDGED, 0);
    let mut model = Model::default();
    let mut history = History::from(&model);
    for round in 0..rounds {
        let story = format!("SPILL_TEST_SEED={seed}, {:?}, round {round}", settings::MODES[mode]);
        let from = history.len();
        let mut child = start(folder.path(), mode);
        let limit = Instant::now() + Duration::from_secs(30);
        while progress.get(Progress::ACKNOWLEDGED) == from && child.0.try_wait().unwrap().is_none()
        {
            assert!(Instant::now() < limit, "{story}: the child acknowledges nothing");
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(random.below(60_000) as u64));
        if let Some(status) = child.0.try_wait().unwrap() {
            panic!("{story}: the child ended by itself: {status}");
        }
        drop(child);

        let (started, acknowledged) =
            (progress.get(Progress::STARTED), progress.get(Progress::ACKNOWLEDGED));
        assert!(acknowledged > from, "{story}: nothing was written");
        while history.len() < started {
            model.apply(&traffic().write(history.len()));
            history.push(&model);
        }
        let store = Store::open(folder.path().join("store"), options(mode))
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        let mut target = Target::of(store);
        let found = Model::read(&target.store, round % 2 == 0)
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        let may_be = acknowledged..=started;
        let Some(count) = history.find(&found, may_be.clone()) else {
            panic!(
                "{story}: what is found is not of {may_be:?} writes, but of {:?}: {}",
                history.find(&found, 0..=history.len()),
                found.difference(&model)
            );
        };
        target.check_some(&found, KEYS, &mut random).unwrap();
        target.store.scrub().unwrap_or_else(|error| panic!("{story}: scrub: {error}"));
        history.cut(count);
        model = found;
        progress.set(Progress::STARTED, count);
        progress.set(Progress::ACKNOWLEDGED, count);
    }
    println!("{} writes in {rounds} rounds", history.len());
    assert!(history.len() > rounds * 2);
}

#[test]
fn a_kill_loses_nothing_without_syncs() {
    rounds(0, 12);
}

#[test]
fn a_kill_loses_nothing_with_an_interval() {
    rounds(1, 6);
}

#[test]
fn a_kill_loses_nothing_with_syncs() {
    rounds(2, 6);
}
