//! Replays against a store in this process.

use std::sync::Arc;
use std::time::Duration;

use drive::DriveError;
use model::{Arrivals, Pacing, StopCondition};

use crate::file::{Lines, Packed, write};
use crate::operation_log::OperationLog;
use crate::{changed, max, plan, run_phase};

#[test]
fn every_request_is_issued_once_in_key_order() {
    let lines = Lines::mixed(6, 500);
    let folder = tempfile::tempdir().unwrap();
    let mut fingerprints = Vec::new();
    for (packed, threads, pacing) in [
        (Packed::Plain, 1, max()),
        (Packed::Gzip, 3, max()),
        (Packed::Zstd, 4, Pacing::Recorded { speed: 10.0 }),
        (Packed::Plain, 2, Pacing::Open { rate: 10_000.0, arrivals: Arrivals::Poisson }),
    ] {
        let log = Arc::new(OperationLog::default());
        let outcome =
            run_phase(log.clone(), &plan(&write(&folder, &lines.text, &packed), threads, pacing))
                .unwrap();
        assert_eq!(outcome.failures, [], "{pacing:?}");
        assert_eq!(outcome.operations, lines.requests());
        assert_eq!((outcome.hits, outcome.misses), (lines.hits, lines.misses));
        assert_eq!(outcome.verified, lines.hits);
        assert_eq!(outcome.never_sent, 0);
        assert_eq!(log.operations(), lines.by_key, "{pacing:?}");
        let replayed = outcome.replayed.unwrap();
        assert_eq!(replayed.requests, lines.requests());
        assert_eq!((replayed.cut, replayed.lengthened), (0, 0));
        assert!(replayed.error.is_none());
        fingerprints.push(outcome.fingerprint);
    }
    assert!(fingerprints[0] != 0);
    assert!(fingerprints.iter().all(|one| *one == fingerprints[0]), "{fingerprints:x?}");
}

#[test]
fn each_second_has_its_recorded_requests() {
    let lines = Lines::mixed(6, 300);
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    // Three seconds of the trace in each of the clock's; every instant of a request follows from
    // the file and the seed, whenever it is really sent.
    let plan = plan(&file, 2, Pacing::Recorded { speed: 3.0 });
    let outcome = run_phase(Arc::new(OperationLog::default()), &plan).unwrap();
    let due: Vec<u64> = outcome.replayed.unwrap().seconds.iter().map(|second| second.0).collect();
    let expected: Vec<u64> = lines.seconds.chunks(3).map(|three| three.iter().sum()).collect();
    assert_eq!(due, expected);
    assert_eq!(outcome.due, lines.requests());
    assert!(outcome.response.iter().map(|(_, h)| h.len()).sum::<u64>() == lines.requests());
    // It cannot have been faster than the trace.
    assert!(outcome.seconds > 5.0 / 3.0, "{}", outcome.seconds);
}

#[test]
fn a_rate_replaces_the_recorded_times() {
    let lines = Lines::mixed(9, 200);
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    let plan = plan(&file, 2, Pacing::Open { rate: 1000.0, arrivals: Arrivals::Constant });
    let outcome = run_phase(Arc::new(OperationLog::default()), &plan).unwrap();
    let seconds = outcome.replayed.unwrap().seconds;
    assert_eq!(lines.requests(), 2400);
    for (due, expected) in seconds.iter().map(|second| second.0).zip([1000, 1000, 400]) {
        assert!(due.abs_diff(expected) <= 1, "{seconds:?}");
    }
}

#[test]
fn a_warm_up_is_the_beginning_of_the_trace() {
    let lines = Lines::mixed(4, 500);
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    let warm_up = Some(Duration::from_millis(500));
    let mut plan = plan(&file, 2, Pacing::Recorded { speed: 4.0 });
    plan.shape.warm_up = warm_up;
    let log = Arc::new(OperationLog::default());
    let outcome = run_phase(log.clone(), &plan).unwrap();
    assert_eq!(log.operations(), lines.by_key, "the window includes requests read before it");
    let replayed = outcome.replayed.unwrap();
    assert_eq!(replayed.requests, lines.requests());
    // The first two seconds of the trace have passed when the window opens, and 1000 requests of
    // 2500 are left at most.
    let due: u64 = replayed.seconds.iter().map(|second| second.0).sum();
    assert!((1..=1000).contains(&due), "{due}");
    assert!((due..lines.requests()).contains(&outcome.operations), "{}", outcome.operations);
}

#[test]
fn a_window_may_end_before_the_trace() {
    let lines = Lines::mixed(600, 100);
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    let until = StopCondition { operations: None, time: Some(Duration::from_millis(700)) };
    for pacing in [Pacing::Recorded { speed: 10.0 }, max()] {
        let mut plan = plan(&file, 2, pacing);
        plan.shape.until = until;
        let outcome = run_phase(Arc::new(OperationLog::default()), &plan).unwrap();
        let replayed = outcome.replayed.unwrap();
        assert!(replayed.error.is_none());
        if pacing.is_open() {
            // Seven seconds of the trace, the second and the fifth of them twice as busy.
            assert_eq!(outcome.due, 900);
            assert_eq!(replayed.requests, outcome.operations);
        }
    }
    let first = changed(plan(&file, 2, max()), |replay| replay.most = Some(250));
    let outcome = run_phase(Arc::new(OperationLog::default()), &first).unwrap();
    assert_eq!(outcome.operations, 250);
    assert!(outcome.seconds < 30.0, "{}", outcome.seconds);
    let short = outcome.warnings.iter().any(|words| words.contains("the trace"));
    assert!(!short, "{:?}", outcome.warnings);
}

