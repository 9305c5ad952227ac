//! Traces as a driver reads them, from generated files.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{Expiry, Op};
use tempfile::TempDir;
use workload::SizedValues;
use workload::trace::{
    ArrivalSpread, FeedItem, RecordProblem, RequestChunk, TraceError, TraceFeed, TraceOp,
    TraceReader,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// `seconds` seconds of `rate` requests, with a gap in the middle.
fn text(seconds: u64, rate: u64) -> String {
    let mut text = String::new();
    for request in 0..seconds * rate {
        let second = 1000 + request / rate + if request / rate >= seconds / 2 { 5 } else { 0 };
        let key = request.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 997;
        let (operation, ttl) = match request % 10 {
            0 => ("set", 3600),
            1 if request % 100 == 1 => ("delete", 0),
            _ => ("get", 0),
        };
        let size = 20 + key % 10;
        text += &format!("{second},ns:{key:010}:x,{size},{},3,{operation},{ttl}\n", key * 3);
    }
    text
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zst(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn write(&self, bytes: impl AsRef<[u8]>) -> PathBuf {
        let count = fs::read_dir(self.0.path()).unwrap().count();
        let path = self.0.path().join(format!("trace.{count}"));
        fs::write(&path, bytes).unwrap();
        path
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Owned {
    index: u64,
    at_s: f64,
    operation: TraceOp,
    key: Vec<u8>,
    value_size: u32,
    expiry: Expiry,
}

fn all(mut trace: TraceReader, spread: ArrivalSpread) -> Result<Vec<Owned>, TraceError> {
    let (mut chunk, mut requests) = (RequestChunk::new(), Vec::new());
    while trace.next_second(spread, &mut chunk)? {
        assert!(!chunk.is_empty());
        requests.extend(chunk.iter().map(|request| Owned {
            index: request.index,
            at_s: request.at_s,
            operation: request.operation,
            key: request.key.to_vec(),
            value_size: request.value_size,
            expiry: request.expiry,
        }));
    }
    Ok(requests)
}

fn drain(feed: &mut TraceFeed) -> (Vec<Owned>, Result<(), TraceError>) {
    let mut requests = Vec::new();
    loop {
        match feed.peek(LONG) {
            Ok(FeedItem::Request(request)) => requests.push(Owned {
                index: request.index,
                at_s: request.at_s,
                operation: request.operation,
                key: request.key.to_vec(),
                value_size: request.value_size,
                expiry: request.expiry,
            }),
            Ok(FeedItem::NotYet) => panic!("nothing came for a minute"),
            Ok(FeedItem::End) => return (requests, Ok(())),
            Err(error) => return (requests, Err(error)),
        }
        feed.advance();
    }
}

#[test]
fn every_compression_gives_the_same_requests() {
    let files = Files::new();
    let text = text(20, 3000);
    let (one, two) = text.as_bytes().split_at(700_000);
    let expected =
        all(TraceReader::open(files.write(&text)).unwrap(), ArrivalSpread::Even).unwrap();
    assert_eq!(expected.len(), 60_000);
    for bytes in [
        gzip(text.as_bytes()),
        zst(text.as_bytes()),
        [gzip(one), gzip(two)].concat(),
        [zst(one), zst(two)].concat(),
        text.replace('\n', "\r\n").into_bytes(),
        text.trim_end().as_bytes().to_vec(),
    ] {
        let requests =
            all(TraceReader::open(files.write(bytes)).unwrap(), ArrivalSpread::Even).unwrap();
        assert!(requests == expected);
    }
}

#[test]
fn a_header_and_a_byte_order_mark_are_skipped() {
    const HEADER: &str = "timestamp,key,key_size,value_size,client_id,operation,TTL";
    let files = Files::new();
    let text = text(4, 500);
    let expected =
        all(TraceReader::open(files.write(&text)).unwrap(), ArrivalSpread::Even).unwrap();
    for (before, header) in [
        (format!("{HEADER}\n"), true),
        (format!("{HEADER}\r\n"), true),
        (format!("\u{feff}{HEADER}\n"), true),
        ("\u{feff}".to_owned(), false),
    ] {
        let file = files.write(format!("{before}{text}"));
        let trace = TraceReader::open(&file).unwrap();
        assert_eq!(trace.header().is_some_and(|line| **line == *HEADER), header);
        assert!(all(trace, ArrivalSpread::Even).unwrap() == expected, "{before:?}");
        let summary = TraceReader::open(&file).unwrap().summary(None).unwrap();
        assert_eq!((summary.requests, summary.header.is_some()), (2000, header));
    }
    // Lines count on from the header, and a second one is no request.
    let error = all(
        TraceReader::open(files.write(format!("{HEADER}\n0,k,1,0,1,get,0\n{HEADER}\n"))).unwrap(),
        ArrivalSpread::Even,
    );
    assert!(error.unwrap_err().to_string().contains(":3: the timestamp is not a whole number"));
    let empty = TraceReader::open(files.write(HEADER)).unwrap_err();
    assert!(matches!(empty, TraceError::Empty { .. }), "{empty}");
}

#[test]
fn requests_are_those_of_the_lines() {
    let files = Files::new();
    let lines = "7,nz:abc,6,304,5,set,60\n7,a,b,3,0,5,gets,0\n9,nz:abc,300,12,5,incr,0\n";
    let requests =
        all(TraceReader::open(files.write(lines)).unwrap(), ArrivalSpread::Even).unwrap();
    let first = Owned {
        index: 0,
        at_s: 0.25,
        operation: TraceOp::Set,
        key: b"nz:abc".to_vec(),
        value_size: 304,
        expiry: Expiry::After(60),
    };
    assert_eq!(requests[0], first);
    assert_eq!((requests[1].at_s, &*requests[1].key), (0.75, &b"a,b"[..]));
    assert_eq!((requests[2].at_s, requests[2].key.len()), (2.5, 250));
    assert!(requests[2].key.starts_with(b"nz:abc"));
    let ops: Vec<Op> = requests.iter().map(|request| request.operation.op()).collect();
    assert_eq!(ops, [Op::Update, Op::Read, Op::Update]);
}

#[test]
fn a_feed_divides_by_key_and_keeps_the_order() {
    let files = Files::new();
    let path = files.write(zst(text(40, 5000).as_bytes()));
    let spread = ArrivalSpread::Poisson { seed: 3 };
    let expected = all(TraceReader::open(&path).unwrap(), spread).unwrap();
    assert!(expected.iter().map(|request| request.at_s).is_sorted());
    for consumers in [1, 3] {
        let feeds = TraceReader::open(&path).unwrap().feed(consumers, spread).unwrap();
        let threads: Vec<_> = feeds
            .into_iter()
            .map(|mut feed| std::thread::spawn(move || drain(&mut feed)))
            .collect();
        let mut owner = HashMap::new();
        let mut merged = Vec::new();
        for (consumer, thread) in threads.into_iter().enumerate() {
            let (requests, end) = thread.join().unwrap();
            end.unwrap();
            assert!(requests.iter().map(|request| request.index).is_sorted());
            assert!(requests.len() > expected.len() / consumers / 2, "divided evenly");
            for request in &requests {
                assert_eq!(*owner.entry(request.key.clone()).or_insert(consumer), consumer);
            }
            merged.extend(requests);
        }
        merged.sort_by_key(|request| request.index);
        assert!(merged == expected);
    }
}

#[test]
fn malformed_line_is_reported_to_every_consumer() {
    let files = Files::new();
    let mut text = text(10, 100);
    text += "1015,key,3,0,1,gett,0\n";
    let path = files.write(gzip(text.as_bytes()));
    for mut feed in TraceReader::open(&path).unwrap().feed(3, ArrivalSpread::Even).unwrap() {
        let (requests, end) = drain(&mut feed);
        assert!(requests.len() > 100, "what was before it is handed over");
        for error in [end.unwrap_err(), feed.peek(Duration::ZERO).unwrap_err()] {
            let says = error.to_string();
            assert!(says.starts_with(&format!("{}:1001: ", path.display())), "{says}");
            assert!(says.contains("did you mean `get`?"), "{says}");
            assert!(says.ends_with("the line is `1015,key,3,0,1,gett,0`"), "{says}");
        }
    }
}

fn problem(error: TraceError) -> (u64, RecordProblem) {
    match error {
        TraceError::Line { line, problem, .. } => (line, problem),
        other => panic!("{other}"),
    }
}

#[test]
fn refuses_files_that_are_no_trace() {
    let files = Files::new();
    let open = |bytes: &[u8]| TraceReader::open(files.write(bytes)).unwrap_err();
    for bytes in [Vec::new(), gzip(b""), zst(b"")] {
        let error = open(&bytes);
        assert!(matches!(error, TraceError::Empty { .. }), "{error}");
        assert!(error.to_string().ends_with("holds no request"), "{error}");
    }
    let (line, problem) = problem(open(b"now,key,3,0,1,get,0\n"));
    assert_eq!(line, 1);
    assert!(problem.to_string().contains("the timestamp is not a whole number"), "{problem}");
    assert!(open(b"\n").to_string().contains("0 of the 7 fields"));
    assert!(open(&[0xfd, b'7', b'z', b'X', b'Z', 0]).to_string().contains("compressed with xz"));
    assert!(open(b"BZh91AY").to_string().contains("bzip2, which is not supported"));
    let missing = TraceReader::open(files.0.path().join("missing")).unwrap_err();
    assert!(matches!(missing, TraceError::Open { .. }), "{missing}");
    assert!(matches!(TraceReader::open(files.0.path()), Err(TraceError::Open { .. })));
}

#[test]
fn refuses_decreasing_timestamps() {
    let files = Files::new();
    let trace = files.write("5,k,1,0,1,get,0\n6,k,1,0,1,get,0\n5,k,1,0,1,get,0\n");
    let error = all(TraceReader::open(trace).unwrap(), ArrivalSpread::Even).unwrap_err();
    assert_eq!(problem(error), (3, RecordProblem::TimeGoesBack { before: 6, now: 5 }));
}

#[test]
fn truncated_file_names_the_last_line() {
    let files = Files::new();
    let text = text(20, 3000);
    for whole in [gzip(text.as_bytes()), zst(text.as_bytes())] {
        for part in [whole.len() / 2, whole.len() - 3] {
            let trace = TraceReader::open(files.write(&whole[..part])).unwrap();
            match all(trace, ArrivalSpread::Even).unwrap_err() {
                TraceError::Read { line, .. } => assert!((1000..60_001).contains(&line), "{line}"),
                // The cut is inside of a line where the decoder hands out all that it has.
                TraceError::Line { line, .. } => assert!(line > 1000, "{line}"),
                other => panic!("{other}"),
            }
        }
        // Damaged in the middle: neither a wrong request nor a panic.
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 64].fill(0x55);
        let trace = TraceReader::open(files.write(damaged)).unwrap();
        assert!(all(trace, ArrivalSpread::Even).is_err());
    }
}

#[test]
fn refuses_endless_lines() {
    let files = Files::new();
    let huge = vec![b'1'; 20 << 20];
    for bytes in [huge.clone(), zst(&huge)] {
        let (line, problem) = problem(TraceReader::open(files.write(bytes)).unwrap_err());
        assert_eq!((line, problem), (1, RecordProblem::TooLong { most: 4096 }));
    }
    let mut second = b"1,k,1,0,1,get,0\n".to_vec();
    second.extend_from_slice(&huge);
    let error =
        all(TraceReader::open(files.write(second)).unwrap(), ArrivalSpread::Even).unwrap_err();
    assert!(error.to_string().len() < 500, "{error}");
    assert_eq!(problem(error).0, 2);
    // The longest line that is read.
    let line = format!("1,{},1,0,1,get,0\n", "k".repeat(4096 - 15));
    assert_eq!(line.len(), 4096);
    assert_eq!(
        all(TraceReader::open(files.write(line)).unwrap(), ArrivalSpread::Even).unwrap().len(),
        1
    );
}

#[test]
fn refuses_too_many_requests_in_a_second() {
    let files = Files::new();
    let path = files.write(text(4, 1000));
    let bounded =
        |most| all(TraceReader::open(&path).unwrap().at_most_a_second(most), ArrivalSpread::Even);
    assert_eq!(bounded(1000).unwrap().len(), 4000);
    match bounded(999).unwrap_err() {
        error @ TraceError::TooManyInASecond { request: 1000, second: 1000, most: 999, .. } => {
            assert!(error.to_string().contains("more than 999 requests"), "{error}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn summarises_a_trace() {
    let files = Files::new();
    let path = files.write(text(20, 1000));
    let summary = TraceReader::open(&path).unwrap().summary(None).unwrap();
    assert!(summary.whole);
    assert_eq!(summary.requests, 20_000);
    assert_eq!(summary.by_op[Op::Update], 2000);
    assert_eq!(summary.by_op[Op::Delete], 200);
    assert_eq!(summary.read_share(), 0.89);
    assert_eq!((summary.duration_s, summary.peak_rate_s), (Some(25.0), Some(1000)));
    assert_eq!(summary.mean_rate_s(), Some(800.0));
    // Keys are 0 to 996, each with sizes 20 + k % 10 and 3 k.
    assert!((summary.mean_key_size - 24.5).abs() < 0.1, "{}", summary.mean_key_size);
    assert!((summary.mean_value_size - 1494.0).abs() < 30.0, "{}", summary.mean_value_size);
    assert_eq!(summary.largest_value, 996 * 3);
    assert!((summary.distinct_keys - 997.0).abs() < 30.0, "{}", summary.distinct_keys);
    let beginning = TraceReader::open(&path).unwrap().summary(Some(2500)).unwrap();
    assert_eq!(
        (beginning.requests, beginning.duration_s, beginning.whole),
        (3000, Some(3.0), false)
    );
}

/// Values of a trace are verified from the key alone.
#[test]
fn values_of_the_trace_are_written_and_verified() {
    let files = Files::new();
    let values = SizedValues::new(1, 0.0).unwrap();
    let mut value = Vec::new();
    for request in
        all(TraceReader::open(files.write(text(2, 1000))).unwrap(), ArrivalSpread::Even).unwrap()
    {
        values.write(&request.key, request.index, request.value_size as usize, &mut value);
        assert_eq!(value.len(), request.value_size as usize);
        assert_eq!(values.verify(&request.key, &value), Ok(()));
    }
}

/// Run by the test below, in a process of its own.
#[test]
#[ignore = "reads standard input"]
fn child_reads_standard_input() {
    let requests = all(TraceReader::open("-").unwrap(), ArrivalSpread::Even);
    match requests {
        Ok(requests) => println!("requests={}", requests.len()),
        Err(error) => println!("error={error}"),
    }
}

#[test]
fn standard_input_is_read() {
    let bad = "1,k,1,0,1,get,0\n1,k,1,0,1,nonsense,0\n";
    for (input, says) in [
        (text(5, 1000).into_bytes(), "requests=5000"),
        (zst(text(5, 1000).as_bytes()), "requests=5000"),
        (bad.as_bytes().to_vec(), "error=standard input:2: no operation"),
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "child_reads_standard_input", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&input).unwrap();
        let output = child.wait_with_output().unwrap();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.contains(says), "{output}");
    }
}
