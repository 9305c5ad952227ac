//! Every format of traces, from hand-made bytes and from real samples.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

mod bad;
mod binary;
mod capture;
mod damaged;
mod own;
mod packets;
mod sampling;
mod text;
mod watch;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use model::Expiry;
use workload::trace::{TraceError, TraceFormat, TraceKey, TraceOptions, TraceRecords};

/// A file that is removed with it.
struct TraceFile(tempfile::TempDir);

impl TraceFile {
    fn of(bytes: impl AsRef<[u8]>) -> TraceFile {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trace"), bytes).unwrap();
        TraceFile(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("trace")
    }
}

/// A request on a line: nanoseconds, operation, key, and what is known of the key's size, the
/// value's size and the expiry.
fn shown(records: &mut TraceRecords) -> (Vec<String>, Option<TraceError>) {
    let mut lines = Vec::new();
    loop {
        let record = match records.next() {
            Ok(Some(record)) => record,
            Ok(None) => return (lines, None),
            Err(error) => return (lines, Some(error)),
        };
        let key = match record.key {
            TraceKey::Bytes(key) => key.escape_ascii().to_string(),
            TraceKey::Number(number) => format!("#{number}"),
        };
        let mut line = format!("{} {} {key}", record.at_ns, record.operation);
        if let Some(size) = record.key_size {
            line += &format!(" k={size}");
        }
        if let Some(size) = record.value_size {
            line += &format!(" v={size}");
        }
        match record.expiry {
            None => {}
            Some(Expiry::Never) => line += " never",
            Some(Expiry::AtOnce) => line += " at-once",
            Some(Expiry::After(seconds)) => line += &format!(" ttl={seconds}"),
        }
        lines.push(line);
    }
}

/// The requests of a file whose content tells this format.
#[track_caller]
fn requests(format: TraceFormat, bytes: impl AsRef<[u8]>) -> Vec<String> {
    let file = TraceFile::of(bytes);
    let mut records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
    assert_eq!(records.format(), format);
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    lines
}

/// The error of a file that is read with these options, and the requests before it.
fn failing(options: &TraceOptions, bytes: impl AsRef<[u8]>) -> (Vec<String>, String) {
    let file = TraceFile::of(bytes);
    let says =
        |error: TraceError| error.to_string().replace(&file.path().display().to_string(), "T");
    match TraceRecords::open(file.path(), options) {
        Ok(mut records) => {
            let (lines, error) = shown(&mut records);
            (lines, says(error.unwrap()))
        }
        Err(error) => (Vec::new(), says(error)),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A real sample beside the repository, where there is one.
fn sample(name: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    if !file.exists() {
        println!("skipped: the sample {name} is not here");
        return None;
    }
    Some(file)
}
