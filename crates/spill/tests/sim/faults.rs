//! Each file system call fails once. The operation returns an error without effect, or succeeds;
//! acknowledged writes exist, now and after reopening.

use spill::{Durability, Error, Options};

use crate::disk::{Call, Fault, Kind, Sim};
use crate::history::{TABLES, Traffic, Write};
use crate::random::Random;
use crate::session::Session;
use crate::settings;
use crate::target::Target;

const KEYS: usize = 60;

fn traffic(seed: u64) -> Traffic {
    Traffic { seed, keys: KEYS, max_value_len: 9000 }
}

/// Fills, compacts, collects, closes and opens; continues after each error.
fn run_workload(session: &mut Session, seed: u64, writes: usize) {
    let mut random = Random::of(seed, u64::MAX - 1);
    let traffic = traffic(seed);
    for number in 0..writes {
        if let Err(error) = session.write(&traffic.write(number)) {
            continue_after(session, &error);
        }
        match random.below(100) {
            0..2 => {
                if let Err(error) = session.sync() {
                    continue_after(session, &error);
                }
            }
            2 => {
                if let Err(error) = session.flush() {
                    continue_after(session, &error);
                }
            }
            3 => session.reopen(),
            4..8 => session.check_some(traffic, &mut random),
            8 => session.check(),
            9 => {
                if let Err(error) = session.settle() {
                    continue_after(session, &error);
                }
            }
            10 => {
                let dropped = Write::DropTable(random.below(TABLES.len()));
                if let Err(error) = session.write(&dropped) {
                    continue_after(session, &error);
                }
            }
            _ => {}
        }
    }
}

/// Reads work; a halted store stays so until it is reopened.
fn continue_after(session: &mut Session, error: &Error) {
    session.check();
    session.check_each_end();
    if matches!(error, Error::Halted { .. }) {
        let again = session.write(&Write::One(traffic(0).write(0).changes()[0].clone()));
        assert!(
            matches!(again, Err(Error::Halted { .. })),
            "a halted store accepts writes: {again:?}"
        );
        session.reopen();
    }
}

fn clean_run(seed: u64, options: &Options, writes: usize) -> Vec<Call> {
    let sim = Sim::new(seed);
    sim.start_trace();
    let mut session = Session::new(sim.clone(), options.clone(), "no fault".to_owned());
    run_workload(&mut session, seed, writes);
    let trace = sim.take_trace();
    assert_eq!(session.check_ends(), 0, "errors without a fault");
    trace
}

fn fail_each_call(options: &Options, faults: &[Fault], cases: usize) {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let (writes, durability) = (350, options.durability);
    let trace = clean_run(seed, options, writes);
    for kind in [Kind::Write, Kind::Sync, Kind::Remove, Kind::OpenNew, Kind::Read, Kind::Rename] {
        println!("{kind:?}: {}", trace.iter().filter(|call| call.kind == kind).count());
    }
    let all: Vec<(u64, Fault)> = trace
        .iter()
        .flat_map(|call| faults.iter().map(move |fault| (call, *fault)))
        .filter(|(call, fault)| fault.can_hit(call.kind))
        .map(|(call, fault)| (call.number, fault))
        .collect();
    let stride = if settings::every() { 1 } else { (all.len() / cases).max(1) };
    let (mut fired, mut errors) = (0, 0);
    for (number, fault) in all.into_iter().skip(seed as usize % stride).step_by(stride) {
        let sim = Sim::new(seed);
        sim.fail(number, fault);
        let story = format!("SPILL_TEST_SEED={seed}, {durability:?}, {fault:?} at call {number}");
        let mut session = Session::new(sim.clone(), options.clone(), story.clone());
        session.expect_dropped_data(fault);
        run_workload(&mut session, seed, writes);
        fired += usize::from(sim.fired().is_some());
        let seen = session.check_ends();
        assert!(seen == 0 || !fault.is_invisible(), "{story}: an error was returned");
        errors += seen;
    }
    println!("{fired} calls failed, {errors} errors were returned");
    assert!(fired >= cases.min(20), "only {fired} calls failed");
    assert!(errors > 0 || faults.iter().all(|fault| fault.is_invisible()));
}

#[test]
fn short_and_interrupted_calls_are_retried() {
    fail_each_call(&settings::tiny(Durability::None), &[Fault::Short, Fault::Interrupted], 120);
}

#[test]
fn failed_call_loses_no_acknowledged_write() {
    fail_each_call(&settings::tiny(Durability::None), &[Fault::Broken], 150);
}

#[test]
fn failed_call_between_syncs_loses_nothing() {
    fail_each_call(&settings::tiny(Durability::Sync), &[Fault::Broken], 120);
}

#[test]
fn failed_call_without_space_loses_nothing() {
    fail_each_call(&settings::tiny(Durability::None), &[Fault::Full], 120);
    fail_each_call(&settings::tiny(Durability::Sync), &[Fault::Full], 60);
}

#[test]
fn failed_sync_does_not_count_as_synced() {
    let faults = [Fault::LostSync { forget: false }, Fault::LostSync { forget: true }];
    fail_each_call(&settings::tiny(Durability::None), &faults, 120);
    fail_each_call(&settings::tiny(Durability::Sync), &faults, 120);
}

/// The same with background threads: the failing call differs from run to run, the required content
/// does not.
#[test]
fn failed_background_call_loses_nothing() {
    let faults = [Fault::Broken, Fault::Full, Fault::LostSync { forget: false }];
    for durability in [Durability::None, Durability::Sync] {
        let options = Options { background: true, ..settings::tiny(durability) };
        fail_each_call(&options, &faults, 60);
    }
}

/// As documented: the write whose sync fails returns an error, later ones are refused, reads work,
/// and reopening recovers.
#[test]
fn failed_sync_halts_writes_until_reopened() {
    for forget in [false, true] {
        let sim = Sim::new(1);
        let options = settings::tiny(Durability::Sync);
        let mut target = Target::open(&sim, &options).unwrap();
        let table = target.table(0).unwrap().clone();
        table.put(b"before", b"1").unwrap();
        sim.start_trace();
        table.put(b"before", b"2").unwrap();
        let calls = sim.take_trace();
        let sync = calls.iter().find(|call| call.kind == Kind::Sync).expect("a put syncs");
        let first = calls[0].number;
        sim.fail(sim.calls() + sync.number - first, Fault::LostSync { forget });
        let failed = table.put(b"unknown", b"3").unwrap_err();
        assert!(matches!(failed, Error::Io { .. } | Error::Halted { .. }), "{failed}");
        assert!(sim.fired().is_some());
        for _ in 0..2 {
            let refused = table.put(b"later", b"4").unwrap_err();
            assert!(matches!(refused, Error::Halted { .. }), "{refused}");
        }
        assert!(matches!(target.store.sync(), Err(Error::Halted { .. })));
        assert!(matches!(target.store.flush(), Err(Error::Halted { .. })));
        assert_eq!(table.get(b"before").unwrap().as_deref(), Some(&b"2"[..]));
        drop((table, target));
        let mut target = Target::open(&sim, &options).unwrap();
        assert_eq!(target.get(0, b"before").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(target.get(0, b"later").unwrap(), None);
        target.table(0).unwrap().put(b"later", b"5").unwrap();
        assert_eq!(target.get(0, b"later").unwrap().as_deref(), Some(&b"5"[..]));
    }
}
