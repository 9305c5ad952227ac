//! The results file: opening it safely, and what is written to it.

use std::collections::{BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::error::Error;
use crate::extent::ReadExtent;
use crate::filter::RunFilter;
use crate::lock::ResultsLock;
use crate::reserve::DiskReserve;
use crate::run::{Execution, Run};
use crate::{keep, load, schema, shape};

/// How long a reader or writer waits for another program's transaction to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// More than keeping a run takes: of thousands each is parsed once.
const STATEMENTS: usize = 32;

/// Bytes of the longest text or histogram of any file; what is longer is damage or malice.
const LARGEST_VALUE: i32 = 64 << 20;

/// A results file: one SQLite database that holds executions and their runs.
///
/// Between calls it is one plain file (no write-ahead log beside it) and may be copied as
/// such. What [`File::keep`] has acknowledged survives `kill -9` and a power cut.
#[derive(Debug)]
pub struct ResultsFile {
    // Dropped in this order: the lock outlives the connection.
    connection: Connection,
    path: PathBuf,
    lock: Option<ResultsLock>,
    /// How much of the disk is set aside for what is written next, and the blocks themselves.
    room: u64,
    reserve: Option<DiskReserve>,
}

/// Waits for the space that was given back: copy-on-write file systems collect it late.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(2)];

/// What a database turns out to be.
enum FileState {
    /// Nothing was ever committed to it.
    Empty,
    /// A results file of this schema version.
    Results(i64),
    /// Another application's.
    Foreign,
}

impl ResultsFile {
    /// Makes a new results file; [`Error::Exists`] if the path is taken.
    pub fn create(path: impl AsRef<Path>) -> Result<ResultsFile, Error> {
        let path = path.as_ref();
        let lock = ResultsLock::take(path)?;
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(reserved) => drop(reserved),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists(path.to_owned()));
            }
            Err(error) => return Err(Error::io(path, error)),
        }
        match writing(path, true) {
            Ok(connection) => Ok(ResultsFile::over(connection, path, Some(lock))),
            Err(error) => {
                // It is ours (the lock is still held), holds nothing, and would only be in
                // the way of the next attempt.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Opens an existing file for reading and writing, and migrates an older schema.
    pub fn open(path: impl AsRef<Path>) -> Result<ResultsFile, Error> {
        let path = path.as_ref();
        if is_empty(path)? {
            return Err(Error::Empty(path.to_owned()));
        }
        ResultsFile::locked(path, false)
    }

    /// Opens what is there, or makes it. An empty file (all that a `create` leaves when it is
    /// killed) becomes a results file.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<ResultsFile, Error> {
        let path = path.as_ref();
        match is_empty(path) {
            Ok(_) => ResultsFile::locked(path, true),
            Err(Error::Missing(_)) => ResultsFile::create(path),
            Err(error) => Err(error),
        }
    }

    /// Opens for reading only: needs no permission to write, works on read-only media and
    /// beside a writer. An older schema is read as it is.
    pub fn read(path: impl AsRef<Path>) -> Result<ResultsFile, Error> {
        let path = path.as_ref();
        if is_empty(path)? {
            return Err(Error::Empty(path.to_owned()));
        }
        undo_unfinished(path);
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version = version(path, &connection)?.ok_or_else(|| Error::Empty(path.to_owned()))?;
        shape::check(path, &connection, false)?;
        if version < schema::VERSION {
            connection = schema::migrated_copy(&connection, version)
                .map_err(|error| Error::sqlite(path, error))?;
        }
        Ok(ResultsFile::over(connection, path, None))
    }

    fn locked(path: &Path, adopt: bool) -> Result<ResultsFile, Error> {
        safe_file::check_output(path)?;
        let lock = ResultsLock::take(path)?;
        let connection = writing(path, adopt)?;
        Ok(ResultsFile::over(connection, path, Some(lock)))
    }

    fn over(connection: Connection, path: &Path, lock: Option<ResultsLock>) -> ResultsFile {
        ResultsFile { connection, path: path.to_owned(), lock, room: 0, reserve: None }
    }

    fn sql<T>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        ask(&self.connection).map_err(|error| Error::sqlite(&self.path, error))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was opened for writing.
    pub fn writable(&self) -> bool {
        self.lock.is_some()
    }

    /// Sets `bytes` of the disk aside until the file is closed, for what is written next: what a
    /// run came to can be kept then though others have filled the disk meanwhile. Call it before
    /// the run.
    ///
    /// # Errors
    /// [`Error::NoRoom`] where the disk has not so much.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), Error> {
        let taken = DiskReserve::take(&self.path, bytes);
        self.room = bytes;
        self.reserve = Some(taken.map_err(|error| match Error::io(&self.path, error) {
            Error::Full(path) => Error::NoRoom { path, bytes },
            other => other,
        })?);
        Ok(())
    }

    /// Sets aside again what [`File::reserve`] did, where a run has used it up.
    ///
    /// # Errors
    /// As [`File::reserve`].
    pub fn reserve_again(&mut self) -> Result<(), Error> {
        match self.room > 0 && self.reserve.is_none() {
            true => self.reserve(self.room),
            false => Ok(()),
        }
    }

    /// Keeps what was asked and planned, before the first run of it.
    pub fn begin(&mut self, execution: &Execution) -> Result<(), Error> {
        self.change(|transaction, path| keep::execution(transaction, path, execution))
    }

    /// Keeps a whole run in one transaction. When this returns, neither a `kill -9` nor a
    /// power cut loses it; when it fails, nothing of this run and everything of the earlier
    /// ones is in the file.
    ///
    /// A reading that is not a number is kept as unavailable, with that reason.
    pub fn keep(&mut self, run: &Run) -> Result<(), Error> {
        self.change(|transaction, path| keep::run(transaction, path, run))
    }

    /// Adds to what was done otherwise than planned.
    pub fn note(&mut self, execution_id: &str, text: &str) -> Result<(), Error> {
        self.change(|transaction, path| keep::note(transaction, path, execution_id, text))
    }

    /// Keeps executions that have ended elsewhere, with their runs, in one transaction: all of
    /// it or nothing.
    pub(crate) fn keep_all(&mut self, all: &[(&Execution, Vec<&Run>)]) -> Result<(), Error> {
        self.change(|transaction, path| {
            for (execution, runs) in all {
                keep::execution(transaction, path, execution)?;
                for run in runs {
                    keep::run(transaction, path, run)?;
                }
            }
            Ok(())
        })
    }

    /// Notes that every run of the plan was dealt with. `at`: RFC 3339, UTC.
    pub fn finish(&mut self, execution_id: &str, at: &str) -> Result<(), Error> {
        self.change(|transaction, path| keep::finish(transaction, path, execution_id, at))
    }

    /// Begins an execution again that had ended: what its end said of it is void.
    pub fn go_on(&mut self, execution_id: &str) -> Result<(), Error> {
        self.change(|transaction, path| keep::go_on(transaction, path, execution_id))
    }

    fn change(
        &mut self,
        write: impl Fn(&Connection, &Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut ended = self.attempt(&write);
        if !is_for_room(&ended) || self.reserve.take().is_none() {
            return ended;
        }
        for pause in PAUSES {
            std::thread::sleep(pause);
            ended = self.attempt(&write);
            if !is_for_room(&ended) {
                break;
            }
        }
        // For the next run, if the disk has that much; if not, `reserve_again` says so.
        self.reserve = DiskReserve::take(&self.path, self.room).ok();
        ended
    }

    /// One transaction.
    fn attempt(
        &mut self,
        write: &impl Fn(&Connection, &Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path = &self.path;
        if self.lock.is_none() {
            return Err(Error::ReadOnly(path.clone()));
        }
        let failed = |error| Error::sqlite(path, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        write(&transaction, path)?;
        transaction.commit().map_err(failed)
    }

    /// Every execution, in the order in which they began.
    pub fn executions(&self) -> Result<Vec<Execution>, Error> {
        load::executions(&self.connection, &self.path, false)
    }

    /// The runs that the filter selects, complete with their histograms, by execution and
    /// ordinal. A filter with conditions that selects nothing is a [`FilterError`].
    ///
    /// [`FilterError`]: crate::FilterError
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, Error> {
        let snapshot = self.snapshot()?;
        let keys = snapshot.choose(filter)?;
        snapshot.runs(keys.as_ref(), &ReadExtent::Whole, &HashSet::new())
    }

    /// Everything that is asked through it is of one instant, beside a writer too.
    pub(crate) fn snapshot(&self) -> Result<FileSnapshot<'_>, Error> {
        let sql = self
            .connection
            .unchecked_transaction()
            .map_err(|error| Error::sqlite(&self.path, error))?;
        Ok(FileSnapshot { sql, path: &self.path })
    }

    /// The ordinals of the runs that an execution has kept; none for an unknown execution.
    pub fn done(&self, execution_id: &str) -> Result<BTreeSet<u32>, Error> {
        self.sql(|connection| {
            connection
                .prepare(
                    "SELECT ordinal FROM run JOIN execution ON execution.key = execution_key
                     WHERE execution.id = ?1",
                )?
                .query_map([execution_id], |row| row.get(0))?
                .collect()
        })
    }
}

/// Whether it may have failed for want of room. A quota, and a disk that allocates late, show as
/// errors of writing; one without a free inode as a journal that cannot be opened.
fn is_for_room(ended: &Result<(), Error>) -> bool {
    match ended {
        Err(Error::Full(_) | Error::Unreadable(_)) => true,
        Err(Error::Sqlite { source, .. }) => {
            source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
        }
        _ => false,
    }
}

/// A results file as it was at one instant.
pub(crate) struct FileSnapshot<'a> {
    sql: rusqlite::Transaction<'a>,
    path: &'a Path,
}

