//! fjall, one keyspace.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ::fjall::config::CompressionPolicy;
use ::fjall::{
    CompressionType, Database, Error, Keyspace, KeyspaceCreateOptions, KvSeparationOptions,
    LsmError, PersistMode,
};
use model::{Bytes, Unavailable, Unit};

use crate::directory::is_full;
use crate::{
    Capabilities, EmbeddedAdapter, OptionInfo, Session, Statistic, Store, StoreError, StoreOptions,
    StoreUrl, Survives, on_off,
};

const VERSION: &str = concat!("fjall ", env!("FJALL_VERSION"));

const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("cache", "32MiB", "cache of blocks and separated values"),
    OptionInfo::new("memtable", "64MiB", "size of a memtable"),
    OptionInfo::new("journal", "512MiB", "size of all journals before memtables are flushed"),
    OptionInfo::new("compression", "lz4", "of blocks and separated values: none or lz4").shaping(),
    OptionInfo::new("kv_separation", "off", "values of 1 KiB and more lie in blob files").shaping(),
    OptionInfo::new("sync", "off", "each write waits until its journal is on the device"),
    OptionInfo::new("workers", "as many as CPUs, 4 at most", "threads that flush and compact"),
];

#[derive(Debug)]
struct Config {
    cache: u64,
    memtable: u64,
    journal: u64,
    compression: CompressionType,
    kv_separation: bool,
    sync: bool,
    workers: usize,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        let compressions = [("none", CompressionType::None), ("lz4", CompressionType::Lz4)];
        let journal = given.bytes("journal")?.unwrap_or(512 << 20);
        if journal < 64 << 20 {
            return Err(StoreError::Request(
                "option `journal` of `fjall` takes a size of at least `64MiB`".to_owned(),
            ));
        }
        let memtable = given.bytes("memtable")?.unwrap_or(64 << 20);
        if memtable < 64 << 10 {
            return Err(StoreError::Request(
                "option `memtable` of `fjall` takes a size of at least `64KiB`".to_owned(),
            ));
        }
        let workers = match given.integer("workers", 1, 256)? {
            Some(workers) => workers,
            None => thread::available_parallelism().map_or(1, usize::from).min(4),
        };
        Ok(Self {
            cache: given.bytes("cache")?.unwrap_or(32 << 20),
            memtable,
            journal,
            compression: given
                .choice("compression", &compressions)?
                .unwrap_or(CompressionType::Lz4),
            kv_separation: given.flag("kv_separation")?.unwrap_or(false),
            sync: given.flag("sync")?.unwrap_or(false),
            workers,
        })
    }

    fn keyspace(&self) -> KeyspaceCreateOptions {
        let mut options = KeyspaceCreateOptions::default().max_memtable_size(self.memtable);
        if self.compression == CompressionType::None {
            options = options.data_block_compression_policy(CompressionPolicy::disabled());
        }
        let blobs = KvSeparationOptions::default().compression(self.compression);
        options.with_kv_separation(self.kv_separation.then_some(blobs))
    }
}

/// One fjall database with one keyspace.
pub struct Fjall {
    // Dropped before the database that it belongs to.
    keyspace: Keyspace,
    database: Database,
    config: Config,
    path: PathBuf,
}

impl EmbeddedAdapter for Fjall {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LONGEST_KEY: usize = 65_535;
    const VARIANTS: &'static [&'static str] =
        &["?kv_separation=on&compression=none", "?sync=on&memtable=1MiB"];

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(|_| ())
    }

    fn linked() -> Result<String, Unavailable> {
        Ok(VERSION.to_owned())
    }
}

