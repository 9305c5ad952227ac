//! redb, one table: one transaction an operation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::redb::{Database, Durability, Error, ReadableDatabase, Table, TableDefinition};
use model::{Bytes, Unavailable, Unit};

use crate::directory::is_full;
use crate::{
    Capabilities, EmbeddedAdapter, LongestValue, OptionInfo, Session, Statistic, Store, StoreError,
    StoreOptions, StoreUrl, Survives, on_off,
};

const VERSION: &str = concat!("redb ", env!("REDB_VERSION"));
const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("data");
const FILE: &str = "data.redb";
/// redb takes 3 GiB; kvmeter's values end below.
const LONGEST_VALUE: u64 = 1 << 30;

const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("cache", "1GiB", "cache of pages"),
    OptionInfo::new("sync", "on", "each write is on the device; off: a kill loses many writes"),
];

#[derive(Debug)]
struct Config {
    cache: u64,
    sync: bool,
}

impl Config {
    fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        Ok(Self {
            cache: given.bytes("cache")?.unwrap_or(1 << 30),
            sync: given.flag("sync")?.unwrap_or(true),
        })
    }
}

/// One database with one table.
pub struct Redb {
    database: Database,
    config: Config,
    path: PathBuf,
}

impl EmbeddedAdapter for Redb {
    const OPTIONS: &'static [OptionInfo] = OPTIONS;
    const VARIANTS: &'static [&'static str] = &["?cache=8MiB"];

    fn longest_value(_url: &StoreUrl) -> Result<Option<LongestValue>, StoreError> {
        Ok(Some(LongestValue { bytes: LONGEST_VALUE, raised_by: None }))
    }

    fn check(url: &StoreUrl) -> Result<(), StoreError> {
        Config::read(url).map(|_| ())
    }

    fn linked() -> Result<String, Unavailable> {
        Ok(VERSION.to_owned())
    }
}

impl Store for Redb {
    type Session<'a> = RedbSession<'a>;

    fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = Config::read(url)?;
        let path = url.data_path();
        let failed = |error: Error| failed(error, &path);
        let cache = usize::try_from(config.cache).unwrap_or(usize::MAX);
        let database = Database::builder()
            .set_cache_size(cache)
            .create(path.join(FILE))
            .map_err(|error| failed(error.into()))?;
        let store = Self { database, config, path: path.clone() };
        // Reads need the table.
        store.write(Durability::Immediate, |_| Ok(()))?;
        Ok(store)
    }

    fn capabilities(&self) -> Capabilities {
        let survives = if self.config.sync { Survives::PowerLoss } else { Survives::Nothing };
        let survives = Some(survives);
        Capabilities { scan: true, survives, stores_values: true, may_evict: false }
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn options(&self) -> Vec<(String, String)> {
        let Config { cache, sync } = self.config;
        let all = [("cache", Bytes(cache).to_string()), ("sync", on_off(sync))];
        all.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn session(&self) -> Result<RedbSession<'_>, StoreError> {
        Ok(RedbSession { store: self })
    }

    /// There is no background work; what was not synced is.
    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        self.write(Durability::Immediate, |_| Ok(()))
    }

    fn statistics(&self) -> Vec<Statistic> {
        let stats = || -> Result<_, Error> { Ok(self.database.begin_write()?.stats()?) };
        let Ok(stats) = stats() else { return Vec::new() };
        [
            ("tree.height", f64::from(stats.tree_height()), Unit::Count),
            ("pages", stats.allocated_pages() as f64, Unit::Count),
            ("pages.leaf", stats.leaf_pages() as f64, Unit::Count),
            ("data.live", stats.stored_bytes() as f64, Unit::Bytes),
            ("data.fragmented", stats.fragmented_bytes() as f64, Unit::Bytes),
        ]
        .map(|(name, value, unit)| Statistic { name: name.to_owned(), value, unit })
        .to_vec()
    }
}

impl Redb {
    #[cold]
    fn failed(&self, error: impl Into<Error>) -> StoreError {
        failed(error.into(), &self.path)
    }

    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Table<'_, &[u8], &[u8]>) -> Result<(), Error>,
    ) -> Result<(), StoreError> {
        let run = || -> Result<(), Error> {
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(durability)?;
            // An empty change creates the table.
            change(&mut transaction.open_table(TABLE)?)?;
            Ok(transaction.commit()?)
        };
        run().map_err(|error| self.failed(error))
    }

    fn durability(&self) -> Durability {
        if self.config.sync { Durability::Immediate } else { Durability::None }
    }
}

/// One thread's access to redb.
pub struct RedbSession<'a> {
    store: &'a Redb,
}

impl Session for RedbSession<'_> {
    fn read(&mut self, key: &[u8], mut on_value: impl FnMut(&[u8])) -> Result<bool, StoreError> {
        let mut read = || -> Result<bool, Error> {
            let table = self.store.database.begin_read()?.open_table(TABLE)?;
            match table.get(key)? {
                Some(value) => {
                    on_value(value.value());
                    Ok(true)
                }
                None => Ok(false),
            }
        };
        read().map_err(|error| self.store.failed(error))
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.store.write(self.store.durability(), |table| {
            table.insert(key, value)?;
            Ok(())
        })
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.store.write(self.store.durability(), |table| {
            table.remove(key)?;
            Ok(())
        })
    }

    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        mut on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut scan = || -> Result<usize, Error> {
            let table = self.store.database.begin_read()?.open_table(TABLE)?;
            let mut count = 0;
            for pair in table.range(from..)?.take(limit) {
                let (key, value) = pair?;
                on_pair(key.value(), value.value());
                count += 1;
            }
            Ok(count)
        };
        scan().map_err(|error| self.store.failed(error))
    }
}

#[cold]
fn failed(error: Error, path: &Path) -> StoreError {
    match error {
        Error::Io(error) => StoreError::from_io("redb", &error),
        // After a write that failed redb refuses all others without saying why.
        Error::PreviousIo if is_full(path) => {
            StoreError::Full("redb stopped after a write that failed".to_owned())
        }
        other => StoreError::Failed(format!("redb: {other}")),
    }
}
