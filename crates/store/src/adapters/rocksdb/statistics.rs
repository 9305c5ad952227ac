//! RocksDB's statistics and properties.

use std::ffi::{CStr, CString};

use model::Unit;

use super::database::{Database, Options};
use crate::Statistic;

/// Counted since the databases were opened, over all of them, by RocksDB's own names. There only
/// with `statistics=on`.
const TICKERS: &[(&str, &str, Unit, f64)] = &[
    ("user.written.total", "rocksdb.bytes.written", Unit::Bytes, 1.0),
    ("user.read.total", "rocksdb.bytes.read", Unit::Bytes, 1.0),
    ("user.scanned.total", "rocksdb.db.iter.bytes.read", Unit::Bytes, 1.0),
    ("wal.written.total", "rocksdb.wal.bytes", Unit::Bytes, 1.0),
    ("wal.synced.total", "rocksdb.wal.synced", Unit::Count, 1.0),
    ("flush.written.total", "rocksdb.flush.write.bytes", Unit::Bytes, 1.0),
    ("compaction.read.total", "rocksdb.compact.read.bytes", Unit::Bytes, 1.0),
    ("compaction.written.total", "rocksdb.compact.write.bytes", Unit::Bytes, 1.0),
    ("stall.total", "rocksdb.stall.micros", Unit::Seconds, 1e-6),
    ("memtable.hit.total", "rocksdb.memtable.hit", Unit::Count, 1.0),
    ("memtable.miss.total", "rocksdb.memtable.miss", Unit::Count, 1.0),
    ("cache.hit.total", "rocksdb.block.cache.hit", Unit::Count, 1.0),
    ("cache.miss.total", "rocksdb.block.cache.miss", Unit::Count, 1.0),
    ("cache.data.hit.total", "rocksdb.block.cache.data.hit", Unit::Count, 1.0),
    ("cache.data.miss.total", "rocksdb.block.cache.data.miss", Unit::Count, 1.0),
    ("cache.inserted.total", "rocksdb.block.cache.bytes.write", Unit::Bytes, 1.0),
    ("bloom.useful.total", "rocksdb.bloom.filter.useful", Unit::Count, 1.0),
];

/// Current values, summed over the databases. Free until read.
const LEVELS: &[(&str, &CStr, Unit)] = &[
    ("keys.estimated", c"rocksdb.estimate-num-keys", Unit::Count),
    ("sst.live", c"rocksdb.live-sst-files-size", Unit::Bytes),
    ("sst.with_obsolete", c"rocksdb.total-sst-files-size", Unit::Bytes),
    ("memtables", c"rocksdb.size-all-mem-tables", Unit::Bytes),
    ("readers", c"rocksdb.estimate-table-readers-mem", Unit::Bytes),
    ("compaction.pending", c"rocksdb.estimate-pending-compaction-bytes", Unit::Bytes),
    ("background.errors", c"rocksdb.background-errors", Unit::Count),
];

/// RocksDB's default number of levels; an options file may set more.
const MOST_LEVELS: usize = 64;

/// All statistics; values that RocksDB does not report are left out.
pub fn read(databases: &[Database], options: &Options, tickers: bool) -> Vec<Statistic> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: f64, unit| {
        all.push(Statistic { name: name.to_owned(), value, unit });
    };
    if let Some(text) = tickers.then(|| options.statistics()).flatten() {
        for (name, ticker, unit, scale) in TICKERS {
            if let Some(count) = count_of(&text, ticker) {
                add(name, count as f64 * scale, *unit);
            }
        }
    }
    for (name, property, unit) in LEVELS {
        let values: Option<Vec<u64>> =
            databases.iter().map(|database| database.number(property)).collect();
        if let Some(values) = values {
            add(name, values.iter().sum::<u64>() as f64, *unit);
        }
    }
    // The cache is shared: every database reports all of it.
    for (name, property) in [
        ("cache.used", c"rocksdb.block-cache-usage"),
        ("cache.pinned", c"rocksdb.block-cache-pinned-usage"),
    ] {
        if let Some(value) = databases.first().and_then(|database| database.number(property)) {
            add(name, value as f64, Unit::Bytes);
        }
    }
    let levels: Vec<Vec<f64>> = databases.iter().map(files_by_level).collect();
    add("files", levels.iter().flatten().sum(), Unit::Count);
    let runs = levels.iter().map(|files| sorted_runs(files)).sum::<f64>();
    add("runs", runs / databases.len() as f64, Unit::Count);
    all
}

/// The value of a ticker, from RocksDB's text of lines `NAME COUNT : 17`. Names are the same in all
/// versions, while the numbers by which the C interface reads single tickers are not.
fn count_of(text: &str, ticker: &str) -> Option<u64> {
    let line =
        text.lines().find_map(|line| line.strip_prefix(ticker)?.strip_prefix(" COUNT : "))?;
    line.trim().parse().ok()
}

/// The most files that a read of a missing key has to look into: every file of level 0, one of each
/// other level that has any. The number of files that a load leaves in level 0 varies, so that
/// reads can cost twice as much after one load as after another.
fn sorted_runs(files: &[f64]) -> f64 {
    let below = files.iter().skip(1).filter(|files| **files > 0.0).count();
    files.first().unwrap_or(&0.0) + below as f64
}

fn files_by_level(database: &Database) -> Vec<f64> {
    let in_level = |level: usize| {
        let name = CString::new(format!("rocksdb.num-files-at-level{level}")).ok()?;
        database.text(&name)?.trim().parse::<f64>().ok()
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

    #[test]
    fn tickers_are_read_by_their_whole_names() {
        let text = "rocksdb.block.cache.hit COUNT : 7\nrocksdb.block.cache.hit.more COUNT : 8\n\
                    rocksdb.db.get.micros P50 : 0.5 COUNT : 9 SUM : 3\n";
        assert_eq!(count_of(text, "rocksdb.block.cache.hit"), Some(7));
        assert_eq!(count_of(text, "rocksdb.block.cache"), None);
        assert_eq!(count_of(text, "rocksdb.db.get.micros"), None);
    }
}
