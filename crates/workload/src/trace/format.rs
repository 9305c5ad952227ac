//! The formats of traces, and how the first bytes tell which one a file has.

use std::fmt;
use std::str::FromStr;

use model::suggest;

use super::decode::{
    cachelib, capture, kvmeter, memcached_watch, memtier, monitor, oracle_general, rocksdb,
    rocksdb_text, twitter,
};

/// A format of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// Twitter's cache traces: `timestamp,key,key size,value size,client,operation,TTL`.
    Twitter,
    /// CacheLib's CSV, its columns in the first line.
    CacheLib,
    /// libCacheSim's binary records of 24 bytes.
    OracleGeneral,
    /// What `MONITOR` of Redis and Valkey prints.
    RedisMonitor,
    /// The file of memtier's `--data-import`.
    Memtier,
    /// RocksDB's binary query trace.
    RocksDb,
    /// The text that RocksDB's trace analyzer makes of one.
    RocksDbText,
    /// Packets of memcached's and Redis' clients: `.pcap` or `.pcapng`.
    PacketCapture,
    /// What `watch fetchers mutations` of memcached prints.
    MemcachedWatch,
    /// kvmeter's own, which `kvmeter workload capture` writes.
    Kvmeter,
}

/// What a format says about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceTiming {
    /// Whole seconds: where in its second a request lies is not known.
    Seconds,
    /// Microseconds or finer.
    Exact,
    /// Only the order.
    Untimed,
}

impl TraceFormat {
    pub const ALL: [TraceFormat; 10] = [
        TraceFormat::Twitter,
        TraceFormat::CacheLib,
        TraceFormat::OracleGeneral,
        TraceFormat::RedisMonitor,
        TraceFormat::Memtier,
        TraceFormat::RocksDb,
        TraceFormat::RocksDbText,
        TraceFormat::PacketCapture,
        TraceFormat::MemcachedWatch,
        TraceFormat::Kvmeter,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Twitter => "twitter",
            TraceFormat::CacheLib => "cachelib",
            TraceFormat::OracleGeneral => "oracle-general",
            TraceFormat::RedisMonitor => "redis-monitor",
            TraceFormat::Memtier => "memtier",
            TraceFormat::RocksDb => "rocksdb",
            TraceFormat::RocksDbText => "rocksdb-text",
            TraceFormat::PacketCapture => "packet-capture",
            TraceFormat::MemcachedWatch => "memcached-watch",
            TraceFormat::Kvmeter => "kvmeter",
        }
    }

    /// Whether a place in it is a line; else it is a byte.
    pub const fn has_lines(self) -> bool {
        !matches!(
            self,
            TraceFormat::OracleGeneral
                | TraceFormat::RocksDb
                | TraceFormat::PacketCapture
                | TraceFormat::Kvmeter
        )
    }

    /// Whether its requests may be scans.
    pub const fn may_scan(self) -> bool {
        matches!(self, TraceFormat::RocksDb | TraceFormat::RocksDbText | TraceFormat::Kvmeter)
    }

    /// The format of a file that begins so; `None` where no format does. `head` is the first line,
    /// or the first [`HEAD`] bytes where there is no line or it is longer.
    pub(super) fn detect(head: &[u8]) -> Option<TraceFormat> {
        if rocksdb::recognises(head) {
            return Some(TraceFormat::RocksDb);
        }
        if capture::recognises(head) {
            return Some(TraceFormat::PacketCapture);
        }
        if kvmeter::recognises(head) {
            return Some(TraceFormat::Kvmeter);
        }
        if !is_text(head) {
            return oracle_general::recognises(head).then_some(TraceFormat::OracleGeneral);
        }
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let known = [
            (monitor::recognises as fn(&[u8]) -> bool, TraceFormat::RedisMonitor),
            (memcached_watch::recognises, TraceFormat::MemcachedWatch),
            (memtier::recognises, TraceFormat::Memtier),
            (rocksdb_text::recognises, TraceFormat::RocksDbText),
            // Its header may have as many words as Twitter's.
            (cachelib::recognises, TraceFormat::CacheLib),
            (twitter::recognises, TraceFormat::Twitter),
        ];
        let found = known.into_iter().find(|(recognises, _)| recognises(line));
        // The error of a line then says what it lacks.
        Some(found.map_or(TraceFormat::Twitter, |(_, format)| format))
    }
}

/// Bytes from which a format is told where they hold no line.
pub(super) const HEAD: usize = 4096;

/// Whether a first line is text: a byte that no text holds is not in it.
pub(super) fn is_text(head: &[u8]) -> bool {
    let line = head.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\r' | b'\n'))
}

impl FromStr for TraceFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = TraceFormat::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let hint = suggest::hint(name, TraceFormat::ALL.map(TraceFormat::name));
            format!("no format of traces is called `{name}`; {hint}")
        })
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
