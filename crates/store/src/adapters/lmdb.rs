//! LMDB, through the `heed` crate: one transaction an operation.

use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::heed::types::Bytes as Raw;
use ::heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError};
use model::{Bytes, Unavailable, Unit};
use rustix::io::Errno;

use crate::directory::is_full;
use crate::{
    Capabilities, EmbeddedAdapter, OptionInfo, Session, Statistic, Store, StoreError, StoreOptions,
    StoreUrl, Survives, on_off,
};

const DEFAULT_MAP: u64 = 64 << 30;
/// Reader slots; each thread that reads takes one. LMDB's own 126 are too few for large machines.
const READERS: u32 = 1024;

const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("map_size", "64GiB", "largest size of the data; only address space"),
    OptionInfo::new("sync", "off", "each write waits until it is on the device"),
    OptionInfo::new("writemap", "off", "write through the map; a full disk then ends the process"),
    OptionInfo::new("readahead", "on", "the kernel reads ahead in the map"),
];

#[derive(Debug)]
struct Config {
    map_size: u64,
    sync: bool,
    writemap: bool,
    readahead: bool,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        // LMDB takes whole pages; 64 KiB is a multiple of every page size in use.
        let map_size = given.bytes("map_size")?.unwrap_or(DEFAULT_MAP).max(1 << 20);
        let map_size = map_size.checked_next_multiple_of(64 << 10).unwrap_or(map_size);
        Ok(Self {
            map_size,
            sync: given.flag("sync")?.unwrap_or(false),
            writemap: given.flag("writemap")?.unwrap_or(false),
            readahead: given.flag("readahead")?.unwrap_or(true),
        })
    }

    fn flags(&self) -> EnvFlags {
        let mut flags = EnvFlags::empty();
        flags.set(EnvFlags::NO_SYNC, !self.sync);
        flags.set(EnvFlags::WRITE_MAP, self.writemap);
        flags.set(EnvFlags::NO_READ_AHEAD, !self.readahead);
        flags
    }
}

/// One LMDB environment with its one unnamed database.
pub struct Lmdb {
    env: Env,
    database: Database<'static, Raw, Raw>,
    config: Config,
    path: PathBuf,
}

impl Lmdb {
    #[cold]
    fn failed(&self, error: ::heed::Error) -> StoreError {
        failed(error, &self.path)
    }
}

impl EmbeddedAdapter for Lmdb {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const LONGEST_KEY: usize = 511;
    const VARIANTS: &'static [&'static str] =
        &["?sync=on&readahead=off", "?writemap=on&map_size=1GiB"];

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(|_| ())
    }

    fn linked() -> Result<String, Unavailable> {
        let ::heed::LmdbVersion { major, minor, patch, .. } = ::heed::lmdb_version();
        Ok(format!("LMDB {major}.{minor}.{patch}"))
    }
}

impl Store for Lmdb {
    type Session<'a> = LmdbSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let path = url.data_path();
        let failed = |error| failed(error, &path);
        let mut options = EnvOpenOptions::new();
        options.map_size(config.map_size as usize).max_readers(READERS);
        // SAFETY: without the sync flags a crash of the machine may leave a broken file, never
        // memory that is not ours; the documentation of the option says so. The directory's lock
        // excludes every other kvmeter while the file is mapped.
        #[allow(unsafe_code)]
        let env = unsafe { options.flags(config.flags()).open(&path) }.map_err(failed)?;
        // Slots of processes that were killed; their snapshots would keep pages from being reused.
        env.clear_stale_readers().map_err(failed)?;
        let write = env.write_txn().map_err(failed)?;
        let database = env
            .create_databases_and_commit(write, |opener, write| {
                opener.create_database::<Raw, Raw>(write, None).map(CommitOrAbort::<_, ()>::Commit)
            })
            .map_err(failed)?
            .commit()
            .ok_or(StoreError::Failed("LMDB did not open its database".to_owned()))?;
        Ok(Self { env, database, config, path })
    }

    /// A commit has reached the page cache when it returns, with and without `sync`.
    fn capabilities(&self) -> Capabilities {
        let survives = Survives::synced(self.config.sync);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        let ::heed::LmdbVersion { major, minor, patch, .. } = ::heed::lmdb_version();
        format!("LMDB {major}.{minor}.{patch}")
    }

    fn options(&self) -> Vec<(String, String)> {
        let Config { sync, writemap, readahead, .. } = self.config;
        let map_size = Bytes(self.env.info().map_size as u64).to_string();
        vec![
            ("map_size".to_owned(), map_size),
            ("sync".to_owned(), on_off(sync)),
            ("writemap".to_owned(), on_off(writemap)),
            ("readahead".to_owned(), on_off(readahead)),
        ]
    }

    fn session(&self) -> Result<LmdbSession<'_>, StoreError> {
        Ok(LmdbSession { store: self })
    }

    /// LMDB has no background work; dirty pages are written to the device. The call cannot be
    /// interrupted, so the limit does not bound it.
    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        self.env.force_sync().map_err(|error| self.failed(error))
    }

    fn statistics(&self) -> Vec<Statistic> {
        let info = self.env.info();
        let mut all = vec![
            ("map.size", info.map_size as f64, Unit::Bytes),
            ("pages.used", info.last_page_number as f64 + 1.0, Unit::Count),
            ("commits.total", info.last_txn_id as f64, Unit::Count),
            ("readers", f64::from(info.number_of_readers), Unit::Count),
        ];
        let tree = self.env.read_txn().and_then(|read| self.database.stat(&read));
        if let Ok(tree) = tree {
            all.extend([
                ("page.size", f64::from(tree.page_size), Unit::Bytes),
                ("depth", f64::from(tree.depth), Unit::Count),
                ("pages.branch", tree.branch_pages as f64, Unit::Count),
                ("pages.leaf", tree.leaf_pages as f64, Unit::Count),
                ("pages.overflow", tree.overflow_pages as f64, Unit::Count),
                ("keys", tree.entries as f64, Unit::Count),
            ]);
        }
        all.into_iter()
            .map(|(name, value, unit)| Statistic { name: name.to_owned(), value, unit })
            .collect()
    }
}

