//! The URL's options, translated to RocksDB's own.

use std::fs;
use std::path::{Path, PathBuf};

use super::database::{Cache, Options, Table};
use super::library::{Library, LibraryChoice};
use super::options_file::OptionsFile;
use crate::{OptionInfo, StoreError, StoreOptions, StoreUrl};

const fn option(name: &'static str, default: &'static str, what: &'static str) -> OptionInfo {
    OptionInfo::new(name, default, what)
}

pub const OPTIONS: &[OptionInfo] = &[
    option("cache", "32MiB", "block cache shared by all databases; 0 is none"),
    option(
        "cache_kind",
        "auto",
        "design of the block cache: hyper_clock, lru, or auto, the first that the library has",
    ),
    option("direct_io", "off", "reads, flushes and compactions bypass the page cache"),
    option("wal", "on", "write-ahead log; without it a kill loses what was not flushed"),
    option("sync", "off", "each write waits until the log is on the device"),
    option("compression", "lz4", "of blocks: none, snappy, lz4 or zstd").shaping(),
    option("memtable", "64MiB", "size of a memtable"),
    option("memtables", "2", "memtables in memory before writes stall"),
    option("background_jobs", "2", "concurrent flushes and compactions of a database"),
    option("bloom_bits", "0", "bits per key of the Bloom filters; 0 is no filter").shaping(),
    option("databases", "1", "databases that the keys are spread over by hash").shaping(),
    option("options_file", "none", "RocksDB OPTIONS file that is read before these options")
        .shaping(),
    option("statistics", "off", "RocksDB's tickers; costs some CPU an operation"),
    option("library", "auto", "path of the shared library, bundled, or auto: what is found"),
];

/// RocksDB's own default from version 11 on, and that of kvmeter with every version, so that
/// versions are compared with the same blocks.
const COMPRESSION: &str = "kLZ4Compression";

/// RocksDB's names of the compressions that are linked.
const COMPRESSIONS: &[(&str, &str)] = &[
    ("none", "kNoCompression"),
    ("snappy", "kSnappyCompression"),
    ("lz4", "kLZ4Compression"),
    ("zstd", "kZSTD"),
];

/// The URL's options. `None` leaves a value to the options file, or else to RocksDB.
#[derive(Debug)]
pub struct Config {
    pub cache: Option<u64>,
    cache_kind: Option<CacheKind>,
    pub library: LibraryChoice,
    pub wal: bool,
    pub sync: bool,
    pub databases: usize,
    pub options_file: Option<PathBuf>,
    pub statistics: bool,
    /// Options of a database by RocksDB's names.
    database: Vec<(&'static str, String)>,
    /// Options of the block-based table by RocksDB's names.
    table: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    HyperClock,
    Lru,
}

impl CacheKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::HyperClock => "hyper_clock",
            Self::Lru => "lru",
        }
    }
}

impl Config {
    pub fn read(url: &StoreUrl) -> Result<Self, StoreError> {
        let given = StoreOptions::new(url, OPTIONS)?;
        let mut database = Vec::new();
        if let Some(direct) = given.flag("direct_io")? {
            database.push(("use_direct_reads", direct.to_string()));
            database.push(("use_direct_io_for_flush_and_compaction", direct.to_string()));
        }
        if let Some(compression) = given.choice("compression", COMPRESSIONS)? {
            database.push(("compression", compression.to_owned()));
        }
        if let Some(bytes) = given.bytes("memtable")? {
            // RocksDB silently raises a smaller one.
            if bytes < 64 << 10 {
                return Err(StoreError::Request(
                    "option `memtable` of `rocksdb` takes a size of at least `64KiB`".to_owned(),
                ));
            }
            database.push(("write_buffer_size", bytes.to_string()));
        }
        if let Some(number) = given.integer("memtables", 1, 64)? {
            database.push(("max_write_buffer_number", number.to_string()));
        }
        if let Some(number) = given.integer("background_jobs", 1, 256)? {
            database.push(("max_background_jobs", number.to_string()));
        }
        let mut table = Vec::new();
        match given.number("bloom_bits", 0.0, 64.0)? {
            Some(0.0) => table.push(("filter_policy", "nullptr".to_owned())),
            Some(bits) => table.push(("filter_policy", format!("bloomfilter:{bits}:false"))),
            None => {}
        }
        let cache = given.bytes("cache")?;
        if let Some(bytes) = cache {
            table.push(("no_block_cache", (bytes == 0).to_string()));
        }
        let kinds = [
            ("hyper_clock", Some(CacheKind::HyperClock)),
            ("lru", Some(CacheKind::Lru)),
            ("auto", None),
        ];
        let wal = given.flag("wal")?.unwrap_or(true);
        let sync = given.flag("sync")?.unwrap_or(false);
        if sync && !wal {
            return Err(StoreError::Request(
                "option `sync=on` of `rocksdb` needs the log that `wal=off` turns off; leave one \
                 of the two out"
                    .to_owned(),
            ));
        }
        Ok(Self {
            cache,
            cache_kind: given.choice("cache_kind", &kinds)?.flatten(),
            library: LibraryChoice::of(given.text("library")),
            wal,
            sync,
            databases: given.integer("databases", 1, 1024)?.unwrap_or(1),
            options_file: given
                .text("options_file")
                .filter(|path| *path != "none")
                .map(PathBuf::from),
            statistics: given.flag("statistics")?.unwrap_or(false),
            database,
            table,
        })
    }