impl FileSnapshot<'_> {
    /// The keys of the runs that a filter selects; none where it selects all.
    pub fn choose(&self, filter: &RunFilter) -> Result<Option<BTreeSet<i64>>, Error> {
        if filter.is_all() {
            return Ok(None);
        }
        let heads = load::heads(&self.sql, self.path)?;
        Ok(Some(filter.choose(&heads)?.into_iter().map(|head| head.key).collect()))
    }

    /// The key of every run, by execution and ordinal.
    pub fn keys(&self) -> Result<Vec<i64>, Error> {
        let query = "SELECT key FROM run ORDER BY execution_key, ordinal";
        load::rows(&self.sql, self.path, "run", query, |row| row.get(0))
    }

    pub fn count(&self) -> Result<usize, Error> {
        self.sql
            .query_row("SELECT count(*) FROM run", [], |row| row.get(0))
            .map_err(|error| Error::sqlite(self.path, error))
    }

    pub fn runs(
        &self,
        keys: Option<&BTreeSet<i64>>,
        extent: &ReadExtent,
        designed: &HashSet<String>,
    ) -> Result<Vec<Run>, Error> {
        load::runs(&self.sql, self.path, keys, extent, designed)
    }

    pub fn executions(&self, overview: bool) -> Result<Vec<Execution>, Error> {
        load::executions(&self.sql, self.path, overview)
    }
}

