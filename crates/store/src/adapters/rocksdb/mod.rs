//! RocksDB, through its C interface, whose functions are looked up when a store is opened.
//!
//! A read is one `rocksdb_get_pinned`, without a copy; a multi-get is one
//! `rocksdb_batched_multi_get_cf` a database. Read and write options are created once. A
//! session keeps one iterator for each database that it has scanned, refreshed before each scan: it
//! pins the memtables and files of its last scan until the next.

mod config;
mod database;
mod functions;
mod library;
mod options_file;
mod statistics;

use std::ffi::CStr;
use std::thread;
use std::time::{Duration, Instant};

use config::{Config, compression_name};
use database::{Database, MultiGetBuffers, Options, Reading, RowIterator, Writing};
use library::Library;
use model::{Bytes, Unavailable};
use options_file::OptionsFile;

use super::key_spread::spread;
use crate::{
    Capabilities, EmbeddedAdapter, KeyBatch, OptionInfo, Session, Statistic, Store, StoreError,
    StoreUrl, Survives, on_off, read_each,
};

/// One or more RocksDB databases behind one block cache.
pub struct RocksDb {
    databases: Vec<Database>,
    read: Reading,
    write: Writing,
    options: Options,
    config: Config,
    in_force: OptionsFile,
    library: &'static Library,
}

impl EmbeddedAdapter for RocksDb {
    const OPTIONS: &'static [OptionInfo] = config::OPTIONS;
    const VARIANTS: &'static [&'static str] = &[
        "?databases=3&statistics=on",
        "?cache=0&direct_io=on&compression=none",
        "?memtable=64KiB&compression=zstd&bloom_bits=10&cache=8MiB&cache_kind=lru",
    ];

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        let config = Config::read(url)?;
        config.options(library::load(&config.library)?).map(drop)
    }

    fn linked() -> Result<String, Unavailable> {
        let unusable = |error: StoreError| {
            let remedy = "name another library with `rocksdb:PATH?library=/path/of/librocksdb.so`";
            Unavailable::new(error.to_string(), remedy)
        };
        if library::is_missing() {
            return Err(library::library_missing());
        }
        let library = library::load(&library::LibraryChoice::Any).map_err(unusable)?;
        let version = library.version().map_err(unusable)?;
        let others: Vec<String> = library::libraries()
            .into_iter()
            .filter(|path| library.path.as_ref() != Some(path))
            .map(|path| path.display().to_string())
            .collect();
        let also = if others.is_empty() { "" } else { "; also here: " };
        let (name, others) = (library.name(), others.join(", "));
        Ok(format!("{}, {name}{also}{others}", library.describe(version)))
    }
}

impl Store for RocksDb {
    type Session<'a> = RocksDbSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let library = library::load(&config.library)?;
        let options = config.options(library)?;
        let data = url.data_path();
        let open = |number: usize| Database::open(&options, &data.join(format!("{number:04}")));
        let databases = (0..config.databases).map(open).collect::<Result<Vec<_>, _>>()?;
        let in_force = OptionsFile::in_force(&data.join("0000")).unwrap_or_default();
        let write = Writing::new(&library.functions, config.wal, config.sync)?;
        let read = Reading::new(&library.functions)?;
        Ok(Self { databases, read, write, options, config, in_force, library })
    }

    fn capabilities(&self) -> Capabilities {
        let survives = match self.config.wal {
            true => Survives::synced(self.config.sync),
            false => Some(Survives::Nothing),
        };
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    /// From the OPTIONS file that the library wrote when it opened the data.
    fn version(&self) -> String {
        let version = self.in_force.version.as_deref();
        self.library.describe(version.unwrap_or("of an unknown version"))
    }

    fn options(&self) -> Vec<(String, String)> {
        let theirs = |name: &str| self.in_force.get(name).unwrap_or("unknown").to_owned();
        let bytes = |text: String| text.parse().map_or(text, |bytes| Bytes(bytes).to_string());
        let flag = |text: String| text.parse().map_or(text, on_off);
        let Config { wal, sync, databases, statistics, options_file, .. } = &self.config;
        let options_file = options_file.as_ref().map(|path| path.display().to_string());
        let all = [
            ("cache", bytes(self.cache_capacity())),
            ("cache_kind", self.config.cache_kind(self.library).name().to_owned()),
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
            ("library", self.library.name()),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn session(&self) -> Result<RocksDbSession<'_>, StoreError> {
        Ok(RocksDbSession {
            store: self,
            scans: self.databases.iter().map(|_| None).collect(),
            numbers: Vec::new(),
            buffers: MultiGetBuffers::default(),
        })
    }

    /// Flushes, merges what is in level 0 into the levels below, and waits until nothing is left to
    /// merge. RocksDB leaves a varying number of up to three files in level 0, and each costs every
    /// read a look-up.
    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        let until = Instant::now() + limit;
        for database in &self.databases {
            wait(database, until, limit)?;
            let merged = trigger(database, "1").and_then(|()| wait(database, until, limit));
            let before = self.in_force.get(TRIGGER_NAME).unwrap_or(DEFAULT_TRIGGER);
            trigger(database, before)?;
            merged?;
        }
        Ok(())
    }

    fn statistics(&self) -> Vec<Statistic> {
        statistics::read(&self.databases, &self.options, self.config.statistics)
    }
}

