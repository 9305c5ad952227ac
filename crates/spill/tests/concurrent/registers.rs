//! Each key is a register; its operations must be linearizable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use spill::{Batch, Options, Store, Table};

use super::checker::{Action, Event, RegisterValue, contradiction};
use super::load::{Random, background_load, home, number, option_sets, value};
use super::watchdog::{Operations, Watchdog};

const THREADS: u64 = 4;
const KEYS: usize = 500;
/// Half of the operations go to this many registers. The others live long enough to be collected
/// while they are written.
const HOT: usize = 10;
const STEPS: u64 = 6000;

/// The key of a register, and its table.
fn key(register: usize) -> Vec<u8> {
    // Some keys differ only behind zeros, or behind what an index page knows.
    match register / 2 % 3 {
        0 => [&b"k"[..], &vec![0; register]].concat(),
        1 => [&[b'x'; 200][..], &(register as u16).to_be_bytes()].concat(),
        _ => (register as u16).to_be_bytes().to_vec(),
    }
}

struct Registers {
    tables: [Table; 2],
    keys: Vec<Vec<u8>>,
}

impl Registers {
    fn of(store: &Store) -> Registers {
        let tables = ["one", "two"].map(|name| store.table(name).unwrap());
        Registers { tables, keys: (0..KEYS).map(key).collect() }
    }

    fn at(&self, register: usize) -> (&Table, &[u8]) {
        (&self.tables[register % 2], &self.keys[register])
    }
}

type Histories = Vec<Vec<Event>>;

/// One thread's operations, by register.
fn run_thread(store: &Store, operations: &Operations, thread: u64) -> Histories {
    let registers = Registers::of(store);
    let mut all: Histories = vec![Vec::new(); KEYS];
    let mut random = Random(thread);
    for step in 0..STEPS {
        let register = random.below(if step % 2 == 0 { HOT } else { KEYS });
        let (table, key) = registers.at(register);
        let (new, random_step) = (thread << 32 | step, random.below(5));
        let mut note = |register: usize, did: Action, begin: u64, end: u64| {
            all[register].push(Event { begin, end, did });
        };
        match random.below(60) {
            0..21 => {
                let value = value(new);
                let (done, begin, end) = operations.time("put", || table.put(key, &value));
                done.unwrap();
                note(register, Action::Wrote(Some(new)), begin, end);
            }
            21..27 => {
                let (done, begin, end) = operations.time("delete", || table.delete(key));
                done.unwrap();
                note(register, Action::Wrote(None), begin, end);
            }
            27..33 => {
                let other = (register + 1 + random.below(KEYS - 1)) % KEYS;
                let mut batch = Batch::new();
                batch.put(table, key, b"not the last");
                batch.put(registers.at(other).0, registers.at(other).1, &value(new));
                batch.put(table, key, &value(new));
                let (done, begin, end) = operations.time("write", || store.write(&batch));
                done.unwrap();
                note(register, Action::Wrote(Some(new)), begin, end);
                note(other, Action::Wrote(Some(new)), begin, end);
            }
            33..53 => {
                let (found, begin, end) = operations.time("read", || table.read(key, number));
                note(register, Action::Saw(found.unwrap()), begin, end);
            }
            53..56 => {
                let of_table = || (register % 2..KEYS).step_by(2 + 6 * random_step);
                let keys: Vec<&[u8]> =
                    of_table().map(|register| registers.keys[register].as_slice()).collect();
                let (found, begin, end) = operations.time("multi_get", || table.multi_get(&keys));
                for (register, found) in of_table().zip(found.unwrap()) {
                    note(register, Action::Saw(found.as_deref().map(number)), begin, end);
                }
            }
            56..58 => {
                // A snapshot is valid as of its creation, whenever it is read.
                let (snapshot, begin, end) = operations.time("snapshot", || store.snapshot());
                for register in (register % 7..KEYS).step_by(7) {
                    let (table, key) = registers.at(register);
                    let found = operations.run("get of a snapshot", || snapshot.get(table, key));
                    note(register, Action::Saw(found.unwrap().as_deref().map(number)), begin, end);
                }
            }
            _ => {
                let (range, begin, end) = operations.time("range", || table.range(..));
                let mut seen: Vec<RegisterValue> = vec![None; KEYS];
                let pairs = range.pairs().map(Result::unwrap);
                let pairs: Vec<_> = operations.run("scan of a range", || match step % 2 {
                    0 => pairs.collect(),
                    _ => pairs.rev().collect(),
                });
                for (key, value) in pairs {
                    let of = registers.keys.iter().position(|known| *known == key).unwrap();
                    assert_eq!(seen[of], None, "a key twice");
                    seen[of] = Some(number(&value));
                }
                for of in (register % 2..KEYS).step_by(2) {
                    note(of, Action::Saw(seen[of]), begin, end);
                }
            }
        }
    }
    all
}

fn check_registers(options: &Options) {
    let home = home(options);
    let store = Store::open(home.path(), options.clone()).unwrap();
    let watchdog = Watchdog::new();
    let is_over = AtomicBool::new(false);
    let mut all: Histories = vec![Vec::new(); KEYS];
    thread::scope(|scope| {
        let operations = watchdog.register();
        scope.spawn(|| {
            let operations = operations;
            background_load(&store, &operations, &is_over);
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (store, operations) = (&store, watchdog.register());
                scope.spawn(move || run_thread(store, &operations, thread))
            })
            .collect();
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                Ok(of_thread) => {
                    for (all, of_thread) in all.iter_mut().zip(of_thread) {
                        all.extend(of_thread);
                    }
                }
                Err(panic) => failed = Some(panic),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        if let Some(panic) = failed {
            std::panic::resume_unwind(panic);
        }
    });
    drop(store);
    // Reads after reopening come last.
    let store = Store::open(home.path(), options.clone()).unwrap();
    let registers = Registers::of(&store);
    for (register, all) in all.iter_mut().enumerate() {
        let (table, key) = registers.at(register);
        let held = table.read(key, number).unwrap();
        let end = all.iter().map(|event| event.end).max().unwrap() + 1;
        all.push(Event { begin: end, end, did: Action::Saw(held) });
        if let Some((place, event)) = contradiction(all) {
            let mut near: Vec<_> = all
                .iter()
                .filter(|other| other.end + 200_000 > event.begin && other.begin < event.end)
                .collect();
            near.sort_by_key(|event| event.begin);
            panic!(
                "register {register}, event {place}: {event:?} is not linearizable after {near:#?}"
            );
        }
    }
}

#[test]
fn single_key_operations_are_linearizable() {
    for options in option_sets() {
        check_registers(&options);
    }
}