    /// The design of the block cache with a library.
    pub fn cache_kind(&self, library: &Library) -> CacheKind {
        let best = match library.functions.rocksdb_cache_create_hyper_clock {
            Some(_) => CacheKind::HyperClock,
            None => CacheKind::Lru,
        };
        self.cache_kind.unwrap_or(best)
    }

    /// RocksDB's options: its defaults, then the options file, then the URL's options. Every
    /// database opened with them shares one block cache.
    pub fn options(&self, library: &'static Library) -> Result<Options, StoreError> {
        let functions = &library.functions;
        let mut table = Table::new(functions)?;
        let bytes = self.cache.unwrap_or(32 << 20) as usize;
        if bytes > 0 {
            table.set_cache(&match self.cache_kind(library) {
                CacheKind::HyperClock => match Cache::hyper_clock(functions, bytes) {
                    Some(cache) => cache?,
                    None => return Err(self.no_hyper_clock(library)),
                },
                CacheKind::Lru => Cache::lru(functions, bytes)?,
            });
        }
        let mut base = Options::new(functions)?;
        base.set_table(&table);

        let mut requested = match &self.options_file {
            Some(path) => read_options_file(path)?,
            None => OptionsFile::default(),
        };
        if self.options_file.is_none() {
            requested.set("compression", COMPRESSION);
        }
        for (name, value) in &self.database {
            requested.set(name, value);
        }
        for (name, value) in &self.table {
            requested.set_table(name, value);
        }
        let mut options = base.with(&requested.to_string()).map_err(|error| {
            StoreError::Request(match &self.options_file {
                Some(path) => format!("option `options_file`: {}: {error}", path.display()),
                None => error.to_string(),
            })
        })?;
        options.create_if_missing();
        if self.statistics {
            options.count();
        }
        Ok(options)
    }

    fn no_hyper_clock(&self, library: &'static Library) -> StoreError {
        let version = library.version().unwrap_or("of an unknown version");
        StoreError::Request(format!(
            "option `cache_kind=hyper_clock` of `rocksdb`: the C interface of RocksDB {version} \
             ({}) has none; leave the option out, give `lru`, or name a newer `library`",
            library.name()
        ))
    }
}

fn read_options_file(path: &Path) -> Result<OptionsFile, StoreError> {
    let wrong = |why: String| {
        StoreError::Request(format!("option `options_file`: {}: {why}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let file = OptionsFile::parse(&text).map_err(wrong)?;
    match file.leads_elsewhere() {
        Some(name) => {
            Err(wrong(format!("`{name}` puts files outside the store's directory; leave it out")))
        }
        None => Ok(file),
    }
}

/// The name of a compression in a URL, from RocksDB's.
pub fn compression_name(theirs: &str) -> &str {
    let known = COMPRESSIONS.iter().find(|(_, name)| *name == theirs);
    known.map_or(theirs, |(name, _)| name)
}
