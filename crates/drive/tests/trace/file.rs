//! Generated traces, and the operations that a store must get for them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use tempfile::TempDir;

/// An operation, and for a write the bytes of its value.
pub type LoggedOperation = (char, usize);

pub struct Lines {
    pub text: String,
    /// The operations on each key, in order.
    pub by_key: BTreeMap<String, Vec<LoggedOperation>>,
    /// Requests of each second.
    pub seconds: Vec<u64>,
    pub hits: u64,
    pub misses: u64,
    there: HashSet<String>,
}

impl Lines {
    pub fn new() -> Lines {
        Lines {
            text: String::new(),
            by_key: BTreeMap::new(),
            seconds: Vec::new(),
            hits: 0,
            misses: 0,
            there: HashSet::new(),
        }
    }

    pub fn push(&mut self, second: usize, key: &str, size: usize, operation: &str, ttl: u32) {
        let (at, length) = (1_000_000 + second, key.len());
        writeln!(self.text, "{at},{key},{length},{size},7,{operation},{ttl}").unwrap();
        let asked = match operation {
            "get" | "gets" => ('r', 0),
            "delete" => ('d', 0),
            _ => ('w', size),
        };
        self.by_key.entry(key.to_owned()).or_default().push(asked);
        self.seconds.resize(second + 1, 0);
        self.seconds[second] += 1;
        match asked.0 {
            'r' if self.there.contains(key) => self.hits += 1,
            'r' => self.misses += 1,
            'w' => drop(self.there.insert(key.to_owned())),
            _ => drop(self.there.remove(key)),
        }
    }

    pub fn requests(&self) -> u64 {
        self.seconds.iter().sum()
    }

    /// `seconds` seconds with `rate` requests, twice as many in each third one.
    pub fn mixed(seconds: usize, rate: usize) -> Lines {
        let mut lines = Lines::new();
        let mut number = 0_u64;
        for second in 0..seconds {
            let burst = if second % 3 == 1 { 2 } else { 1 };
            for _ in 0..rate * burst {
                let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let key = format!("ns:{:05}:{:x}", (random >> 33) % 500, random >> 62);
                let operation = ["get", "get", "set", "gets", "add", "incr", "get", "delete"]
                    [(random >> 20) as usize % 8];
                // Every write has another size, which tells them apart.
                lines.push(second, &key, 20 + number as usize % 2000, operation, 0);
                number += 1;
            }
        }
        lines
    }
}

pub enum Packed {
    Plain,
    Gzip,
    Zstd,
}

pub fn write(folder: &TempDir, text: &str, packed: &Packed) -> PathBuf {
    let bytes = match packed {
        Packed::Plain => text.as_bytes().to_vec(),
        Packed::Gzip => {
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        }
        Packed::Zstd => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(text.as_bytes(), level)
        }
    };
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    path
}