/// Whether an existing file has no bytes; an error if it is none.
fn is_empty(path: &Path) -> Result<bool, Error> {
    // Only looked at: to open and close it here would drop SQLite's locks on it.
    let found = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    if found.is_file() { Ok(found.len() == 0) } else { Err(Error::NotAFile(path.to_owned())) }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    // No SQLITE_OPEN_URI: a path with `?` in it is a path.
    check_companions(path)?;
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| Error::sqlite(path, error))?;
    let prepare = || {
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_VALUE)?;
        // The file may come from anywhere: its views run no function with side effects.
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "foreign_keys", true)
    };
    match prepare() {
        Ok(()) => Ok(connection),
        Err(error) => Err(Error::sqlite(path, error)),
    }
}

/// SQLite finds the journal of a killed writer by its name and obeys it: a stranger's would change
/// the file as he likes.
fn check_companions(path: &Path) -> Result<(), Error> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for ending in ["-journal", "-wal"] {
        let mut companion = real.as_os_str().to_owned();
        companion.push(ending);
        safe_file::check_companion(Path::new(&companion), &real)?;
    }
    Ok(())
}

/// The connection of a writer that holds the lock, with the schema at its newest. `adopt`
/// makes an empty file a results file.
fn writing(path: &Path, adopt: bool) -> Result<Connection, Error> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let from = match version(path, &connection)? {
        Some(version) => version,
        None if adopt => 0,
        None => return Err(Error::Empty(path.to_owned())),
    };
    shape::check(path, &connection, true)?;
    let mut prepare = || {
        // SQLite falls back to reading by itself where it may not write.
        if connection.is_readonly("main")? {
            return Ok(false);
        }
        durable(&connection)?;
        if from < schema::VERSION {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            schema::migrate(&transaction, from)?;
            transaction.commit()?;
        }
        Ok(true)
    };
    match prepare() {
        Ok(true) => {}
        Ok(false) => return Err(Error::ReadOnly(path.to_owned())),
        Err(error) => return Err(Error::sqlite(path, error)),
    }
    sync_folder(path)?;
    Ok(connection)
}

