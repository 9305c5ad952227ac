//! What RocksDB says of itself.

use model::Unit;
use rocksdb::statistics::Ticker;
use rocksdb::{DB, Options, properties};

use crate::Statistic;

/// Counted since the databases were opened, over all of them. There only with `statistics=on`.
const TICKERS: &[(&str, Ticker, Unit, f64)] = &[
    ("user.written.total", Ticker::BytesWritten, Unit::Bytes, 1.0),
    ("user.read.total", Ticker::BytesRead, Unit::Bytes, 1.0),
    ("user.scanned.total", Ticker::IterBytesRead, Unit::Bytes, 1.0),
    ("wal.written.total", Ticker::WalFileBytes, Unit::Bytes, 1.0),
    ("wal.synced.total", Ticker::WalFileSynced, Unit::Count, 1.0),
    ("flush.written.total", Ticker::FlushWriteBytes, Unit::Bytes, 1.0),
    ("compaction.read.total", Ticker::CompactReadBytes, Unit::Bytes, 1.0),
    ("compaction.written.total", Ticker::CompactWriteBytes, Unit::Bytes, 1.0),
    ("stall.total", Ticker::StallMicros, Unit::Seconds, 1e-6),
    ("memtable.hit.total", Ticker::MemtableHit, Unit::Count, 1.0),
    ("memtable.miss.total", Ticker::MemtableMiss, Unit::Count, 1.0),
    ("cache.hit.total", Ticker::BlockCacheHit, Unit::Count, 1.0),
    ("cache.miss.total", Ticker::BlockCacheMiss, Unit::Count, 1.0),
    ("cache.data.hit.total", Ticker::BlockCacheDataHit, Unit::Count, 1.0),
    ("cache.data.miss.total", Ticker::BlockCacheDataMiss, Unit::Count, 1.0),
    ("cache.inserted.total", Ticker::BlockCacheBytesWrite, Unit::Bytes, 1.0),
    ("bloom.useful.total", Ticker::BloomFilterUseful, Unit::Count, 1.0),
];

/// As it is now, summed over the databases. Costs nothing until it is asked for.
const LEVELS: &[(&str, &properties::PropName, Unit)] = &[
    ("keys.estimated", properties::ESTIMATE_NUM_KEYS, Unit::Count),
    ("sst.live", properties::LIVE_SST_FILES_SIZE, Unit::Bytes),
    ("sst.with_obsolete", properties::TOTAL_SST_FILES_SIZE, Unit::Bytes),
    ("memtables", properties::SIZE_ALL_MEM_TABLES, Unit::Bytes),
    ("readers", properties::ESTIMATE_TABLE_READERS_MEM, Unit::Bytes),
    ("compaction.pending", properties::ESTIMATE_PENDING_COMPACTION_BYTES, Unit::Bytes),
    ("background.errors", properties::BACKGROUND_ERRORS, Unit::Count),
];

/// Levels of a tree by RocksDB's default; an options file may ask for more.
const MOST_LEVELS: usize = 64;

/// All of them; a value that RocksDB does not answer is left out.
pub fn read(databases: &[DB], options: &Options, tickers: bool) -> Vec<Statistic> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: f64, unit| {
        all.push(Statistic { name: name.to_owned(), value, unit });
    };
    if tickers {
        for (name, ticker, unit, scale) in TICKERS {
            add(name, options.get_ticker_count(*ticker) as f64 * scale, *unit);
        }
    }
    for (name, property, unit) in LEVELS {
        let values: Option<Vec<u64>> = databases
            .iter()
            .map(|database| database.property_int_value(*property).ok().flatten())
            .collect();
        if let Some(values) = values {
            add(name, values.iter().sum::<u64>() as f64, *unit);
        }
    }
    // The cache is shared: every database would answer for the whole of it.
    for (name, property) in [
        ("cache.used", properties::BLOCK_CACHE_USAGE),
        ("cache.pinned", properties::BLOCK_CACHE_PINNED_USAGE),
    ] {
        if let Some(Ok(Some(value))) =
            databases.first().map(|database| database.property_int_value(property))
        {
            add(name, value as f64, Unit::Bytes);
        }
    }
    let levels: Vec<Vec<f64>> = databases.iter().map(files_by_level).collect();
    add("files", levels.iter().flatten().sum(), Unit::Count);
    let runs = levels.iter().map(|files| sorted_runs(files)).sum::<f64>();
    add("runs", runs / databases.len() as f64, Unit::Count);
    all
}

/// The most files that a read of a missing key has to look into: every file of level 0, one of
/// each other level that has any. How many files of level 0 a load leaves behind is chance, and
/// two loads of the same data can differ twofold in what a read costs.
fn sorted_runs(files: &[f64]) -> f64 {
    let below = files.iter().skip(1).filter(|files| **files > 0.0).count();
    files.first().unwrap_or(&0.0) + below as f64
}

fn files_by_level(database: &DB) -> Vec<f64> {
    let in_level = |level| {
        let name = properties::num_files_at_level(level);
        let text = database.property_value(&*name).ok().flatten()?;
        text.trim().parse::<f64>().ok()
    };
    // RocksDB answers no value for a level that the tree does not have.
    (0..MOST_LEVELS).map_while(in_level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_files_of_level_0_and_the_levels_below() {
        assert_eq!(sorted_runs(&[2.0, 0.0, 0.0, 5.0, 11.0]), 4.0);
        assert_eq!(sorted_runs(&[0.0, 0.0, 17.0]), 1.0);
        assert_eq!(sorted_runs(&[]), 0.0);
    }
}
