//! Memory of a replay: alone in its process, whose figure it reads.
#![cfg(target_os = "linux")]
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::sync::Arc;

use drive::{LoadPlan, NoObserver, PhaseKind, Replay, Ticks, drive, open};
use workload::trace::{ArrivalSpread, TraceOptions};
use workload::{SizedValues, Workload, WorkloadSpec};

/// The most memory that this process ever held, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn replay(file: &std::path::Path, most: Option<u64>) -> u64 {
    let values = Arc::new(SizedValues::new(1, 0.0).unwrap());
    let file = file.to_owned();
    let (spread, options) = (ArrivalSpread::Even, TraceOptions::default());
    let replay = Replay { file, options, spread, most, values, refill: false };
    let plan = LoadPlan { trace: Some(Arc::new(replay)), ..LoadPlan::closed(PhaseKind::Mix, 2) };
    let store = open(&"null".parse().unwrap()).unwrap();
    let workload = Arc::new(Workload::new(&WorkloadSpec::default()).unwrap());
    drive(&Ticks::new(), store, &workload, &plan, &mut NoObserver).unwrap().operations
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    const SECONDS: u64 = 300;
    const RATE: u64 = 5000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.zst");
    let mut packed = std::fs::File::create(&path).unwrap();
    let mut bytes = 0;
    for second in 0..SECONDS {
        let lines: String =
            (0..RATE).map(|k| format!("{second},key:{k:040},44,100,1,get,0\n")).collect();
        bytes += lines.len() as u64;
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let frame = ruzstd::encoding::compress_to_vec(lines.as_bytes(), level);
        packed.write_all(&frame).unwrap();
    }
    assert!(bytes > 90_000_000);
    // Histograms, sessions and what is read ahead are there after the beginning.
    assert_eq!(replay(&path, Some(300_000)), 300_000);
    let before = peak();
    assert_eq!(replay(&path, None), SECONDS * RATE);
    let grown = peak() - before;
    assert!(grown < bytes / 4, "{grown} B for a trace of {bytes} B");
}