/// A rollback journal, deleted at each commit, rather than a write-ahead log: the results are
/// one file whenever no run is being kept. `EXTRA` also syncs the folder after the journal is
/// gone; without it a power cut could bring the journal back and undo the commit.
fn durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "EXTRA")
}

fn state(connection: &Connection) -> rusqlite::Result<FileState> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    let version = number("user_version")?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    Ok(match (application, version, objects) {
        (schema::APPLICATION_ID, 1.., 1..) => FileState::Results(version),
        (0, 0, 0) => FileState::Empty,
        _ => FileState::Foreign,
    })
}

/// The schema version of a results file that this kvmeter can read; none if it is empty.
fn version(path: &Path, connection: &Connection) -> Result<Option<i64>, Error> {
    match state(connection).map_err(|error| Error::sqlite(path, error))? {
        FileState::Empty => Ok(None),
        FileState::Foreign => Err(Error::Foreign(path.to_owned())),
        FileState::Results(found) if found > schema::VERSION => {
            Err(Error::Newer { path: path.to_owned(), found, known: schema::VERSION })
        }
        FileState::Results(found) => Ok(Some(found)),
    }
}

/// A journal beside the file is what a killed writer leaves. SQLite undoes that half of a
/// transaction at the next read, but only through a connection that may write. Where that is
/// impossible, the reading that follows says so.
fn undo_unfinished(path: &Path) {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    if Path::new(&journal).exists()
        && let Ok(connection) = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    {
        let _ = connection
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))
            .optional();
    }
}

