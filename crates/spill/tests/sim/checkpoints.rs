//! Checkpoints: their content, whatever happens to either side afterwards.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spill::{Durability, Error, Options};

use crate::disk::{End, Fault, Loss, Sim};
use crate::history::{History, Model, Traffic, Write};
use crate::random::Random;
use crate::settings;
use crate::target::Target;

fn path(number: usize) -> PathBuf {
    PathBuf::from(format!("/disk/copy-{number}"))
}

/// A disk as the next process finds it.
struct DiskImage {
    sim: Sim,
    /// Number of finished checkpoints, and of started ones.
    done: usize,
    begun: usize,
    story: String,
}

/// Checkpoints at some numbers of writes; power is cut at each call. Finished checkpoints hold just
/// those writes; others are rejected or hold them too.
#[test]
fn checkpoint_is_complete_or_absent_after_a_crash() {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let traffic = Traffic { seed, keys: 60, max_value_len: 6000 };
    let writes: Vec<Write> = (0..420).map(|number| traffic.write(number)).collect();
    let history = History::of(&writes);
    let options = settings::tiny(Durability::None);
    let points = [100, 180, 260, 340];

    let sim = Sim::new(seed);
    let done = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    let remains: Arc<Mutex<Vec<DiskImage>>> = Arc::default();
    let stride = if settings::every() { 1 } else { 9 };
    let ends = [End::Kill, End::PowerCut(Loss::Everything), End::PowerCut(Loss::Some(4))];
    let watched = (Arc::clone(&done), Arc::clone(&begun), Arc::clone(&remains));
    sim.watch(move |call, state| {
        let (done, begun) = (watched.0.load(Ordering::SeqCst), watched.1.load(Ordering::SeqCst));
        let is_amid = begun > done;
        if (call.number + seed % stride).is_multiple_of(if is_amid {
            stride / 3 + 1
        } else {
            stride * 5
        }) {
            let end = ends[(call.number / stride) as usize % ends.len()];
            let story = format!("SPILL_TEST_SEED={seed}, {end:?} at {call}");
            let sim = state.image(end, seed);
            watched.2.lock().unwrap().push(DiskImage { sim, done, begun, story });
        }
    });
    let mut target = Target::open(&sim, &options).unwrap();
    for (number, write) in writes.iter().enumerate() {
        if points.contains(&number) {
            begun.fetch_add(1, Ordering::SeqCst);
            target.store.checkpoint(path(number)).unwrap();
            done.fetch_add(1, Ordering::SeqCst);
        }
        sim.pause();
        target.write(write).unwrap();
    }
    sim.unwatch();
    let (mut whole, mut none) = (0, 0);
    let remains = std::mem::take(&mut *remains.lock().unwrap());
    assert!(remains.len() > 20, "{}", remains.len());
    for DiskImage { sim, done, begun, story } in remains {
        for (index, point) in points.iter().enumerate().take(begun) {
            let options = spill::Options { create: false, ..options.clone() };
            match Target::open_at(&sim, &path(*point), &options) {
                Ok(target) => {
                    whole += 1;
                    let found = Model::read(&target.store, false).unwrap();
                    let of = history.find(&found, 0..=history.len());
                    assert_eq!(
                        history.find(&found, *point..=*point),
                        Some(*point),
                        "{story}: the checkpoint of {point} writes holds {of:?}"
                    );
                    target.store.scrub().unwrap();
                }
                Err(error) => {
                    none += 1;
                    assert!(index >= done, "{story}: checkpoint of {point}: {error}");
                }
            }
        }
        let target =
            Target::open(&sim, &options).unwrap_or_else(|error| panic!("{story}: {error}"));
        let found = Model::read(&target.store, false).unwrap();
        assert!(history.find(&found, 0..=history.len()).is_some(), "{story}: the store itself");
    }
    println!("{whole} whole, {none} none");
    assert!(whole > 20);
}

