//! The results file: opening it safely, and what is written to it.

use std::collections::{BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::disk_reserve::DiskReserve;
use crate::error::RecordError;
use crate::filter::RunFilter;
use crate::lock::ResultsLock;
use crate::read_extent::ReadExtent;
use crate::{load, schema, schema_check, write};
use model::{Execution, Run};

/// How long a reader or writer waits for another program's transaction to end.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// More than writing a run takes, so that each statement is parsed once.
const CACHED_STATEMENTS: usize = 32;

/// Bytes of the longest text or histogram of any file; a longer one is damage or malice.
const MAX_VALUE_BYTES: i32 = 64 << 20;

/// A results file: one SQLite database that holds executions and their runs.
///
/// Between calls it is one plain file (no write-ahead log) and may be copied as such. What
/// [`ResultsFile::write_run`] has acknowledged survives `kill -9` and a power cut.
#[derive(Debug)]
pub struct ResultsFile {
    // Dropped in this order: the lock outlives the connection.
    connection: Connection,
    path: PathBuf,
    lock: Option<ResultsLock>,
    /// How much disk space is reserved for the next write, and the reserved blocks.
    reserved_bytes: u64,
    reserve: Option<DiskReserve>,
}

/// Copy-on-write file systems free released space late, so a write is retried after these delays.
const RETRY_DELAYS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(2)];

/// What kind of database a file is.
enum FileState {
    /// Nothing was ever committed to it.
    Empty,
    /// A results file of this schema version.
    Results(i64),
    /// Another application's.
    Foreign,
}

