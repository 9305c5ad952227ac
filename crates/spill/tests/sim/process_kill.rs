//! A process killed at any moment, on the real file system. Every acknowledged write exists, and
//! the content equals some prefix of its writes. Finished checkpoints hold a prefix of each
//! writer's writes.
//!
//! `SPILL_KILLS=500` kills that often with three writers (21 times without); `SPILL_TEST_SEED`
//! repeats the writes and delays of a failed run.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use spill::{Error, Options, Store};

use crate::history::{Change, History, Model, TABLES, Traffic, Write};
use crate::random::Random;
use crate::settings;
use crate::target::Target;

const STORE_DIR: &str = "SPILL_TEST_PLACE";
const MODE: &str = "SPILL_TEST_MODE";
const WRITERS: &str = "SPILL_TEST_WRITERS";

pub fn traffic() -> Traffic {
    Traffic { seed: 21, keys: 300, max_value_len: 12_000 }
}

/// Writers beside a thread that makes checkpoints, with kills during the opening as well.
const MOST_WRITERS: usize = 3;

pub fn options(mode: usize) -> Options {
    Options { background: true, ..settings::tiny(settings::MODES[mode]) }
}

/// The tables of each writer, by number of writers.
pub fn tables(writers: usize) -> &'static [&'static [usize]] {
    match writers {
        1 => &[&[0, 1, 2]],
        2 => &[&[0, 1], &[2]],
        _ => &[&[0], &[1], &[2]],
    }
}

/// By mode: a writer drops one of its tables at each multiple of this number. A table should have
/// levels by then, and with syncs there is time for few writes.
const DROP_INTERVALS: [usize; 3] = [331, 331, 31];

/// The write of this number by a writer with these tables.
pub fn write(tables: &[usize], mode: usize, number: usize) -> Write {
    let drops = DROP_INTERVALS[mode];
    if number % drops == drops - 1 {
        return Write::DropTable(tables[number / drops % tables.len()]);
    }
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

/// Offset in the progress file of checkpoints, behind the writers.
const CHECKPOINTS: usize = 16;

fn checkpoint(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("checkpoint-{number}"))
}

/// Progress of each writer, in a file that survives a kill.
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

    /// Number of finished checkpoints.
    fn checkpoints(&self) -> usize {
        self.get(CHECKPOINTS)
    }

    /// What the last of them may hold of each writer.
    fn bounds(&self, writer: usize) -> std::ops::RangeInclusive<usize> {
        self.get(CHECKPOINTS + 1 + writer * 2)..=self.get(CHECKPOINTS + 2 + writer * 2)
    }
}

