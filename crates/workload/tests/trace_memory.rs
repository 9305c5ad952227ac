//! Memory and threads of a replay: alone in its process, because it reads the process's figures.
#![cfg(target_os = "linux")]
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use workload::trace::{ArrivalSpread, FeedItem, TraceReader};

/// The most memory that this process ever held, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn readers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.trim() == "trace")
        .count()
}

fn no_reader_thread_remains() {
    let begin = Instant::now();
    while readers() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the thread does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn memory_does_not_grow_with_the_trace_and_the_thread_ends() {
    const SECONDS: u64 = 400;
    const RATE: u64 = 5000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.zst");
    // A frame a second.
    let mut packed = fs::File::create(&path).unwrap();
    let mut bytes = 0;
    for second in 0..SECONDS {
        let lines: String =
            (0..RATE).map(|k| format!("{second},key:{k:040},44,1000,1,get,0\n")).collect();
        bytes += lines.len() as u64;
        let frame = ruzstd::encoding::compress_to_vec(
            lines.as_bytes(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        packed.write_all(&frame).unwrap();
    }
    assert!(bytes > 120_000_000);

    let before = peak();
    let feeds = TraceReader::open(&path).unwrap().feed(2, ArrivalSpread::Even).unwrap();
    let counts: u64 = feeds
        .into_iter()
        .map(|mut feed| {
            std::thread::spawn(move || {
                let mut count = 0;
                loop {
                    match feed.peek(Duration::from_secs(60)).unwrap() {
                        FeedItem::Request(_) => count += 1,
                        FeedItem::NotYet => panic!("nothing came for a minute"),
                        FeedItem::End => return count,
                    }
                    feed.advance();
                }
            })
        })
        .collect::<Vec<_>>()
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(counts, SECONDS * RATE);
    let grown = peak() - before;
    assert!(grown < bytes / 3, "{grown} B for a trace of {bytes} B");
    no_reader_thread_remains();

    // Idle consumers block the reader thread, and release it when they are dropped.
    let mut feeds = TraceReader::open(&path).unwrap().feed(2, ArrivalSpread::Even).unwrap();
    assert!(matches!(feeds[0].peek(Duration::from_secs(60)), Ok(FeedItem::Request(_))));
    assert_eq!(readers(), 1);
    drop(feeds);
    no_reader_thread_remains();

    // A dropped consumer does not block the others.
    let mut feeds = TraceReader::open(&path).unwrap().feed(2, ArrivalSpread::Even).unwrap();
    drop(feeds.pop());
    let mut last = 0;
    while let FeedItem::Request(request) = feeds[0].peek(Duration::from_secs(60)).unwrap() {
        last = request.index;
        feeds[0].advance();
    }
    assert!(last > SECONDS * RATE - 100, "{last}");
    no_reader_thread_remains();
}