impl ResultsFile {
    /// Makes a new results file; [`RecordError::Exists`] if the path is taken.
    pub fn create(path: impl AsRef<Path>) -> Result<ResultsFile, RecordError> {
        let path = path.as_ref();
        let lock = ResultsLock::take(path)?;
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => drop(file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(RecordError::Exists(path.to_owned()));
            }
            Err(error) => return Err(RecordError::io(path, error)),
        }
        match connect_for_writing(path, true) {
            Ok(connection) => Ok(ResultsFile::with_connection(connection, path, Some(lock))),
            Err(error) => {
                // The file is ours (the lock is still held) and empty, and would block the next
                // attempt.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Opens an existing file for reading and writing, and migrates an older schema.
    pub fn open(path: impl AsRef<Path>) -> Result<ResultsFile, RecordError> {
        let path = path.as_ref();
        if is_empty(path)? {
            return Err(RecordError::Empty(path.to_owned()));
        }
        ResultsFile::open_locked(path, false)
    }

    /// Opens what is there, or makes it. An empty file (all that a `create` leaves when it is
    /// killed) becomes a results file.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<ResultsFile, RecordError> {
        let path = path.as_ref();
        match is_empty(path) {
            Ok(_) => ResultsFile::open_locked(path, true),
            Err(RecordError::Missing(_)) => ResultsFile::create(path),
            Err(error) => Err(error),
        }
    }

    /// Opens for reading only: needs no permission to write, works on read-only media and while
    /// another process writes. An older schema is migrated in memory.
    pub fn read(path: impl AsRef<Path>) -> Result<ResultsFile, RecordError> {
        let path = path.as_ref();
        if is_empty(path)? {
            return Err(RecordError::Empty(path.to_owned()));
        }
        roll_back_journal(path);
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version =
            version(path, &connection)?.ok_or_else(|| RecordError::Empty(path.to_owned()))?;
        schema_check::check(path, &connection, false)?;
        if schema::changes_tables_since(version) {
            connection = schema::migrated_copy(&connection, version)
                .map_err(|error| RecordError::sqlite(path, error))?;
        }
        Ok(ResultsFile::with_connection(connection, path, None))
    }

    fn open_locked(path: &Path, adopt: bool) -> Result<ResultsFile, RecordError> {
        safe_file::check_output(path)?;
        let lock = ResultsLock::take(path)?;
        let connection = connect_for_writing(path, adopt)?;
        Ok(ResultsFile::with_connection(connection, path, Some(lock)))
    }

    fn with_connection(
        connection: Connection,
        path: &Path,
        lock: Option<ResultsLock>,
    ) -> ResultsFile {
        ResultsFile { connection, path: path.to_owned(), lock, reserved_bytes: 0, reserve: None }
    }

    fn sql<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RecordError> {
        query(&self.connection).map_err(|error| RecordError::sqlite(&self.path, error))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was opened for writing.
    pub fn writable(&self) -> bool {
        self.lock.is_some()
    }

    /// Reserves `bytes` of the disk until the file is closed, so that a run can be stored even if
    /// the disk fills up meanwhile. Call it before the run.
    ///
    /// # Errors [`RecordError::NoRoom`] where the disk has less.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), RecordError> {
        let reserve = DiskReserve::take(&self.path, bytes);
        self.reserved_bytes = bytes;
        self.reserve = Some(reserve.map_err(|error| match RecordError::io(&self.path, error) {
            RecordError::Full(path) => RecordError::NoRoom { path, bytes },
            other => other,
        })?);
        Ok(())
    }

    /// Renews the reservation of [`ResultsFile::reserve`] if a run has used it up.
    ///
    /// # Errors As [`ResultsFile::reserve`].
    pub fn reserve_again(&mut self) -> Result<(), RecordError> {
        match self.reserved_bytes > 0 && self.reserve.is_none() {
            true => self.reserve(self.reserved_bytes),
            false => Ok(()),
        }
    }

    /// Stores an execution and its plan, before its first run.
    pub fn begin(&mut self, execution: &Execution) -> Result<(), RecordError> {
        self.change(|transaction, path| write::execution(transaction, path, execution))
    }

    /// Stores a whole run in one transaction. When this returns, neither a `kill -9` nor a power
    /// cut loses it; when it fails, nothing of this run and everything of the earlier ones is in
    /// the file.
    ///
    /// A reading that is not a number is stored as unavailable, with that reason.
    pub fn write_run(&mut self, run: &Run) -> Result<(), RecordError> {
        self.change(|transaction, path| write::run(transaction, path, run))
    }

    /// Adds a note on a deviation from the plan.
    pub fn note(&mut self, execution_id: &str, text: &str) -> Result<(), RecordError> {
        self.change(|transaction, path| write::note(transaction, path, execution_id, text))
    }

    /// Stores executions of other files, with their runs, in one transaction.
    pub(crate) fn write_executions(
        &mut self,
        all: &[(&Execution, Vec<&Run>)],
    ) -> Result<(), RecordError> {
        self.change(|transaction, path| {
            for (execution, runs) in all {
                write::execution(transaction, path, execution)?;
                for run in runs {
                    write::run(transaction, path, run)?;
                }
            }
            Ok(())
        })
    }

    /// Marks an execution as finished. `at`: RFC 3339, UTC.
    pub fn finish(&mut self, execution_id: &str, at: &str) -> Result<(), RecordError> {
        self.change(|transaction, path| write::finish(transaction, path, execution_id, at))
    }

    /// Marks a finished execution as unfinished and deletes its notes.
    pub fn reopen(&mut self, execution_id: &str) -> Result<(), RecordError> {
        self.change(|transaction, path| write::reopen(transaction, path, execution_id))
    }

    fn change(
        &mut self,
        write: impl Fn(&Connection, &Path) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let mut result = self.attempt(&write);
        if !is_out_of_space(&result) || self.reserve.take().is_none() {
            return result;
        }
        for pause in RETRY_DELAYS {
            std::thread::sleep(pause);
            result = self.attempt(&write);
            if !is_out_of_space(&result) {
                break;
            }
        }
        // For the next run; if the disk is full, `reserve_again` reports it.
        self.reserve = DiskReserve::take(&self.path, self.reserved_bytes).ok();
        result
    }

    /// One transaction.
    fn attempt(
        &mut self,
        write: &impl Fn(&Connection, &Path) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let path = &self.path;
        if self.lock.is_none() {
            return Err(RecordError::ReadOnly(path.clone()));
        }
        let failed = |error| RecordError::sqlite(path, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        write(&transaction, path)?;
        transaction.commit().map_err(failed)
    }

    /// Every execution, in the order in which they began.
    pub fn executions(&self) -> Result<Vec<Execution>, RecordError> {
        load::executions(&self.connection, &self.path, false)
    }

    /// The runs that the filter selects, complete with their histograms, by execution and
    /// ordinal. A filter with conditions that selects nothing is a [`FilterError`].
    ///
    /// [`FilterError`]: crate::FilterError
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, RecordError> {
        let snapshot = self.snapshot()?;
        let keys = snapshot.matching_keys(filter)?;
        snapshot.runs(keys.as_ref(), &ReadExtent::Whole, &HashSet::new())
    }

    /// All queries through it see one state of the file, even while another process writes.
    pub(crate) fn snapshot(&self) -> Result<FileSnapshot<'_>, RecordError> {
        let sql = self
            .connection
            .unchecked_transaction()
            .map_err(|error| RecordError::sqlite(&self.path, error))?;
        Ok(FileSnapshot { sql, path: &self.path })
    }

    /// The ordinals of an execution's stored runs; none for an unknown execution.
    pub fn finished_runs(&self, execution_id: &str) -> Result<BTreeSet<u32>, RecordError> {
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

/// Whether a write may have failed for lack of space. A quota or late allocation shows as a write
/// error, a lack of inodes as a journal that cannot be opened.
fn is_out_of_space(result: &Result<(), RecordError>) -> bool {
    matches!(
        result,
        Err(RecordError::Full(_) | RecordError::Unreadable(_) | RecordError::DiskFailed { .. })
    )
}

/// A results file as it was at one instant.
pub(crate) struct FileSnapshot<'a> {
    sql: rusqlite::Transaction<'a>,
    path: &'a Path,
}

impl FileSnapshot<'_> {
    /// The keys of the runs that a filter selects; none where it selects all.
    pub fn matching_keys(&self, filter: &RunFilter) -> Result<Option<BTreeSet<i64>>, RecordError> {
        if filter.is_all() {
            return Ok(None);
        }
        let heads = load::heads(&self.sql, self.path)?;
        Ok(Some(filter.select(&heads)?.into_iter().map(|head| head.key).collect()))
    }

    /// The key of every run, by execution and ordinal.
    pub fn keys(&self) -> Result<Vec<i64>, RecordError> {
        let query = "SELECT key FROM run ORDER BY execution_key, ordinal";
        load::rows(&self.sql, self.path, "run", query, |row| row.get(0))
    }

    pub fn count(&self) -> Result<usize, RecordError> {
        self.sql
            .query_row("SELECT count(*) FROM run", [], |row| row.get(0))
            .map_err(|error| RecordError::sqlite(self.path, error))
    }

    pub fn runs(
        &self,
        keys: Option<&BTreeSet<i64>>,
        extent: &ReadExtent,
        designed: &HashSet<String>,
    ) -> Result<Vec<Run>, RecordError> {
        load::runs(&self.sql, self.path, keys, extent, designed)
    }

    pub fn executions(&self, overview: bool) -> Result<Vec<Execution>, RecordError> {
        load::executions(&self.sql, self.path, overview)
    }
}

/// Whether an existing file has no bytes; an error if it is none.
fn is_empty(path: &Path) -> Result<bool, RecordError> {
    // Not opened: closing it would drop SQLite's locks on it.
    let metadata = std::fs::metadata(path).map_err(|error| RecordError::io(path, error))?;
    if metadata.is_file() {
        Ok(metadata.len() == 0)
    } else {
        Err(RecordError::NotAFile(path.to_owned()))
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, RecordError> {
    // No SQLITE_OPEN_URI: a path with `?` in it is a path.
    check_companions(path)?;
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| RecordError::sqlite(path, error))?;
    let prepare = || {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
        // The file may come from anywhere, so its views must not run functions with side effects.
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "foreign_keys", true)
    };
    match prepare() {
        Ok(()) => Ok(connection),
        Err(error) => Err(RecordError::sqlite(path, error)),
    }
}

/// SQLite finds a journal by its name and applies it, so one planted by another user could change
/// the file.
fn check_companions(path: &Path) -> Result<(), RecordError> {
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
fn connect_for_writing(path: &Path, adopt: bool) -> Result<Connection, RecordError> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let from = match version(path, &connection)? {
        Some(version) => version,
        None if adopt => 0,
        None => return Err(RecordError::Empty(path.to_owned())),
    };
    schema_check::check(path, &connection, true)?;
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
        Ok(false) => return Err(RecordError::ReadOnly(path.to_owned())),
        Err(error) => return Err(RecordError::sqlite(path, error)),
    }
    sync_folder(path)?;
    Ok(connection)
}