/// Not a test: the process to be killed. Its writers continue from where the last ones were found.
#[test]
#[ignore = "started and killed by the tests below"]
fn child() {
    let Some(folder) = std::env::var_os(STORE_DIR) else { return };
    let folder = Path::new(&folder);
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (mode, writers) = (number(MODE), number(WRITERS));
    let progress = Progress::of(folder);
    let store = Store::open(folder.join("store"), options(mode)).unwrap();
    std::thread::scope(|scope| {
        if writers == MOST_WRITERS {
            scope.spawn(|| make_checkpoints(&store, folder, &progress));
        }
        for (writer, tables) in tables(writers).iter().enumerate() {
            let (progress, mut target) = (&progress, Target::of(store.clone()));
            scope.spawn(move || {
                let from = progress.started(writer);
                let mut random = Random::new(from as u64);
                for number in from.. {
                    progress.start(writer, number + 1);
                    target.write(&write(tables, mode, number)).unwrap();
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

/// One after the other, each with what was acknowledged before it and started after it.
fn make_checkpoints(store: &Store, folder: &Path, progress: &Progress) {
    let from = progress.checkpoints() + 1;
    let mut random = Random::new(from as u64);
    for number in from.. {
        std::thread::sleep(Duration::from_micros(random.below(4_000) as u64));
        let counts =
            |of: fn(&Progress, usize) -> usize| [0, 1, 2].map(|writer| of(progress, writer));
        let least = counts(Progress::acknowledged);
        store.checkpoint(checkpoint(folder, number)).unwrap();
        let most = counts(Progress::started);
        // All of a checkpoint's numbers, in one write.
        let mut reported = vec![number as u64];
        for (least, most) in least.into_iter().zip(most) {
            reported.extend([least as u64, most as u64]);
        }
        let bytes: Vec<u8> = reported.into_iter().flat_map(u64::to_le_bytes).collect();
        progress.file.write_all_at(&bytes, CHECKPOINTS as u64 * 8).unwrap();
    }
}

/// Ends the child however the test ends.
struct RunningChild(Child);

impl Drop for RunningChild {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, mode: usize, writers: usize) -> RunningChild {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_kill::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(STORE_DIR, folder)
        .env(MODE, mode.to_string())
        .env(WRITERS, writers.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    RunningChild(child)
}

/// The last finished checkpoint opens and holds allowed content of each writer; an unfinished one
/// is no store. Returns the number checked, and removes them all.
fn check_checkpoints(
    folder: &Path,
    mode: usize,
    all: &[Writer],
    progress: &Progress,
    story: &str,
) -> usize {
    let completed = progress.checkpoints();
    let opened = |number| Store::open(checkpoint(folder, number), without_create(mode));
    let mut looked_at = 0;
    if completed > 0 && checkpoint(folder, completed).exists() {
        let story = format!("{story}, checkpoint {completed}");
        let store = opened(completed).unwrap_or_else(|error| panic!("{story}: {error}"));
        let found = Model::read(&store, false).unwrap_or_else(|error| panic!("{story}: {error}"));
        for (writer, known) in all.iter().enumerate() {
            let bounds = progress.bounds(writer);
            let of_writer = found.only(known.tables);
            let count = known.all.find(&of_writer, bounds.clone());
            assert!(count.is_some(), "{story}, writer {writer}: not of {bounds:?} writes");
        }
        store.scrub().unwrap_or_else(|error| panic!("{story}: scrub: {error}"));
        looked_at = 1;
    }
    // The current one may be complete but not reported.
    match opened(completed + 1) {
        Ok(store) => drop(store.scrub().unwrap_or_else(|error| panic!("{story}: {error}"))),
        Err(error @ Error::Damaged { .. }) => panic!("{story}, half a checkpoint: {error}"),
        Err(_) => {}
    }
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("checkpoint-") {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    looked_at
}

/// Options that do not create a store.
fn without_create(mode: usize) -> Options {
    Options { create: false, ..options(mode) }
}

/// What one writer has written so far.
struct Writer {
    tables: &'static [usize],
    mode: usize,
    model: Model,
    history: History,
    /// The same, without cutting what was not found.
    all: History,
}

fn rounds(mode: usize, writers: usize, rounds: usize) {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let rounds = match settings::kills() {
        // A third for each mode.
        Some(kills) if writers == MOST_WRITERS => kills.div_ceil(settings::MODES.len()),
        _ if settings::every() => rounds * 50,
        _ => rounds,
    };
    let mut random = Random::of(seed, mode as u64);
    let folder = tempfile::tempdir().unwrap();
    let progress = Progress::of(folder.path());
    let new = |tables: &&'static [usize]| Writer {
        tables,
        mode,
        model: Model::default(),
        history: History::from(&Model::default()),
        all: History::from(&Model::default()),
    };
    let mut all: Vec<Writer> = tables(writers).iter().map(new).collect();
    let (mut checkpoints, mut drops) = (0, 0);
    (0..CHECKPOINTS + 1 + 2 * MOST_WRITERS).for_each(|place| progress.set(place, 0));
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
            let allowed = progress.acknowledged(writer)..=progress.started(writer);
            let before = known.history.len();
            known.check(&found, allowed, &format!("{story}, writer {writer}"));
            drops += known.history.len() / DROP_INTERVALS[mode] - before / DROP_INTERVALS[mode];
            if let Some(number) = known.history.len().checked_sub(1)
                && let Write::DropTable(table) = write(known.tables, mode, number)
                // In this round; the next write would create it again.
                && before <= number
                && progress.started(writer) == number + 1
                && progress.acknowledged(writer) == number + 1
            {
                let is_there = target.store.tables().iter().any(|name| name == TABLES[table]);
                assert!(!is_there, "{story}: `{}` was dropped and still exists", TABLES[table]);
            }
        }
        checkpoints += check_checkpoints(folder.path(), mode, &all, &progress, &story);
        target.check_some(&found, traffic(), &mut random).unwrap();
        target.store.scrub().unwrap_or_else(|error| panic!("{story}: scrub: {error}"));
    }
    let writes: usize = all.iter().map(|writer| writer.history.len()).sum();
    println!(
        "{:?}: {writes} writes by {writers} writers, {drops} tables dropped, {checkpoints} \
         checkpoints opened, {rounds} kills",
        settings::MODES[mode]
    );
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
    // Some are killed during start and opening.
    if writers == MOST_WRITERS && random.chance(1, 4) {
        return std::thread::sleep(Duration::from_micros(random.below(30_000) as u64));
    }
    let limit = Instant::now() + Duration::from_secs(60);
    while (0..writers).any(|writer| progress.acknowledged(writer) == from[writer]) {
        assert!(Instant::now() < limit, "{story}: the child acknowledges no write");
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
    /// Compares the content with what is allowed, and adopts it.
    fn check(&mut self, found: &Model, allowed: std::ops::RangeInclusive<usize>, story: &str) {
        while self.history.len() < *allowed.end() {
            self.model.apply(&write(self.tables, self.mode, self.history.len()));
            self.history.push(&self.model);
        }
        let found = found.only(self.tables);
        let Some(count) = self.history.find(&found, allowed.clone()) else {
            panic!(
                "{story}: the content is not of {allowed:?} writes, but of {:?}: {}",
                self.history.find(&found, 0..=self.history.len()),
                found.difference(&self.model)
            );
        };
        self.all = self.history.clone();
        self.history.cut(count);
        self.model = found;
    }
}

#[test]
fn kill_loses_nothing_without_syncs() {
    rounds(0, 1, 8);
    rounds(0, 2, 6);
}

#[test]
fn kill_loses_nothing_with_interval_syncs() {
    rounds(1, 2, 5);
}

#[test]
fn kill_loses_nothing_with_syncs() {
    rounds(2, 2, 5);
}

#[test]
fn kill_loses_nothing_of_concurrent_writers_and_checkpoints() {
    (0..settings::MODES.len()).for_each(|mode| rounds(mode, MOST_WRITERS, 7));
}