impl Store for Fjall {
    type Session<'a> = FjallSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let path = url.data_path();
        let failed = |error| failed(error, &path);
        let database = Database::builder(&path)
            .cache_size(config.cache)
            .max_journaling_size(config.journal)
            .worker_threads(config.workers)
            .open()
            .map_err(failed)?;
        let keyspace = database.keyspace("data", || config.keyspace()).map_err(failed)?;
        Ok(Self { keyspace, database, config, path })
    }

    /// Each write reaches the kernel before it returns.
    fn capabilities(&self) -> Capabilities {
        let survives = Survives::synced(self.config.sync);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn options(&self) -> Vec<(String, String)> {
        let Config { memtable, journal, compression, sync, workers, .. } = self.config;
        let all = [
            ("cache", Bytes(self.database.cache_capacity()).to_string()),
            ("memtable", Bytes(memtable).to_string()),
            ("journal", Bytes(journal).to_string()),
            ("compression", compression.to_string()),
            ("kv_separation", on_off(self.keyspace.is_kv_separated())),
            ("sync", on_off(sync)),
            ("workers", workers.to_string()),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn session(&self) -> Result<FjallSession<'_>, StoreError> {
        Ok(FjallSession { store: self })
    }

    fn settle(&self, limit: Duration) -> Result<(), StoreError> {
        // A compaction is scheduled after the flush that triggers it. Between the two fjall looks
        // idle, so it must stay idle for several polls.
        const POLL: Duration = Duration::from_millis(5);
        const QUIET_POLLS: u32 = 10;
        let start = Instant::now();
        self.database.persist(PersistMode::SyncAll).map_err(|error| self.failed(error))?;
        self.keyspace.rotate_memtable().map_err(|error| self.failed(error))?;
        let mut quiet = 0;
        while quiet < QUIET_POLLS {
            if start.elapsed() >= limit {
                return Err(StoreError::Unsettled(format!(
                    "fjall still flushed or compacted after {limit:?}"
                )));
            }
            let busy = self.keyspace.sealed_memtable_count() > 0
                || self.database.outstanding_flushes() > 0
                || self.database.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn statistics(&self) -> Vec<Statistic> {
        let Self { database, keyspace, .. } = self;
        let mut all = vec![
            ("memtables", database.write_buffer_size() as f64, Unit::Bytes),
            ("cache.used", database.cache_size() as f64, Unit::Bytes),
            ("compaction.time.total", database.time_compacting().as_secs_f64(), Unit::Seconds),
            ("compactions.total", database.compactions_completed() as f64, Unit::Count),
            ("journals", database.journal_count() as f64, Unit::Count),
            ("tables", keyspace.table_count() as f64, Unit::Count),
            ("tables.level0", keyspace.l0_table_count() as f64, Unit::Count),
            ("blob.files", keyspace.blob_file_count() as f64, Unit::Count),
            ("blob.stale", keyspace.fragmented_blob_bytes() as f64, Unit::Bytes),
            ("keys.estimated", keyspace.approximate_len() as f64, Unit::Count),
            ("data.live", keyspace.disk_space() as f64, Unit::Bytes),
        ];
        if let Ok(bytes) = database.journal_disk_space() {
            all.push(("journals.size", bytes as f64, Unit::Bytes));
        }
        all.into_iter()
            .map(|(name, value, unit)| Statistic { name: name.to_owned(), value, unit })
            .collect()
    }
}

impl Fjall {
    #[cold]
    fn failed(&self, error: Error) -> StoreError {
        failed(error, &self.path)
    }

    #[inline]
    fn written(&self, written: ::fjall::Result<()>) -> Result<(), StoreError> {
        written.map_err(|error| self.failed(error))?;
        if self.config.sync {
            self.database.persist(PersistMode::SyncData).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }
}

/// One thread's access to fjall.
pub struct FjallSession<'a> {
    store: &'a Fjall,
}

/// fjall panics on these.
#[inline]
fn check(key: &[u8]) -> Result<(), StoreError> {
    match key.len() {
        1..=65_535 => Ok(()),
        _ => Err(StoreError::Failed("fjall takes keys of 1 to 65535 bytes".to_owned())),
    }
}

impl Session for FjallSession<'_> {
    #[inline]
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        match self.store.keyspace.get(key).map_err(|error| self.store.failed(error))? {
            Some(value) => {
                on_value(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        check(key)?;
        self.store.written(self.store.keyspace.insert(key, value))
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        check(key)?;
        self.store.written(self.store.keyspace.remove(key))
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut count = 0;
        for pair in self.store.keyspace.range(from..).take(limit) {
            let (key, value) = pair.into_inner().map_err(|error| self.store.failed(error))?;
            on_pair(&key, &value);
            count += 1;
        }
        Ok(count)
    }
}

#[cold]
fn failed(error: Error, path: &Path) -> StoreError {
    match error {
        Error::Io(error) | Error::Storage(LsmError::Io(error)) => {
            StoreError::from_io("fjall", &error)
        }
        // After a write that failed fjall refuses all others without saying why.
        Error::Poisoned => {
            let text = "fjall stopped after a write that failed".to_owned();
            if is_full(path) { StoreError::Full(text) } else { StoreError::Failed(text) }
        }
        other => StoreError::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn every_option_takes_effect() {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("data")).unwrap();
        let options = "cache=64MiB&memtable=8MiB&journal=128MiB&compression=none&kv_separation=on\
                     &sync=on&workers=3";
        let url = format!("fjall:{}?{options}", home.path().display()).parse().unwrap();
        let store = Fjall::open(&url).unwrap();
        let theirs: Vec<_> =
            store.options().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(theirs.join("&"), options);
        let mut session = store.session().unwrap();
        session.update(b"key", &[7; 5000]).unwrap();
        store.settle(Duration::from_secs(60)).unwrap();
        assert_eq!(store.keyspace.blob_file_count(), 1);
    }

    #[test]
    fn refuses_unsupported_keys() {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("data")).unwrap();
        let url = format!("fjall:{}", home.path().display()).parse().unwrap();
        let store = Fjall::open(&url).unwrap();
        let mut session = store.session().unwrap();
        for key in [&[] as &[u8], &[1; 65_536]] {
            let error = session.update(key, b"value").unwrap_err().to_string();
            assert_eq!(error, "fjall takes keys of 1 to 65535 bytes");
        }
        assert!(VERSION.starts_with("fjall 3."), "{VERSION}");
    }
}
