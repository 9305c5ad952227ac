//! A process that is killed at any moment, on the real file system: every write that it had
//! acknowledged is there, and what is there is what some number of its writes had left.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use spill::{Options, Store};

use crate::history::{Change, History, Model, Traffic, Write};
use crate::random::Random;
use crate::settings;
use crate::target::Target;

const PLACE: &str = "SPILL_TEST_PLACE";
const MODE: &str = "SPILL_TEST_MODE";
const WRITERS: &str = "SPILL_TEST_WRITERS";

fn traffic() -> Traffic {
    Traffic { seed: 21, keys: 300, largest: 12_000 }
}

fn options(mode: usize) -> Options {
    Options { background: true, ..settings::tiny(settings::MODES[mode]) }
}

/// The tables of each writer, when there are so many.
fn tables(writers: usize) -> &'static [&'static [usize]] {
    match writers {
        1 => &[&[0, 1, 2]],
        _ => &[&[0, 1], &[2]],
    }
}

/// The write of this number of a writer that has these tables.
fn write(tables: &[usize], number: usize) -> Write {
    let mine = |change: Change| {
        let table = if tables.contains(&change.table) { change.table } else { tables[0] };
        Change { table, ..change }
    };
    match traffic().write(number * 2 + tables[0]) {
        Write::Batch(changes) => Write::Batch(changes.into_iter().map(mine).collect()),
        Write::One(change) => Write::One(mine(change)),
        Write::DropTable(table) => Write::DropTable(table),
    }
}

/// How far each writer has come, in a file: a kill does not lose what was written to it.
struct Progress {
    file: File,
}

impl Progress {
    fn of(folder: &Path) -> Progress {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        Progress { file: options.open(folder.join("progress")).unwrap() }
    }

    fn set(&self, place: usize, count: usize) {
        self.file.write_all_at(&(count as u64).to_le_bytes(), place as u64 * 8).unwrap();
    }

    fn get(&self, place: usize) -> usize {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, place as u64 * 8).unwrap();
        u64::from_le_bytes(bytes) as usize
    }

    fn start(&self, writer: usize, count: usize) {
        self.set(writer * 2, count);
    }

    fn acknowledge(&self, writer: usize, count: usize) {
        self.set(writer * 2 + 1, count);
    }

    fn started(&self, writer: usize) -> usize {
        self.get(writer * 2)
    }

    fn acknowledged(&self, writer: usize) -> usize {
        self.get(writer * 2 + 1)
    }
}

/// No test: the process that is killed. Its writers go on from where the last ones were found.
#[test]
#[ignore = "started and killed by the tests below"]
fn child() {
    let Some(folder) = std::env::var_os(PLACE) else { return };
    let folder = Path::new(&folder);
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (mode, writers) = (number(MODE), number(WRITERS));
    let progress = Progress::of(folder);
    let store = Store::open(folder.join("store"), options(mode)).unwrap();
    std::thread::scope(|scope| {
        for (writer, tables) in tables(writers).iter().enumerate() {
            let (progress, mut target) = (&progress, Target::of(store.clone()));
            scope.spawn(move || {
                let from = progress.started(writer);
                let mut random = Random::new(from as u64);
                for number in from.. {
                    progress.start(writer, number + 1);
                    target.write(&write(tables, number)).unwrap();
                    progress.acknowledge(writer, number + 1);
                    match random.below(3000) {
                        0 => target.store.flush().unwrap(),
                        1..4 => target.store.sync().unwrap(),
                        _ => {}
                    }
                }
            });
        }
    });
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

fn start(folder: &Path, mode: usize, writers: usize) -> Running {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, folder)
        .env(MODE, mode.to_string())
        .env(WRITERS, writers.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    Running(child)
}

/// What one writer has written so far.
struct Writer {
    tables: &'static [usize],
    model: Model,
    history: History,
}

fn rounds(mode: usize, writers: usize, rounds: usize) {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let rounds = if settings::every() { rounds * 50 } else { rounds };
    let mut random = Random::of(seed, mode as u64);
    let folder = tempfile::tempdir().unwrap();
    let progress = Progress::of(folder.path());
    let new = |tables: &&'static [usize]| Writer {
        tables,
        model: Model::default(),
        history: History::from(&Model::default()),
    };
    let mut all: Vec<Writer> = tables(writers).iter().map(new).collect();
    for round in 0..rounds {
        for (writer, known) in all.iter().enumerate() {
            progress.start(writer, known.history.len());
            progress.acknowledge(writer, known.history.len());
        }
        let story = format!("SPILL_TEST_SEED={seed}, {:?}, round {round}", settings::MODES[mode]);
        run_and_kill(folder.path(), (mode, writers), &progress, &mut random, &story);

        let store = Store::open(folder.path().join("store"), options(mode))
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        let mut target = Target::of(store);
        let found = Model::read(&target.store, round % 2 == 0)
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        for (writer, known) in all.iter_mut().enumerate() {
            let may_be = progress.acknowledged(writer)..=progress.started(writer);
            known.check(&found, may_be, &format!("{story}, writer {writer}"));
        }
        target.check_some(&found, traffic(), &mut random).unwrap();
        target.store.scrub().unwrap_or_else(|error| panic!("{story}: scrub: {error}"));
    }
    let writes: usize = all.iter().map(|writer| writer.history.len()).sum();
    println!("{writes} writes in {rounds} rounds");
    assert!(writes > rounds * 2);
}

fn run_and_kill(
    folder: &Path,
    (mode, writers): (usize, usize),
    progress: &Progress,
    random: &mut Random,
    story: &str,
) {
    let from: Vec<usize> = (0..writers).map(|writer| progress.started(writer)).collect();
    let mut child = start(folder, mode, writers);
    let limit = Instant::now() + Duration::from_secs(60);
    while (0..writers).any(|writer| progress.acknowledged(writer) == from[writer]) {
        assert!(Instant::now() < limit, "{story}: the child acknowledges nothing");
        if let Some(status) = child.0.try_wait().unwrap() {
            panic!("{story}: the child ended by itself: {status}");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(Duration::from_micros(random.below(60_000) as u64));
    if let Some(status) = child.0.try_wait().unwrap() {
        panic!("{story}: the child ended by itself: {status}");
    }
}

impl Writer {
    /// Compares what is found with what may be there, and takes it for what was written.
    fn check(&mut self, found: &Model, may_be: std::ops::RangeInclusive<usize>, story: &str) {
        while self.history.len() < *may_be.end() {
            self.model.apply(&write(self.tables, self.history.len()));
            self.history.push(&self.model);
        }
        let found = found.only(self.tables);
        let Some(count) = self.history.find(&found, may_be.clone()) else {
            panic!(
                "{story}: what is found is not of {may_be:?} writes, but of {:?}: {}",
                self.history.find(&found, 0..=self.history.len()),
                found.difference(&self.model)
            );
        };
        self.history.cut(count);
        self.model = found;
    }
}

#[test]
fn a_kill_loses_nothing_without_syncs() {
    rounds(0, 1, 8);
    rounds(0, 2, 6);
}

#[test]
fn a_kill_loses_nothing_with_an_interval() {
    rounds(1, 2, 5);
}

#[test]
fn a_kill_loses_nothing_with_syncs() {
    rounds(2, 2, 5);
}