/// One thread's access to LMDB. The reader slot is kept between transactions.
pub struct LmdbSession<'a> {
    store: &'a Lmdb,
}

impl Session for LmdbSession<'_> {
    #[inline]
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let read = self.store.env.read_txn().map_err(|error| self.store.failed(error))?;
        match self.store.database.get(&read, key).map_err(|error| self.store.failed(error))? {
            Some(value) => {
                on_value(value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let mut write = self.store.env.write_txn().map_err(|error| self.store.failed(error))?;
        self.store
            .database
            .put(&mut write, key, value)
            .map_err(|error| self.store.failed(error))?;
        write.commit().map_err(|error| self.store.failed(error))
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let mut write = self.store.env.write_txn().map_err(|error| self.store.failed(error))?;
        self.store.database.delete(&mut write, key).map_err(|error| self.store.failed(error))?;
        write.commit().map_err(|error| self.store.failed(error))
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let read = self.store.env.read_txn().map_err(|error| self.store.failed(error))?;
        // LMDB has no empty keys.
        let start = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (start, Bound::Unbounded);
        let mut count = 0;
        for pair in self
            .store
            .database
            .range(&read, &range)
            .map_err(|error| self.store.failed(error))?
            .take(limit)
        {
            let (key, value) = pair.map_err(|error| self.store.failed(error))?;
            on_pair(key, value);
            count += 1;
        }
        Ok(count)
    }
}

#[cold]
fn failed(error: ::heed::Error, path: &Path) -> StoreError {
    match error {
        ::heed::Error::Mdb(MdbError::MapFull) => StoreError::Full(
            "the data has reached LMDB's `map_size`; give it a larger one".to_owned(),
        ),
        ::heed::Error::Mdb(MdbError::BadValSize) => {
            StoreError::Failed("LMDB takes keys of 1 to 511 bytes".to_owned())
        }
        ::heed::Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            StoreError::Failed(format!("LMDB: {error}: the `map_size` may be too large"))
        }
        // LMDB reports a short write, such as the last one on a full disk, as EIO.
        ::heed::Error::Io(error)
            if error.raw_os_error() == Some(Errno::IO.raw_os_error()) && is_full(path) =>
        {
            StoreError::Full(format!("LMDB: a write was cut short: {error}"))
        }
        ::heed::Error::Io(error) => StoreError::from_io("LMDB", &error),
        other => StoreError::Failed(format!("LMDB: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn survives_a_full_map() {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("data")).unwrap();
        let url: StoreUrl =
            format!("lmdb:{}?map_size=2MiB", home.path().display()).parse().unwrap();
        let store = Lmdb::open(&url).unwrap();
        let mut session = store.session().unwrap();
        let full =
            (0..1000_u32).find_map(|key| session.update(&key.to_be_bytes(), &[1; 9000]).err());
        let full = full.unwrap();
        assert!(matches!(full, StoreError::Full(_)), "{full}");
        assert!(full.to_string().contains("`map_size`"));
        assert!(session.read(&0_u32.to_be_bytes(), |_| ()).unwrap());
        drop(store);
        let url = StoreUrl { options: Vec::new(), ..url };
        Lmdb::open(&url).unwrap().session().unwrap().update(b"more", &[1; 9000]).unwrap();
    }

    #[test]
    fn refuses_unsupported_keys() {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("data")).unwrap();
        let url = format!("lmdb:{}", home.path().display()).parse().unwrap();
        let store = Lmdb::open(&url).unwrap();
        let mut session = store.session().unwrap();
        for key in [&[] as &[u8], &[1; 512]] {
            let error = session.update(key, b"value").unwrap_err().to_string();
            assert_eq!(error, "LMDB takes keys of 1 to 511 bytes");
        }
        session.update(&[1; 511], b"value").unwrap();
    }
}
