//! RocksDB, through the `rocksdb` crate.
//!
//! A read is one `rocksdb_get_pinned`, which lends the block's own bytes; read and write options
//! are made once. A session keeps one iterator for each database that it has scanned, refreshed
//! before each scan: it holds on to the memtables and files of its last scan until its next.

mod config;
mod options_file;
mod statistics;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use config::{Config, compression_name};
use model::Bytes;
use options_file::OptionsFile;
use rocksdb::{
    DB, DBRawIterator, Env, ErrorKind, InfoLogger, LogLevel, Options, ReadOptions,
    WaitForCompactOptions, WriteOptions, properties,
};

use super::spread::spread;
use crate::{
    Adapt, Capabilities, OptionInfo, Session, Statistic, Store, StoreError, StoreUrl, on_off,
};

/// One or more RocksDB databases behind one block cache.
pub struct RocksDb {
    databases: Vec<DB>,
    read: ReadOptions,
    write: WriteOptions,
    options: Options,
    config: Config,
    in_force: OptionsFile,
}

impl Adapt for RocksDb {
    const OPTIONS: &'static [OptionInfo] = config::OPTIONS;

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url)?.options().map(|_| ())
    }

    /// The C interface has no version function. The library names itself in the head of its log,
    /// so a database in memory is opened and its log is read.
    fn linked() -> Result<String, StoreError> {
        let head = Arc::new(Mutex::new(None));
        let log = Arc::clone(&head);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_env(&Env::mem_env().map_err(failed)?);
        options.set_info_logger(InfoLogger::new_callback_logger(
            LogLevel::Header,
            move |_, line: &str| {
                if let Some((_, version)) = line.split_once("RocksDB version: ") {
                    let mut head = log.lock().unwrap_or_else(PoisonError::into_inner);
                    *head = Some(version.trim().to_owned());
                }
            },
        ));
        // A name alone: nothing is written there.
        drop(DB::open(&options, std::env::temp_dir()).map_err(failed)?);
        let version = head.lock().unwrap_or_else(PoisonError::into_inner).take();
        version
            .map(|version| format!("RocksDB {version}"))
            .ok_or(StoreError::Failed("RocksDB does not say its version".to_owned()))
    }
}

impl Store for RocksDb {
    type Session<'a> = RocksDbSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let options = config.options()?;
        let data = url.data_path();
        let open = |number: usize| {
            let path = data.join(format!("{number:04}"));
            DB::open(&options, path).map_err(failed)
        };
        let databases = (0..config.databases).map(open).collect::<Result<Vec<_>, _>>()?;
        let in_force = OptionsFile::in_force(&data.join("0000")).unwrap_or_default();
        let mut write = WriteOptions::default();
        write.disable_wal(!config.wal);
        write.set_sync(config.sync);
        Ok(Self { databases, read: ReadOptions::default(), write, options, config, in_force })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { scan: true, durable: self.config.wal, keeps: true, forgets: false }
    }

    /// As the library wrote it beside the data when it opened it.
    fn version(&self) -> String {
        match &self.in_force.version {
            Some(version) => format!("RocksDB {version}"),
            None => "RocksDB, version unknown".to_owned(),
        }
    }

    fn options(&self) -> Vec<(String, String)> {
        let theirs = |name: &str| self.in_force.get(name).unwrap_or("unknown").to_owned();
        let bytes = |text: String| text.parse().map_or(text, |bytes| Bytes(bytes).to_string());
        let flag = |text: String| text.parse().map_or(text, on_off);
        let Config { wal, sync, databases, statistics, options_file, cache_kind, .. } =
            &self.config;
        let options_file = options_file.as_ref().map(|path| path.display().to_string());
        let all = [
            ("cache", bytes(self.cache_capacity())),
            ("cache_kind", cache_kind.name().to_owned()),
            ("direct_io", flag(theirs("use_direct_reads"))),
            ("wal", on_off(*wal)),
            ("sync", on_off(*sync)),
            ("compression", compression_name(&theirs("compression")).to_owned()),
            ("memtable", bytes(theirs("write_buffer_size"))),
            ("memtables", theirs("max_write_buffer_number")),
            ("background_jobs", theirs("max_background_jobs")),
            ("bloom_bits", self.bloom_bits()),
            ("databases", databases.to_string()),
            ("options_file", options_file.unwrap_or("none".to_owned())),
            ("statistics", on_off(*statistics)),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn session(&self) -> Result<RocksDbSession<'_>, StoreError> {
        Ok(RocksDbSession { store: self, scans: self.databases.iter().map(|_| None).collect() })
    }

    /// Flushes, merges what is in level 0 into the levels below, and waits until nothing is
    /// left to merge. RocksDB leaves up to three files in level 0, as many as chance has it,
    /// and each is one more place where a read searches.
    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        let until = Instant::now() + limit;
        for database in &self.databases {
            wait(database, until, limit)?;
            let merged = trigger(database, "1").and_then(|()| wait(database, until, limit));
            let before = self.in_force.get(TRIGGER).unwrap_or(DEFAULT_TRIGGER);
            trigger(database, before)?;
            merged?;
        }
        Ok(())
    }

    fn statistics(&self) -> Vec<Statistic> {
        statistics::read(&self.databases, &self.options, self.config.statistics)
    }
}

