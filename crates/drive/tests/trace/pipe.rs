//! Traces that are read too slowly, through a pipe.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use drive::PhaseOutcome;
use model::Pacing;

use crate::operation_log::OperationLog;
use crate::{max, plan, run_phase};

const SECONDS: u64 = 4;
const REQUESTS: u64 = 200;

/// Replays four seconds of a trace that pauses so long before each of them.
fn replayed(pause: Duration, pacing: Pacing) -> PhaseOutcome {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let to = path.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::File::create(to).unwrap();
        for second in 0..SECONDS {
            let line = |key| format!("{second},key:{key:03},7,10,1,get,0\n");
            pipe.write_all((0..REQUESTS).map(line).collect::<String>().as_bytes()).unwrap();
            pipe.flush().unwrap();
            std::thread::sleep(pause);
        }
    });
    let outcome = run_phase(Arc::new(OperationLog::default()), &plan(&path, 2, pacing)).unwrap();
    writer.join().unwrap();
    assert_eq!(outcome.operations, SECONDS * REQUESTS, "late requests are issued too");
    outcome
}

#[test]
fn a_slow_reader_is_reported_and_is_not_the_end() {
    // Four seconds that are to pass in 40 ms take two.
    let outcome = replayed(Duration::from_millis(500), Pacing::Recorded { speed: 100.0 });
    let words = outcome.invalid_because.join("; ");
    assert!(words.contains("the client read the trace too slowly"), "{words}");
    assert!(outcome.replayed.unwrap().read_late > REQUESTS);

    let outcome = replayed(Duration::from_millis(500), max());
    let words = outcome.invalid_because.join("; ");
    assert!(words.contains("for the trace"), "{words}");
}

#[test]
fn a_fast_pipe_replays_like_a_file() {
    let outcome = replayed(Duration::ZERO, Pacing::Recorded { speed: 4.0 });
    let words = outcome.invalid_because.join("; ");
    assert!(!words.contains("too slowly"), "{words}");
    assert_eq!(outcome.replayed.unwrap().read_late, 0);
}