/// Makes the name of a new file last, too.
fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Error::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path) -> ResultsFile {
        ResultsFile::create(folder.join("results.sqlite")).unwrap()
    }

    fn an_execution() -> Execution {
        Execution {
            id: "e".to_owned(),
            study: "bench".to_owned(),
            question: None,
            spec: String::new(),
            seed: 0,
            command: Vec::new(),
            version: String::new(),
            started_at: String::new(),
            finished_at: None,
            machine: model::Machine::default(),
            plan: Vec::new(),
            design: crate::Design::default(),
            notes: Vec::new(),
        }
    }

    /// With one latency and one reading.
    fn a_run() -> Run {
        let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
        histogram.auto(true);
        histogram.record_n(12_345, 7).unwrap();
        Run {
            id: "r".to_owned(),
            execution: "e".to_owned(),
            ordinal: 0,
            label: "redis etc".to_owned(),
            phase: crate::Phase::Measure,
            settings: [("store".to_owned(), "redis".to_owned())].into(),
            store_version: "Redis 7.0.15".to_owned(),
            threads: 1,
            pacing: crate::LoopKind::Closed { think_s: 0.0 },
            started_at: String::new(),
            seconds: 1.0,
            operations: 7,
            verified: 7,
            misses: 0,
            failures: Vec::new(),
            invalid_because: Vec::new(),
            warnings: Vec::new(),
            latencies: vec![crate::RunLatency {
                op: model::Op::Read.into(),
                clock: crate::LatencyClock::Service,
                histogram: histogram.into(),
            }],
            series: Vec::new(),
            readings: vec![model::Reading {
                signal: "cache.hit_ratio".to_owned(),
                answer: model::ReadingValue::Value(0.5),
                unit: model::Unit::Ratio,
                scope: model::Scope::Client,
                source: "answers".to_owned(),
                window_s: 1.0,
                origin: model::Origin::Measured,
            }],
            tax: None,
            samples: Vec::new(),
            stream: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_commit_is_synced_and_leaves_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path());
        let text = |pragma| -> String {
            file.connection
                .query_row(
                    &format!("SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}"),
                    [],
                    |r| r.get(0),
                )
                .unwrap()
        };
        assert_eq!(text("journal_mode"), "delete");
        assert_eq!(text("synchronous"), "3", "EXTRA");
        assert_eq!(text("foreign_keys"), "1");
    }

    /// Files of the first version, read where they lie and migrated when they are written to.
    #[test]
    fn a_file_of_the_first_version_is_read_and_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.sqlite");
        let (execution, run) = (an_execution(), a_run());
        let mut old = Connection::open(&path).unwrap();
        let transaction = old.transaction().unwrap();
        schema::first_version(&transaction).unwrap();
        keep::execution(&transaction, &path, &execution).unwrap();
        keep::run(&transaction, &path, &run).unwrap();
        transaction.commit().unwrap();
        let without = old.prepare("SELECT hit_ratio FROM run_summary");
        assert!(without.is_err(), "the first version had no such column");
        drop(without);
        drop(old);

        let before = std::fs::read(&path).unwrap();
        let file = ResultsFile::read(&path).unwrap();
        assert_eq!(file.executions().unwrap(), [execution]);
        assert_eq!(file.runs(&RunFilter::all()).unwrap(), std::slice::from_ref(&run));
        assert_eq!(std::fs::read(&path).unwrap(), before, "reading leaves it as it is");
        drop(file);

        // What only the newer version knows can be kept after it was opened for writing.
        let mut file = ResultsFile::open(&path).unwrap();
        let mut second = run.clone();
        (second.id, second.ordinal) = ("s".to_owned(), 1);
        second.latencies[0].op = crate::LatencyScope::Any;
        second.latencies[0].clock = crate::LatencyClock::Server;
        file.keep(&second).unwrap();
        assert_eq!(file.runs(&RunFilter::all()).unwrap().len(), 2);
        let hits: Vec<Option<f64>> = file
            .sql(|sql| {
                sql.prepare("SELECT hit_ratio FROM run_summary ORDER BY run")?
                    .query_map([], |row| row.get(0))?
                    .collect()
            })
            .unwrap();
        assert_eq!(hits, [Some(0.5), Some(0.5)]);
    }

    #[test]
    fn another_program_that_holds_the_file_is_waited_for_and_then_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path());
        file.connection.busy_timeout(Duration::from_millis(20)).unwrap();
        let other = Connection::open(file.path()).unwrap();
        other.execute_batch("BEGIN; SELECT * FROM run").unwrap();
        let execution = an_execution();
        let error = file.begin(&execution).unwrap_err();
        assert!(matches!(error, Error::Busy(_)), "{error}");
        other.execute_batch("COMMIT").unwrap();
        file.begin(&execution).unwrap();
        assert_eq!(file.executions().unwrap(), [execution]);
    }
}
