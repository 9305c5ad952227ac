//! kvmeter's own format: what is written is read, whole or as far as it goes.

use model::Expiry;
use workload::trace::{
    KeyHasher, TraceFormat, TraceKey, TraceOp, TraceOptions, TraceRecord, TraceRecords,
    TraceTiming, TraceWriter,
};

use super::{TraceFile, shown};

fn record(at_us: u64, operation: TraceOp, key: &[u8]) -> TraceRecord<'_> {
    TraceRecord {
        at_ns: at_us * 1000,
        operation,
        key: TraceKey::Bytes(key),
        key_size: None,
        value_size: None,
        expiry: None,
    }
}

fn records<'k>() -> Vec<TraceRecord<'k>> {
    let of = record(1_795_000_000_000_001, TraceOp::Get, b"user:1");
    vec![
        TraceRecord { value_size: Some(77), ..of },
        TraceRecord { value_size: Some(0), expiry: Some(Expiry::Never), ..of },
        TraceRecord { operation: TraceOp::Set, expiry: Some(Expiry::After(60)), ..of },
        // Threads log side by side: time stands where it would go back.
        record(1_795_000_000_000_000, TraceOp::Delete, b"user:2"),
        TraceRecord {
            expiry: Some(Expiry::AtOnce),
            ..record(1_795_000_009_000_000, TraceOp::Cas, b"k k")
        },
        TraceRecord {
            key: TraceKey::Number(255),
            ..record(1_795_000_009_000_000, TraceOp::Seek, b"")
        },
    ]
}

/// A trace, unfinished without a count of lost requests.
pub fn written(keys: Option<KeyHasher>, lost: Option<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    let facts = [("source", "a\nb")];
    let mut writer = TraceWriter::new(&mut out, &facts, keys).unwrap();
    for record in records() {
        writer.append(&record).unwrap();
    }
    assert_eq!(writer.requests(), 6);
    match lost {
        Some(lost) => drop(writer.finish(lost).unwrap()),
        None => writer.flush().unwrap(),
    }
    out
}

fn hasher() -> KeyHasher {
    KeyHasher::new([3; 16])
}

#[test]
fn what_was_written_is_read() {
    let file = TraceFile::of(written(None, Some(41)));
    let mut records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
    assert_eq!((records.format(), records.timing()), (TraceFormat::Kvmeter, TraceTiming::Exact));
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    let expected = [
        "0000000001000 get user:1 v=77",
        "0000000001000 get user:1 v=0 never",
        "0000000001000 set user:1 ttl=60",
        "0000000001000 delete user:2",
        "0009000000000 cas k k at-once",
        "0009000000000 seek 00000000000000ff",
    ];
    assert_eq!(lines, expected.map(|line| format!("179500{line}")));
    assert_eq!(records.counts().lost(), 41);
}

#[test]
fn keys_are_hashed_with_their_length_and_the_class_of_their_prefix() {
    let bytes = written(Some(hasher()), Some(0));
    let file = TraceFile::of(&bytes);
    let mut records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
    let (lines, _) = shown(&mut records);
    let key = |line: usize| lines[line].split(' ').nth(2).unwrap();
    assert!(key(0) == key(1) && key(0) != key(3), "{lines:?}");
    assert_eq!([0, 3, 4].map(|line| key(line).split_once(':').unwrap().0), ["1", "1", "0"]);
    assert!(lines[0].ends_with(" k=6 v=77") && lines[4].contains(" k=3 "), "{lines:?}");
    let plain = zstd(&bytes);
    for name in ["user", "k k"] {
        assert!(!plain.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name}");
    }
}

/// Decompressed by another path than the reader's own.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let table = frames(bytes);
    for (at, length, decompressed) in table {
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[at..at + length]).unwrap();
        let before = out.len();
        std::io::Read::read_to_end(&mut decoder, &mut out).unwrap();
        assert_eq!(out.len() - before, decompressed);
    }
    out
}

/// The place and the lengths of every frame, by the table at the end.
fn frames(bytes: &[u8]) -> Vec<(usize, usize, usize)> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let end = bytes.len();
    assert_eq!(number(end - 4), 0x8f92_eab1);
    let count = number(end - 9);
    let table = end - 9 - 8 * count;
    assert_eq!((number(table - 8), number(table - 4)), (0x184d_2a5e, 8 * count + 9));
    let mut at = 0;
    let frame = |index: usize| {
        let (length, decompressed) = (number(table + 8 * index), number(table + 8 * index + 4));
        at += length;
        (at - length, length, decompressed)
    };
    let all: Vec<_> = (0..count).map(frame).collect();
    assert_eq!(at, table - 8);
    all
}

#[test]
fn a_table_at_the_end_finds_every_frame() {
    let bytes = written(Some(hasher()), Some(0));
    // The head, two blocks by their time, and the end.
    assert_eq!(frames(&bytes).len(), 4);
    assert!(zstd(&bytes).starts_with(b"kvmeter-trace 1\nkeys: hashed\nsource: a b\n\n"));
}

#[test]
fn a_killed_capture_is_read_as_far_as_it_goes() {
    let whole = written(Some(hasher()), Some(0));
    let mark = frames(&whole)[3].0;
    for bytes in [&written(Some(hasher()), None), &whole[..mark], &whole[..mark + 5]] {
        let file = TraceFile::of(bytes);
        let read = |skip_bad| {
            let options = TraceOptions { skip_bad, ..TraceOptions::default() };
            shown(&mut TraceRecords::open(file.path(), &options).unwrap())
        };
        let (lines, error) = read(0);
        assert_eq!(lines.len(), 6);
        let error = error.unwrap().to_string();
        assert!(error.contains("without its mark of the end"), "{error}");
        let (lines, error) = read(1);
        assert!(lines.len() == 6 && error.is_none(), "{error:?}");
    }
}

#[test]
fn another_version_and_a_wrong_count_are_errors() {
    let refused = |bytes: &[u8]| {
        let file = TraceFile::of(bytes);
        match TraceRecords::open(file.path(), &TraceOptions::default()) {
            Ok(mut records) => shown(&mut records).1.unwrap().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let plain = zstd(&written(None, Some(0)));
    let mut other = plain.clone();
    other[14] = b'2';
    assert!(refused(&other).contains("its version is `2`; known are 1"), "{}", refused(&other));
    let mut fewer = plain.clone();
    let count = fewer.len() - 2;
    fewer[count] = 9;
    assert!(refused(&fewer).contains("holds 6 requests and should hold 9"));
    assert!(refused(b"kvmeter-trace 1\nkeys: plain\n").contains("mark of the end"));
}