#[test]
fn a_trace_shorter_than_requested_gives_a_warning() {
    let lines = Lines::mixed(2, 100);
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    let whole = lines.requests();
    for (most, warns) in [(whole - 1, false), (whole, false), (whole + 1, true)] {
        let plan = changed(plan(&file, 2, max()), |replay| replay.most = Some(most));
        let outcome = run_phase(Arc::new(OperationLog::default()), &plan).unwrap();
        assert_eq!(outcome.operations, most.min(whole));
        let words = format!("has {whole} requests, fewer than the {most} requested");
        let warned = outcome.warnings.iter().any(|warning| warning.contains(&words));
        assert_eq!(warned, warns, "{:?}", outcome.warnings);
        assert!(outcome.invalid_because.is_empty(), "{:?}", outcome.invalid_because);
    }
    for (time, warns) in [(600, true), (2, false)] {
        let until = StopCondition { operations: None, time: Some(Duration::from_secs(time)) };
        let mut plan = plan(&file, 2, Pacing::Recorded { speed: 1.0 });
        plan.shape.until = until;
        let outcome = run_phase(Arc::new(OperationLog::default()), &plan).unwrap();
        let warned = outcome.warnings.iter().any(|warning| warning.contains("the trace ended"));
        assert_eq!(warned, warns, "{:?}", outcome.warnings);
    }
}

#[test]
fn misses_are_refilled_if_enabled() {
    let mut lines = Lines::new();
    for second in 0..3 {
        for key in 0..50 {
            lines.push(second, &format!("key:{key}"), 100, "get", 0);
        }
        // Not there when it was recorded either.
        lines.push(second, "none", 0, "get", 0);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, &lines.text, &Packed::Plain);
    let plan = changed(plan(&file, 2, max()), |replay| replay.refill = true);
    let log = Arc::new(OperationLog::default());
    let outcome = run_phase(log.clone(), &plan).unwrap();
    assert_eq!((outcome.operations, outcome.refills), (153, 50));
    assert_eq!((outcome.hits, outcome.misses), (100, 53));
    assert_eq!(outcome.failures, []);
    let asked = log.operations();
    assert_eq!(asked["key:7"], [('r', 0), ('w', 100), ('r', 0), ('r', 0)]);
    assert_eq!(asked["none"], [('r', 0); 3]);
}

#[test]
fn an_invalid_line_ends_the_replay_and_keeps_requests_before_it() {
    let mut lines = Lines::mixed(3, 400);
    let before = lines.requests();
    lines.push(3, "key", 10, "get", 0);
    lines.text += "1000004,key,3,ten,1,get,0\n";
    let number = lines.requests() + 1;
    let folder = tempfile::tempdir().unwrap();
    for packed in [Packed::Plain, Packed::Gzip] {
        let file = write(&folder, &lines.text, &packed);
        for pacing in [max(), Pacing::Recorded { speed: 20.0 }] {
            let outcome =
                run_phase(Arc::new(OperationLog::default()), &plan(&file, 3, pacing)).unwrap();
            assert_eq!(outcome.operations, before + 1, "{pacing:?}");
            assert_eq!(outcome.failures, []);
            let words = outcome.invalid_because.join("; ");
            assert!(words.contains(&format!("trace:{number}: the value size is")), "{words}");
            let error = outcome.replayed.unwrap().error;
            assert!(error.is_some_and(|words| words.contains(&format!(":{number}: "))));
        }
    }
}

#[test]
fn a_file_that_is_no_trace_is_refused_before_the_phase() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let refused = |words: &str| {
        let log = Arc::new(OperationLog::default());
        let error = run_phase(log.clone(), &plan(&path, 1, max())).unwrap_err();
        assert!(matches!(error, DriveError::Trace(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(log.operations().is_empty());
    };
    refused("cannot be opened");
    for (bytes, words) in [
        (&b""[..], "holds no request"),
        (b"\xfd7zXZ\0\0", "xz"),
        (b"now,key,3,0,1,get,0\n", "trace:1: "),
    ] {
        std::fs::write(&path, bytes).unwrap();
        refused(words);
    }
}

#[test]
fn changed_keys_are_reported() {
    let text = "1,a:key:of:an:anonymised:kind,8,10,1,set,0\n1,short,20,10,1,get,0\n\
                1,exactly,7,10,1,get,0\n";
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, text, &Packed::Plain);
    let outcome = run_phase(Arc::new(OperationLog::default()), &plan(&file, 1, max())).unwrap();
    let words = outcome.warnings.join("; ");
    assert!(words.contains("33.3 % of the requests were cut"), "{words}");
    assert!(words.contains("lengthened"), "{words}");
    let replayed = outcome.replayed.unwrap();
    assert_eq!((replayed.cut, replayed.lengthened), (1, 1));
}