/// The number of files in level 0 that triggers a compaction, and its default.
const TRIGGER: &CStr = c"level0_file_num_compaction_trigger";
const TRIGGER_NAME: &str = "level0_file_num_compaction_trigger";
const DEFAULT_TRIGGER: &str = "4";

fn trigger(database: &Database, files: &str) -> Result<(), StoreError> {
    database.set_option(TRIGGER, files)
}

/// RocksDB's properties of pending work.
const BUSY: [&CStr; 5] = [
    c"rocksdb.num-immutable-mem-table",
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
];
const PAUSE: Duration = Duration::from_millis(1);

/// Flushes and waits until no flush and no compaction is left, but not past `until`. Version 7.8
/// has no waiting call, and its flush has no limit.
fn wait(database: &Database, until: Instant, limit: Duration) -> Result<(), StoreError> {
    database.flush(false)?;
    while BUSY.iter().any(|property| database.number(property) != Some(0)) {
        if database.number(c"rocksdb.background-errors") > Some(0) {
            // The call fails with the error of the background work.
            database.flush(true)?;
        }
        if Instant::now() >= until {
            return Err(StoreError::Unsettled(format!(
                "RocksDB still flushed or compacted after {limit:?}"
            )));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

impl RocksDb {
    fn cache_capacity(&self) -> String {
        let database = self.databases.first();
        let capacity = database.and_then(|it| it.number(c"rocksdb.block-cache-capacity"));
        // A table without a cache has no capacity.
        capacity.unwrap_or(0).to_string()
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
    fn database(&self, key: &[u8]) -> &Database {
        &self.databases[self.number(key)]
    }
}

/// One thread's access to RocksDB.
pub struct RocksDbSession<'a> {
    store: &'a RocksDb,
    /// The iterator of each database that was scanned.
    scans: Vec<Option<RowIterator<'a>>>,
    /// The database of each key of a multi-get.
    numbers: Vec<usize>,
    buffers: MultiGetBuffers,
}

impl Session for RocksDbSession<'_> {
    #[inline]
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        match self.store.database(key).get(&self.store.read, key)? {
            Some(value) => {
                on_value(value.bytes());
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn multi_get(
        &mut self,
        keys: &KeyBatch,
        mut on_value: impl FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let functions = &self.store.library.functions;
        let Some(batched) = functions.rocksdb_batched_multi_get_cf else {
            return read_each(self, keys, on_value);
        };
        let RocksDbSession { store, numbers, buffers, .. } = self;
        numbers.clear();
        numbers.extend(keys.iter().map(|key| store.number(key)));
        for (number, database) in store.databases.iter().enumerate() {
            if !numbers.contains(&number) {
                continue;
            }
            let here = keys.iter().enumerate().filter(|(index, _)| numbers[*index] == number);
            database.multi_get(batched, &store.read, here, buffers, &mut on_value)?;
        }
        Ok(())
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.store.database(key).put(&self.store.write, key, value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.store.database(key).delete(&self.store.write, key)
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let number = self.store.number(from);
        let slot = &mut self.scans[number];
        // Where an iterator cannot be refreshed (7.8), each scan makes one.
        let fresh = match slot.as_mut().and_then(RowIterator::refresh) {
            Some(refreshed) => refreshed.map(|()| None)?,
            None => Some(self.store.databases[number].cursor(&self.store.read)?),
        };
        if fresh.is_some() {
            *slot = fresh;
        }
        let Some(scan) = slot else { return Ok(0) };
        let mut count = 0;
        scan.seek(from);
        while count < limit {
            let Some((key, value)) = scan.pair() else {
                scan.status()?;
                break;
            };
            on_pair(key, value);
            count += 1;
            if count < limit {
                scan.step();
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