/// Both sides share files, and neither sees the other's changes.
#[test]
fn checkpoint_and_its_origin_are_independent() {
    for durability in settings::MODES {
        let sim = Sim::new(5);
        let options = settings::tiny(durability);
        let ways: Vec<Traffic> =
            (0..3).map(|seed| Traffic { seed, keys: 60, max_value_len: 6000 }).collect();
        let mut origin = Target::open(&sim, &options).unwrap();
        let mut model = Model::default();
        for number in 0..300 {
            let write = ways[0].write(number);
            origin.write(&write).unwrap();
            model.apply(&write);
        }
        origin.store.checkpoint(path(0)).unwrap();
        let again = origin.store.checkpoint(path(0));
        assert!(again.is_err(), "a checkpoint does not replace another");
        let mut copy = Target::open_at(&sim, &path(0), &options).unwrap();
        let mut models = [model.clone(), model.clone()];
        let mut random = Random::new(1);
        for number in 0..600 {
            for (side, target) in [&mut origin, &mut copy].into_iter().enumerate() {
                let write = ways[1 + side].write(number);
                target.write(&write).unwrap();
                models[side].apply(&write);
                if random.chance(1, 100) {
                    target.store.flush().unwrap();
                }
                if random.chance(1, 100) {
                    target.check_some(&models[side], ways[0], &mut random).unwrap();
                }
            }
        }
        drop((origin, copy));
        let places = [PathBuf::from(crate::target::STORE_DIR), path(0)];
        for (path, model) in places.iter().zip(&models) {
            let target = Target::open_at(&sim, path, &options).unwrap();
            let found = Model::read(&target.store, false).unwrap();
            assert_eq!(found.digest(), model.digest(), "{path:?}: {}", found.difference(model));
            target.store.scrub().unwrap();
        }
    }
}

/// One call of a checkpoint fails: the store goes on, or halts and is reopened, and the checkpoint
/// is complete or absent.
#[test]
fn failed_checkpoint_leaves_the_store_intact() {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let faults = [Fault::Broken, Fault::Full, Fault::LostSync { forget: false }];
    // No call depends on the clock, so runs are repeatable.
    let hour = Durability::Interval(Duration::from_secs(3600));
    for durability in [Durability::None, hour, Durability::Sync] {
        let options = settings::tiny(durability);
        let calls = run_with_fault(seed, &options, None);
        let cases = calls.flat_map(|call| faults.map(|fault| (call, fault)));
        let stride = if settings::every() { 1 } else { 5 };
        for case in cases.skip(seed as usize % stride).step_by(stride) {
            run_with_fault(seed, &options, Some(case));
        }
    }
}

/// A checkpoint amid writes, and another after them; returns the calls of the first.
fn run_with_fault(seed: u64, options: &Options, fault: Option<(u64, Fault)>) -> Range<u64> {
    let traffic = Traffic { seed, keys: 60, max_value_len: 6000 };
    let (sim, mut model) = (Sim::new(seed), Model::default());
    let mut target = Target::open(&sim, options).unwrap();
    for number in 0..150 {
        let write = traffic.write(number);
        target.write(&write).unwrap();
        model.apply(&write);
    }
    let begin = sim.calls();
    if let Some((number, fault)) = fault {
        sim.fail(number, fault);
    }
    let first = target.store.checkpoint(path(1));
    let calls = begin..sim.calls();
    // A fault that did not hit by then is cancelled.
    if let Some((_, fault)) = fault {
        sim.fail(0, fault);
    }
    let in_first = model.digest();
    let story = format!("SPILL_TEST_SEED={seed}, {:?}, {fault:?}: {first:?}", options.durability);
    assert!(first.is_ok() || fault.is_some(), "{story}");
    let mut is_halted = false;
    for number in 150..200 {
        let write = traffic.write(number);
        match target.write(&write) {
            Ok(()) => model.apply(&write),
            Err(Error::Halted { .. }) => is_halted = true,
            Err(error) => panic!("{story}: {error}"),
        }
    }
    let check = |target: &Target, digest: u64, what: &str| {
        let found = Model::read(&target.store, false).unwrap();
        assert_eq!(found.digest(), digest, "{story}: {what}");
        target.store.scrub().unwrap_or_else(|error| panic!("{story}: {what}: {error}"));
    };
    if !is_halted {
        check(&target, model.digest(), "the store");
        target.store.checkpoint(path(2)).unwrap_or_else(|error| panic!("{story}: again: {error}"));
    }
    for end in [End::Kill, End::PowerCut(Loss::Everything), End::PowerCut(Loss::Some(4))] {
        let left = sim.image(end, seed);
        let there = Options { create: false, ..options.clone() };
        match Target::open_at(&left, &path(1), &there) {
            Ok(copy) => check(&copy, in_first, "the first"),
            Err(error) => assert!(first.is_err(), "{story}: {end:?}, the first: {error}"),
        }
        if !is_halted {
            let copy = Target::open_at(&left, &path(2), &there).unwrap();
            check(&copy, model.digest(), "the second");
        }
        let again = Target::open(&left, options).unwrap_or_else(|error| panic!("{story}: {error}"));
        if end == End::Kill {
            check(&again, model.digest(), "after a kill");
        }
        again.store.scrub().unwrap_or_else(|error| panic!("{story}, {end:?}: {error}"));
    }
    calls
}