/// A rollback journal, deleted at each commit, rather than a write-ahead log: the results are one
/// file whenever no run is being written. `EXTRA` also syncs the folder after the journal is gone;
/// without it a power cut could bring the journal back and undo the commit.
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
fn version(path: &Path, connection: &Connection) -> Result<Option<i64>, RecordError> {
    match state(connection).map_err(|error| RecordError::sqlite(path, error))? {
        FileState::Empty => Ok(None),
        FileState::Foreign => Err(RecordError::Foreign(path.to_owned())),
        FileState::Results(found) if found > schema::VERSION => {
            Err(RecordError::NewerSchema { path: path.to_owned(), found, known: schema::VERSION })
        }
        FileState::Results(found) => Ok(Some(found)),
    }
}

/// A killed writer leaves a journal. SQLite rolls it back at the next read, but only through a
/// connection that may write. Where that is impossible, the read that follows reports it.
fn roll_back_journal(path: &Path) {
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

/// Makes the name of a new file durable.
fn sync_folder(path: &Path) -> Result<(), RecordError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| RecordError::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path) -> ResultsFile {
        ResultsFile::create(folder.join("results.sqlite")).unwrap()
    }

    fn sample_execution() -> Execution {
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
            design: model::Design::default(),
            notes: Vec::new(),
        }
    }

    /// With one latency and one reading.
    fn sample_run() -> Run {
        let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
        histogram.auto(true);
        histogram.record_n(12_345, 7).unwrap();
        Run {
            id: "r".to_owned(),
            execution: "e".to_owned(),
            ordinal: 0,
            label: "redis etc".to_owned(),
            phase: model::Phase::Measure,
            settings: [("store".to_owned(), "redis".to_owned())].into(),
            store_version: "Redis 7.0.15".to_owned(),
            threads: 1,
            pacing: model::LoopKind::Closed { think_s: 0.0 },
            started_at: String::new(),
            seconds: 1.0,
            operations: 7,
            verified: 7,
            misses: 0,
            failures: Vec::new(),
            invalid_because: Vec::new(),
            warnings: Vec::new(),
            latencies: vec![model::RunLatency {
                op: model::Op::Read.into(),
                clock: model::LatencyClock::Service,
                histogram: histogram.into(),
            }]
            .into(),
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
            profile: None,
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

    #[test]
    fn a_file_of_the_first_version_is_read_and_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.sqlite");
        let (execution, run) = (sample_execution(), sample_run());
        let mut old = Connection::open(&path).unwrap();
        let transaction = old.transaction().unwrap();
        schema::first_version(&transaction).unwrap();
        write::execution(&transaction, &path, &execution).unwrap();
        write::run(&transaction, &path, &run).unwrap();
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

        // After it was opened for writing, values that only the newer schema has can be stored.
        let mut file = ResultsFile::open(&path).unwrap();
        let mut second = run.clone();
        (second.id, second.ordinal) = ("s".to_owned(), 1);
        let mut of_server = second.latencies[0].clone();
        of_server.op = model::LatencyScope::Any;
        of_server.clock = model::LatencyClock::Server;
        second.latencies = vec![of_server].into();
        file.write_run(&second).unwrap();
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
    fn a_file_locked_by_another_program_is_busy_after_the_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path());
        file.connection.busy_timeout(Duration::from_millis(20)).unwrap();
        let other = Connection::open(file.path()).unwrap();
        other.execute_batch("BEGIN; SELECT * FROM run").unwrap();
        let execution = sample_execution();
        let error = file.begin(&execution).unwrap_err();
        assert!(matches!(error, RecordError::Busy(_)), "{error}");
        other.execute_batch("COMMIT").unwrap();
        file.begin(&execution).unwrap();
        assert_eq!(file.executions().unwrap(), [execution]);
    }
}
