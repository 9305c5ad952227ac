//! SQLite: one table of keys and values, a connection a thread, a transaction an operation.

use std::path::PathBuf;
use std::time::Duration;

use ::rusqlite::{Connection, Error, ErrorCode, OptionalExtension, params};
use model::{Bytes, Unavailable, Unit};

use crate::{
    Capabilities, EmbeddedAdapter, LongestValue, OptionInfo, Session, Statistic, Store, StoreError,
    StoreOptions, StoreUrl, Survives, on_off,
};

const FILE: &str = "data.sqlite";
/// SQLite's own limit on a row (`SQLITE_MAX_LENGTH`), less the longest key.
const LONGEST_VALUE: u64 = 999_000_000;
const LONGEST_KEY: usize = 64 << 10;
/// A thread waits so long for the writer before it, at most.
const BUSY: Duration = Duration::from_secs(60);

const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("cache", "2MiB", "cache of pages of each thread"),
    OptionInfo::new("mmap", "0", "size of the file that is mapped instead"),
    OptionInfo::new("page_size", "4096", "bytes of a page, a power of two from 512 to 65536")
        .shaping(),
    OptionInfo::new("journal", "wal", "wal, or delete: a journal of old pages for each write"),
    OptionInfo::new("sync", "off", "each write waits until it is on the device"),
];

const GET: &str = "SELECT value FROM data WHERE key = ?1";
const PUT: &str = "INSERT INTO data VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
const DELETE: &str = "DELETE FROM data WHERE key = ?1";
const SCAN: &str = "SELECT key, value FROM data WHERE key >= ?1 ORDER BY key LIMIT ?2";

#[derive(Debug, Clone, Copy)]
struct Config {
    cache: u64,
    mmap: u64,
    page_size: u32,
    journal: &'static str,
    sync: bool,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        let page_size = given.integer("page_size", 512, 65_536)?.unwrap_or(4096_u32);
        if !page_size.is_power_of_two() {
            return Err(StoreError::Request(
                "option `page_size` of `sqlite` takes a power of two from 512 to 65536".to_owned(),
            ));
        }
        let journals = [("wal", "wal"), ("delete", "delete")];
        Ok(Self {
            cache: given.bytes("cache")?.unwrap_or(2 << 20),
            mmap: given.bytes("mmap")?.unwrap_or(0),
            page_size,
            journal: given.choice("journal", &journals)?.unwrap_or("wal"),
            sync: given.flag("sync")?.unwrap_or(false),
        })
    }

    /// A connection with these settings.
    fn connect(&self, file: &PathBuf) -> Result<Connection, Error> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(BUSY)?;
        // Negative: in KiB instead of pages.
        let cache = -i64::try_from(self.cache / 1024).unwrap_or(i64::MAX);
        connection.pragma_update(None, "page_size", self.page_size)?;
        connection.pragma_update(None, "journal_mode", self.journal)?;
        // In the log and not synced, a commit survives a kill; FULL syncs it.
        let synchronous = if self.sync { "FULL" } else { "OFF" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "cache_size", cache)?;
        connection.pragma_update(
            None,
            "mmap_size",
            i64::try_from(self.mmap).unwrap_or(i64::MAX),
        )?;
        Ok(connection)
    }
}

/// A database file with one table.
pub struct Sqlite {
    file: PathBuf,
    config: Config,
}

impl EmbeddedAdapter for Sqlite {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LONGEST_KEY: usize = LONGEST_KEY;
    const VARIANTS: &'static [&'static str] =
        &["?sync=on&page_size=8192", "?journal=delete&cache=8MiB&mmap=64MiB"];

    fn longest_value(_url: &StoreUrl) -> Result<Option<LongestValue>, StoreError> {
        Ok(Some(LongestValue { bytes: LONGEST_VALUE, raised_by: None }))
    }

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(|_| ())
    }

    fn linked() -> Result<String, Unavailable> {
        Ok(format!("SQLite {}", ::rusqlite::version()))
    }
}

impl Store for Sqlite {
    type Session<'a> = SqliteSession;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let (config, file) = (Config::read(url)?, url.data_path().join(FILE));
        let connection = config.connect(&file).map_err(failed)?;
        let table = "CREATE TABLE IF NOT EXISTS data (key BLOB PRIMARY KEY, value BLOB NOT NULL) \
                     WITHOUT ROWID";
        connection.execute(table, []).map_err(failed)?;
        Ok(Self { file, config })
    }

    fn capabilities(&self) -> Capabilities {
        let survives = Survives::synced(self.config.sync);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        format!("SQLite {}", ::rusqlite::version())
    }

    fn options(&self) -> Vec<(String, String)> {
        let Config { cache, mmap, page_size, journal, sync } = self.config;
        let all = [
            ("cache", Bytes(cache).to_string()),
            ("mmap", Bytes(mmap).to_string()),
            ("page_size", page_size.to_string()),
            ("journal", journal.to_owned()),
            ("sync", on_off(sync)),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn session(&self) -> Result<SqliteSession, StoreError> {
        Ok(SqliteSession { connection: self.config.connect(&self.file).map_err(failed)? })
    }

    /// Writes the log back into the file.
    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        let connection = self.config.connect(&self.file).map_err(failed)?;
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        connection.query_row(checkpoint, [], |_| Ok(())).map_err(failed)
    }

    fn statistics(&self) -> Vec<Statistic> {
        let Ok(connection) = self.config.connect(&self.file) else { return Vec::new() };
        let number = |name: &str| -> Option<f64> {
            let value: i64 = connection.pragma_query_value(None, name, |row| row.get(0)).ok()?;
            Some(value as f64)
        };
        let log = std::fs::metadata(self.file.with_extension("sqlite-wal"));
        [
            ("pages", number("page_count"), Unit::Count),
            ("pages.free", number("freelist_count"), Unit::Count),
            ("log", Some(log.map_or(0.0, |log| log.len() as f64)), Unit::Bytes),
        ]
        .into_iter()
        .filter_map(|(name, value, unit)| {
            Some(Statistic { name: name.to_owned(), value: value?, unit })
        })
        .collect()
    }
}

/// One thread's connection, with its prepared statements.
pub struct SqliteSession {
    connection: Connection,
}

impl Session for SqliteSession {
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached(GET).map_err(failed)?;
        let found = statement.query_row([key], |row| {
            on_value(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        found.optional().map(|found| found.is_some()).map_err(failed)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(PUT).map_err(failed)?;
        statement.execute(params![key, value]).map(drop).map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(DELETE).map_err(failed)?;
        statement.execute([key]).map(drop).map_err(failed)
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut statement = self.connection.prepare_cached(SCAN).map_err(failed)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![from, limit]).map_err(failed)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(failed)? {
            let bytes = |at| row.get_ref(at).and_then(|value| Ok(value.as_blob()?));
            on_pair(bytes(0).map_err(failed)?, bytes(1).map_err(failed)?);
            count += 1;
        }
        Ok(count)
    }
}

#[cold]
fn failed(error: Error) -> StoreError {
    let text = format!("SQLite: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        _ => StoreError::Failed(text),
    }
}
