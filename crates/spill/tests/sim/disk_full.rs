//! A disk that fills up and gets space again.

use spill::{Durability, Error};

use crate::disk::{End, Loss, Sim};
use crate::history::{Model, Traffic};
use crate::random::Random;
use crate::session::Session;
use crate::settings;
use crate::target::Target;

const KEYS: usize = 100;
const WRITES: usize = 700;

fn session(sim: &Sim, durability: Durability, story: &str) -> Session {
    Session::new(sim.clone(), settings::tiny(durability), story.to_owned())
}

fn traffic(seed: u64) -> Traffic {
    Traffic { seed, keys: KEYS, max_value_len: 6000 }
}

/// Fills the disk at many points of a run. Each write without space returns an error and has no
/// effect, reads work, and once there is space writes work without reopening.
#[test]
fn full_disk_refuses_writes_until_space_is_freed() {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    for durability in [Durability::None, Durability::Sync] {
        let sim = Sim::new(seed);
        let mut clean = session(&sim, durability, "the disk never filled");
        clean.try_to_open().unwrap();
        let least = sim.used();
        for number in 0..WRITES {
            clean.write(&traffic(seed).write(number)).unwrap();
        }
        let most = sim.used();
        clean.check_ends();

        let points = if settings::every() { 400 } else { 24 };
        let mut filled = 0;
        for point in 1..=points {
            let capacity = least + (most - least) * point / points;
            let story = format!("SPILL_TEST_SEED={seed}, {durability:?}, {capacity} bytes");
            filled += usize::from(fill(seed, durability, capacity, story));
        }
        println!("{filled} of {points} disks were full, from {least} to {most} bytes");
        assert!(filled * 2 > points, "{filled} of {points} disks were full");
    }
}

fn fill(seed: u64, durability: Durability, capacity: usize, story: String) -> bool {
    let mut random = Random::of(seed, capacity as u64);
    let sim = Sim::new(seed);
    sim.set_capacity(Some(capacity));
    let mut session = session(&sim, durability, &story);
    match session.try_to_open() {
        Ok(()) => {}
        // Too small for an empty store: it can be opened once there is space.
        Err(Error::Full { .. }) => sim.set_capacity(None),
        Err(error) => panic!("{story}: {error}"),
    }
    let (mut refused, mut full) = (0, false);
    for number in 0..WRITES {
        match session.write(&traffic(seed).write(number)) {
            Ok(()) => {}
            Err(Error::Full { .. }) => {
                full = true;
                refused += 1;
                if refused % 8 == 1 {
                    session.check_each_end();
                    session.check_some(traffic(seed), &mut random);
                }
                if refused == 20 {
                    session.check();
                    check_content(&session, &story);
                    sim.set_capacity(None);
                    if random.chance(1, 2) {
                        session.sync().unwrap_or_else(|error| panic!("{story}: {error}"));
                    }
                    let next = session.write(&traffic(seed).write(number));
                    next.unwrap_or_else(|error| panic!("{story}: after space was freed: {error}"));
                }
            }
            Err(error) => panic!("{story}: {error}"),
        }
    }
    sim.set_capacity(None);
    session.check_ends();
    full
}

/// Opening on a full disk gets the content or an error that says it is full; a read-only opening
/// has space enough.
fn check_content(session: &Session, story: &str) {
    let options = settings::tiny(Durability::None);
    for end in [End::Kill, End::PowerCut(Loss::Some(4))] {
        let sim = session.sim.image(end, 3);
        let is_right = |found: &Model, how: &str| {
            let difference = found.difference(&session.model);
            let is_same = found.digest() == session.model.digest();
            assert!(is_same || end != End::Kill, "{story}, {how}: {difference}");
        };
        let alone =
            Session::new(sim.clone(), options.clone(), story.to_owned()).read_in_read_only_mode();
        is_right(&alone, "read-only");
        let opened = match Target::open(&sim, &options) {
            Err(Error::Full { .. }) => {
                sim.set_capacity(None);
                Target::open(&sim, &options)
            }
            opened => opened,
        };
        let found = opened.and_then(|target| Model::read(&target.store, false));
        is_right(&found.unwrap_or_else(|error| panic!("{story}: {end:?}: {error}")), "opened");
    }
}
