//! The PMU in software: real runs under valgrind where it is installed.

#[cfg(test)]
mod common;

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::Recorded;
use host::Root;
use host::cachegrind::{
    CacheGeometry, Cachegrind, CachegrindError, EventTotals, SimulatedCache, SimulatedEvents,
};
use model::{Origin, Scope};

const LIMIT: Duration = Duration::from_secs(60);

fn geometry() -> CacheGeometry {
    let cache = |bytes: u64, ways: u64| SimulatedCache { bytes, ways, line: 64 };
    let made = CacheGeometry::new(cache(32 << 10, 8), cache(32 << 10, 8), cache(1 << 20, 16));
    made.unwrap_or_else(|no| panic!("{no}"))
}

/// Valgrind; without it, the way to get it must be said, and the test ends.
fn found() -> Option<Cachegrind> {
    match Cachegrind::find(&Root::live(), geometry()) {
        Ok(found) => Some(found),
        Err(no) => {
            assert!(no.remedy.contains("apt-get install valgrind"), "{no}");
            None
        }
    }
}

/// A stop flag that is never set.
fn going() -> AtomicBool {
    AtomicBool::new(false)
}

/// Stopping a study must not wait for a pass that takes minutes.
#[test]
fn a_pass_that_is_stopped_ends_at_once() {
    let Some(cachegrind) = found() else { return };
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        cachegrind.per_operation(|_| words(&["sleep", "50"]), (1, 2), dir.path(), LIMIT, &stop)
    });
    assert!(matches!(ended, Err(CachegrindError::Stopped { .. })), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A shell that counts to a number: the same work for each operation.
fn counting(to: u64) -> Vec<OsString> {
    let script = "i=0; while [ $i -lt $0 ]; do i=$((i+1)); done";
    words(&["/bin/sh", "-c", script, &to.to_string()])
}

#[test]
fn start_up_cancels_out_of_the_figures_for_an_operation() {
    let Some(cachegrind) = found() else { return };
    let dir = tempfile::tempdir().unwrap();
    let measure = |few, many| {
        cachegrind.per_operation(counting, (few, many), dir.path(), LIMIT, &going()).unwrap()
    };
    let short = measure(1000, 2000);
    let long = measure(1000, 6000);
    assert!(short.instructions_per_op > 50.0, "{short:?}");
    assert!(short.unsteadiness <= host::cachegrind::MAX_UNSTEADINESS, "{short:?}");
    assert!(short.branches_per_op > 1.0 && short.branches_per_op < short.instructions_per_op);
    assert!(short.mispredicts_per_op.clone().unwrap_or(0.0) < short.branches_per_op);
    // Numbers of four digits everywhere: an operation costs the same.
    let off = long.instructions_per_op / short.instructions_per_op;
    assert!((0.95..1.05).contains(&off), "{short:?} {long:?}");
    let whole = cachegrind.run(&counting(1000), dir.path(), LIMIT, &going()).unwrap();
    assert!(whole.instructions as f64 > 1000.0 * short.instructions_per_op);
    for reading in short.readings(Scope::Process) {
        assert_eq!(reading.origin, Origin::Simulated);
        assert!(reading.signal.starts_with("simulated."));
        assert!(reading.source.contains("LL 1 MiB, 16 ways, 64 B lines"), "{reading:?}");
    }
}

/// Data that fits the simulated cache misses it in start-up alone, one time more, one time less.
#[test]
fn misses_that_start_up_hides_leave_the_other_figures() {
    let totals = |instructions, ll_misses| EventTotals {
        instructions,
        branches: instructions / 8,
        mispredicts: instructions / 100,
        i1_misses: 0,
        d1_misses: instructions / 50,
        ll_misses,
    };
    let cache = |bytes| SimulatedCache { bytes, ways: 16, line: 64 };
    let geometry = CacheGeometry { i1: cache(32 << 10), d1: cache(32 << 10), ll: cache(1 << 20) };
    let (few, many) = (totals(1_000_000, 500), totals(3_000_000, 490));
    let made = SimulatedEvents::between((&few, 100), (&many, 1100), geometry).unwrap();
    assert_eq!((made.instructions_per_op, made.d1_misses_per_op.clone()), (2000.0, Ok(40.0)));
    let readings = made.readings(Scope::Process);
    let hidden = readings.iter().filter(|reading| reading.value().is_none());
    let hidden: Vec<_> = hidden.map(|reading| reading.signal.as_str()).collect();
    assert_eq!(hidden, ["simulated.ll_misses_per_mop"]);
}

/// The command is called for each run: this one is another each time.
#[test]
fn varying_start_up_gives_no_figures() {
    let Some(cachegrind) = found() else { return };
    let dir = tempfile::tempdir().unwrap();
    let calls = std::cell::Cell::new(0);
    let unsteady = |operations: u64| {
        calls.set(calls.get() + 1);
        counting(operations + 500 * (calls.get() % 2))
    };
    let no =
        cachegrind.per_operation(unsteady, (1000, 2000), dir.path(), LIMIT, &going()).unwrap_err();
    assert!(matches!(no, CachegrindError::Unsteady { .. }), "{no}");
    assert!(no.to_string().contains("more operations"), "{no}");
    let idle = |_| counting(1000);
    let no = cachegrind.per_operation(idle, (1000, 2000), dir.path(), LIMIT, &going()).unwrap_err();
    let why = no.to_string();
    assert!(why.contains("more operations"), "{why}");
}

#[test]
fn a_server_runs_behind_the_prefix_and_ends_by_sigterm() {
    let Some(cachegrind) = found() else { return };
    let dir = tempfile::tempdir().unwrap();
    let prefix = cachegrind.prefix(dir.path());
    let mut server = Command::new(&prefix[0])
        .args(&prefix[1..])
        .args(["/bin/sh", "-c", "echo ready; while :; do :; done"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut out = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let pid = nix::unistd::Pid::from_raw(server.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    server.wait().unwrap();
    let totals = Cachegrind::totals(dir.path(), server.id()).unwrap();
    assert!(totals.instructions > 10_000 && totals.branches > 1000, "{totals:?}");
}

#[test]
fn every_run_has_a_limit_and_every_failure_a_reason() {
    let Some(cachegrind) = found() else { return };
    let dir = tempfile::tempdir().unwrap();
    let run =
        |command: &[&str], limit| cachegrind.run(&words(command), dir.path(), limit, &going());
    let endless = run(&["/bin/sh", "-c", "while :; do :; done"], Duration::from_millis(300));
    assert!(matches!(endless, Err(CachegrindError::TooLong { .. })), "{endless:?}");
    let failed = run(&["/bin/sh", "-c", "echo a bad key >&2; exit 3"], LIMIT).unwrap_err();
    assert!(failed.to_string().contains("a bad key"), "{failed}");
    let missing = run(&["/no/such/program"], LIMIT).unwrap_err();
    assert!(matches!(missing, CachegrindError::Failed { .. }), "{missing}");
    let unwritten = Cachegrind::totals(dir.path(), 1).unwrap_err();
    assert!(unwritten.to_string().contains("cachegrind.1"), "{unwritten}");
}

#[test]
fn runs_that_do_not_differ_give_no_figures() {
    let totals = |instructions| EventTotals { instructions, branches: 5, ..EventTotals::default() };
    let (less, more) = (totals(100), totals(1100));
    let made = SimulatedEvents::between((&less, 10), (&more, 110), geometry()).unwrap();
    assert_eq!((made.instructions_per_op, made.branches_per_op), (10.0, 0.0));
    for (few, many) in
        [((&more, 10), (&less, 110)), ((&less, 10), (&more, 10)), ((&less, 20), (&more, 10))]
    {
        let no = SimulatedEvents::between(few, many, geometry()).unwrap_err();
        assert!(matches!(no, CachegrindError::NotMore { what: "instructions", .. }), "{no}");
    }
}

#[test]
fn reads_the_machine_s_caches_or_names_what_is_missing() {
    let xeon = Recorded::named("xeon-4114");
    let made = CacheGeometry::of(&xeon.root).unwrap();
    assert_eq!((made.i1.bytes, made.d1.ways), (32 << 10, 8));
    // 13.75 MiB of eleven ways: simulated at the same size with more ways.
    assert_eq!((made.ll.bytes, made.ll.ways), (14_080 << 10, 55));
    let no = CacheGeometry::of(&Recorded::named("vm").root).unwrap_err();
    assert!(no.reason.contains("no first-level instruction cache"), "{no}");
    assert!(no.remedy.contains("yourself"));
    xeon.write("/sys/devices/system/cpu/cpu0/cache/index3/ways_of_associativity", "0\n");
    assert!(CacheGeometry::of(&xeon.root).unwrap_err().reason.contains("LL"));
    let no = Cachegrind::find(&xeon.root, geometry()).unwrap_err();
    assert!(no.reason.contains("valgrind"), "{no}");
}
