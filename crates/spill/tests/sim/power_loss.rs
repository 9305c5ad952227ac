//! A machine that loses its power, on a real kernel and file system. The laboratory of virtual
//! machines (`make test-lab CASE=power`) starts this in a guest, and ends the guest.
//!
//! Every write is reported to a ledger outside of the machine once it is acknowledged. After the
//! next boot the content equals some prefix of the writes, which holds at least what the ledger says.

use std::fs::File;
use std::io::Write as _;

use spill::Store;

use crate::history::{History, Model};
use crate::process_kill::{options, tables, traffic, write};
use crate::random::Random;
use crate::target::Target;

/// A number of the environment.
fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

/// The content of a store after each of the first writes.
fn history(mode: usize, count: usize) -> History {
    let mut model = Model::default();
    let mut history = History::from(&model);
    for number in 0..count {
        model.apply(&write(tables(1)[0], mode, number));
        history.push(&model);
    }
    history
}

/// Checks what is there, then writes until the machine ends or `SPILL_POWER_WRITES` are done. An
/// error of the store ends it with `error: ...` in the ledger: a machine whose disk fails gives one.
///
/// - `SPILL_POWER_STORE`: the store's folder. `SPILL_POWER_LEDGER`: a file, often a line to the host.
/// - `SPILL_POWER_MODE`: how durable writes are, by the index of `settings::MODES`.
/// - `SPILL_POWER_FLOOR`, `SPILL_POWER_STARTED`: how many writes must and may be there.
#[test]
#[ignore = "started by the laboratory's guests"]
fn round() {
    let folder = std::env::var_os("SPILL_POWER_STORE").expect("SPILL_POWER_STORE names a folder");
    let ledger = std::env::var_os("SPILL_POWER_LEDGER").expect("SPILL_POWER_LEDGER names a file");
    let mode = number("SPILL_POWER_MODE").expect("SPILL_POWER_MODE is given");
    let mut ledger = File::options().append(true).create(true).open(ledger).unwrap();
    if let Err(error) = check_and_write(std::path::Path::new(&folder), mode, &mut ledger) {
        writeln!(ledger, "error: {error}").unwrap();
    }
}

fn check_and_write(folder: &std::path::Path, mode: usize, ledger: &mut File) -> spill::Result<()> {
    let (floor, started) =
        (number("SPILL_POWER_FLOOR").unwrap_or(0), number("SPILL_POWER_STARTED").unwrap_or(0));
    let mut target = Target::of(Store::open(folder, options(mode))?);
    let found = Model::read(&target.store, floor % 2 == 0)?;
    let all = history(mode, started);
    let count = all.find(&found, floor..=started);
    let Some(count) = count else {
        let near = all.find(&found, 0..=started);
        writeln!(ledger, "lost: not of {floor}..={started} writes, but of {near:?}").unwrap();
        panic!("the content is not of {floor}..={started} writes, but of {near:?}");
    };
    target.check_some(&found, traffic(), &mut Random::new(count as u64))?;
    target.store.scrub()?;
    writeln!(ledger, "found {count}").unwrap();
    // From here on it may be built upon, so it must stay.
    target.store.sync()?;
    writeln!(ledger, "synced {count}").unwrap();
    let end = number("SPILL_POWER_WRITES").map_or(usize::MAX, |writes| count + writes);
    for number in count..end {
        target.write(&write(tables(1)[0], mode, number))?;
        writeln!(ledger, "acknowledged {}", number + 1).unwrap();
        if number % 200 == 199 {
            target.store.sync()?;
            writeln!(ledger, "synced {}", number + 1).unwrap();
        }
    }
    target.store.sync()?;
    writeln!(ledger, "synced {end}").unwrap();
    Ok(())
}