/// The number of files in level 0 from which RocksDB merges them, and what that is by default.
const TRIGGER: &str = "level0_file_num_compaction_trigger";
const DEFAULT_TRIGGER: &str = "4";

fn trigger(database: &DB, files: &str) -> Result<(), StoreError> {
    database.set_options(&[(TRIGGER, files)]).map_err(failed)
}

/// Flushes and waits until no flush and no compaction is left, but not past `until`.
fn wait(database: &DB, until: Instant, limit: Duration) -> Result<(), StoreError> {
    let left = until.saturating_duration_since(Instant::now());
    let mut wait = WaitForCompactOptions::default();
    wait.set_flush(true);
    // Zero would be no limit at all.
    wait.set_timeout((left.as_micros() as u64).max(1));
    match database.wait_for_compact(&wait) {
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(StoreError::Unsettled(format!(
            "RocksDB still flushed or compacted after {limit:?}"
        ))),
        waited => waited.map_err(failed),
    }
}

impl RocksDb {
    fn cache_capacity(&self) -> String {
        let capacity = self.databases.first().map(|database| {
            database.property_int_value(properties::BLOCK_CACHE_CAPACITY).ok().flatten()
        });
        // A table without a cache has no capacity to ask for.
        capacity.flatten().unwrap_or(0).to_string()
    }

    fn bloom_bits(&self) -> String {
        match self.in_force.get_table("filter_policy") {
            None | Some("nullptr") => "0".to_owned(),
            Some(policy) => match policy.strip_prefix("bloomfilter:") {
                Some(rest) => rest.split(':').next().unwrap_or(policy).to_owned(),
                None => policy.to_owned(),
            },
        }
    }

    #[inline]
    fn number(&self, key: &[u8]) -> usize {
        spread(key, self.databases.len())
    }

    #[inline]
    fn database(&self, key: &[u8]) -> &DB {
        &self.databases[self.number(key)]
    }
}

/// One thread's way into RocksDB.
pub struct RocksDbSession<'a> {
    store: &'a RocksDb,
    /// The iterator of each database that was scanned.
    scans: Vec<Option<DBRawIterator<'a>>>,
}

impl Session for RocksDbSession<'_> {
    #[inline]
    fn read(&mut self, key: &[u8], mut seen: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        match self.store.database(key).get_pinned_opt(key, &self.store.read) {
            Ok(Some(value)) => {
                seen(&value);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.store.database(key).put_opt(key, value, &self.store.write).map_err(failed)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.store.database(key).delete_opt(key, &self.store.write).map_err(failed)
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut seen: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let number = self.store.number(from);
        let slot = &mut self.scans[number];
        let scan = match slot {
            Some(scan) => {
                scan.refresh().map_err(failed)?;
                scan
            }
            None => slot.insert(self.store.databases[number].raw_iterator()),
        };
        let mut count = 0;
        scan.seek(from);
        while count < limit {
            let Some((key, value)) = scan.item() else {
                scan.status().map_err(failed)?;
                break;
            };
            seen(key, value);
            count += 1;
            if count < limit {
                scan.next();
            }
        }
        Ok(count)
    }
}

#[cold]
fn failed(error: rocksdb::Error) -> StoreError {
    let text = error.into_string();
    // Whichever call meets the full disk, and every write after it, says so in these words.
    if text.contains("No space left on device") || text.contains("NoSpace") {
        StoreError::Full(text)
    } else {
        StoreError::Failed(text)
    }
}

#[cfg(test)]
mod tests;
