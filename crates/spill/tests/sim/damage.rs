//! Files changed externally: reads are right, or an error says where the damage is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use spill::{Durability, Error, Result};

use crate::disk::{End, Sim};
use crate::history::{History, Model, Traffic, Write, key};
use crate::random::Random;
use crate::settings;
use crate::target::{STORE_DIR, Target};

const KEYS: usize = 80;

fn traffic() -> Traffic {
    Traffic { seed: 77, keys: KEYS, max_value_len: 9000 }
}

/// A store as its process left it.
struct StoreImage {
    sim: Sim,
    history: History,
    /// Number of writes covered by a sync; later ones may be cut.
    synced: usize,
    writes: Vec<Write>,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// Compacted, synced and closed.
    Flushed,
    /// Synced and closed, partly only in the log.
    Synced,
    /// Closed, which syncs.
    Closed,
    /// Killed with unsynced writes.
    Killed,
}

fn make_image(leaving: Ending) -> StoreImage {
    let sim = Sim::new(4);
    let options = settings::tiny(Durability::None);
    let mut target = Target::open(&sim, &options).unwrap();
    let writes: Vec<Write> = (0..700).map(|number| traffic().write(number)).collect();
    for (number, write) in writes.iter().enumerate() {
        if number == 500 {
            target.store.flush().unwrap();
        }
        if number == 660 && matches!(leaving, Ending::Killed) {
            target.store.sync().unwrap();
        }
        target.write(write).unwrap();
    }
    let synced = match leaving {
        Ending::Flushed => {
            target.store.flush().unwrap();
            writes.len()
        }
        Ending::Synced => {
            target.store.sync().unwrap();
            writes.len()
        }
        Ending::Closed => writes.len(),
        Ending::Killed => 660,
    };
    let sim = match leaving {
        Ending::Killed => sim.image(End::Kill, 0),
        Ending::Flushed | Ending::Synced | Ending::Closed => {
            drop(target);
            sim
        }
    };
    StoreImage { sim, history: History::of(&writes), synced, writes }
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Bit(usize),
    /// A sector that reads as zeros.
    Zeros(usize),
    /// A sector with the content of another one.
    Moved(usize, usize),
    Cut(usize),
    Longer(usize),
    Gone,
}

fn damaged(mut content: Vec<u8>, damage: Damage, random: &mut Random) -> Option<Vec<u8>> {
    let sector = |at: usize, len: usize| at / 512 * 512..len.min(at / 512 * 512 + 512);
    let len = content.len();
    match damage {
        Damage::Bit(at) => content[at] ^= 1 << random.below(8),
        Damage::Zeros(at) => content[sector(at, len)].fill(0),
        Damage::Moved(from, to) => {
            let (from, to) = (sector(from, len), sector(to, len));
            let count = from.len().min(to.len());
            content.copy_within(from.start..from.start + count, to.start);
        }
        Damage::Cut(len) => content.truncate(len),
        Damage::Longer(more) => {
            let mut garbage = vec![0; more];
            random.fill(&mut garbage);
            content.extend(garbage);
        }
        Damage::Gone => return None,
    }
    Some(content)
}

/// Offsets where something begins or ends, and random ones.
fn positions(len: usize, count: usize, random: &mut Random) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..64).chain(len.saturating_sub(64)..len).collect();
    positions.retain(|at| *at < len && (settings::every() || random.chance(1, 4)));
    positions.extend((0..count).filter(|_| len > 0).map(|_| random.below(len)));
    positions
}

fn damages(len: usize, count: usize, random: &mut Random) -> Vec<Damage> {
    let mut damages = vec![Damage::Gone, Damage::Cut(0), Damage::Longer(1), Damage::Longer(5000)];
    for at in positions(len, count, random) {
        damages.push(Damage::Bit(at));
        match random.below(6) {
            0 => damages.push(Damage::Zeros(at)),
            1 => damages.push(Damage::Moved(random.below(len), at)),
            2 => damages.push(Damage::Cut(at)),
            _ => {}
        }
    }
    damages
}

/// Reads everything; returns the result of the ranges.
fn read_everything(sim: &Sim) -> Result<Model> {
    let mut target = Target::open(sim, &settings::tiny(Durability::None))?;
    let found = Model::read(&target.store, false)?;
    let backwards = Model::read(&target.store, true)?;
    assert_eq!(found.digest(), backwards.digest(), "backwards: {}", backwards.difference(&found));
    for table in 0..3 {
        for number in 0..traffic().keys_of(table) {
            let key = key(table, number);
            assert_eq!(target.get(table, &key)?.as_ref(), found.get(table, &key), "{key:?}");
        }
    }
    target.store.scrub()?;
    Ok(found)
}

/// The error must name the file and an offset in it.
fn check_error(
    error: &Error,
    sim: &Sim,
    file: &Path,
    original: usize,
) -> std::result::Result<(), String> {
    match error {
        Error::Damaged { path, offset, what } => {
            // A file may appear to be missing because another one is damaged.
            let len = sim.content(path).map_or(original, |content| content.len().max(original));
            if !path.starts_with(STORE_DIR) || *offset > len as u64 || what.is_empty() {
                return Err(format!("the offset is not in the file: {error}"));
            }
            Ok(())
        }
        Error::Format { path, .. } | Error::Foreign { path } if path.starts_with(STORE_DIR) => {
            Ok(())
        }
        Error::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            if path == file {
                Ok(())
            } else {
                Err(format!("the error names another file: {error}"))
            }
        }
        _ => Err(format!("not a damage error: {error}")),
    }
}

fn check_every_damage(leaving: Ending) {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let left = make_image(leaving);
    let mut random = Random::of(seed, 8);
    let count = if settings::every() { 2000 } else { 24 };
    let (mut told, mut cut, mut harmless) = (0, 0, 0);
    let mut wrong = Vec::new();
    let undamaged_store = undamaged_store(&left);
    for file in left.sim.files() {
        let content = left.sim.content(&file).unwrap();
        for damage in damages(content.len(), count, &mut random) {
            let sim = left.sim.image(End::Kill, 0);
            let damaged = damaged(content.clone(), damage, &mut random);
            match &damaged {
                Some(damaged) if *damaged == content => continue,
                Some(damaged) => sim.put(&file, damaged.clone()),
                None => sim.take(&file),
            }
            let story = format!("{leaving:?}, {} {damage:?}", file.display());
            match catch_unwind(AssertUnwindSafe(|| read_everything(&sim))) {
                Err(_) => wrong.push(format!("{story}: panic")),
                Ok(Err(error)) => {
                    told += 1;
                    if let Err(why) = check_error(&error, &sim, &file, content.len()) {
                        wrong.push(format!("{story}: {why}"));
                    }
                    // The attempt must not have made repairable damage worse.
                    let now = sim.content(&file);
                    sim.put(&file, undamaged(&file, &content, damaged, now));
                    match read_everything(&sim).map(|found| found.digest()) {
                        Ok(digest) if digest == undamaged_store.digest() => {}
                        Ok(_) => wrong.push(format!("{story}: the repaired store lost something")),
                        Err(error) => wrong.push(format!("{story}: repaired: {error}")),
                    }
                }
                Ok(Ok(found)) => match left.history.find(&found, 0..=left.writes.len()) {
                    Some(count) if count == left.writes.len() => harmless += 1,
                    Some(count) if count >= left.synced => cut += 1,
                    other => wrong.push(format!(
                        "{story}: the content is of {other:?} writes, not {}: {}",
                        left.synced,
                        found.difference(&undamaged_store)
                    )),
                },
            }
        }
    }
    println!("{told} told, {cut} cut, {harmless} harmless, {} wrong", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {told} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
    assert!(told > 50, "{told}");
}

/// A file without its damage. What the attempt wrote to a segment stays, since it may have come
/// from the staging file, which no longer has it.
fn undamaged(
    file: &Path,
    content: &[u8],
    damaged: Option<Vec<u8>>,
    now: Option<Vec<u8>>,
) -> Vec<u8> {
    if file.extension() != Some("log".as_ref()) {
        return content.to_vec();
    }
    let (damaged, now) = (damaged.unwrap_or_default(), now.unwrap_or_default());
    let byte = |of: &[u8], at: usize| of.get(at).copied().unwrap_or_default();
    let merged = content.iter().enumerate().map(|(at, &undamaged_store)| {
        let written = byte(&now, at);
        if written == byte(&damaged, at) { undamaged_store } else { written }
    });
    merged.collect()
}

fn undamaged_store(left: &StoreImage) -> Model {
    let mut model = Model::default();
    for write in &left.writes {
        model.apply(write);
    }
    model
}

#[test]
fn damage_after_compaction_is_reported() {
    check_every_damage(Ending::Flushed);
}

#[test]
fn damage_after_sync_is_reported() {
    check_every_damage(Ending::Synced);
}

#[test]
fn damage_after_close_is_reported() {
    check_every_damage(Ending::Closed);
}

#[test]
fn damage_after_kill_is_reported_or_cuts_unsynced_writes() {
    check_every_damage(Ending::Killed);
}

/// A crash tears a manifest's last frame only if that was not durable. Here it was: it created the
/// table with all content.
#[test]
fn damaged_manifest_end_is_not_taken_for_a_torn_write() {
    let sim = Sim::new(5);
    let options = settings::tiny(Durability::None);
    let mut target = Target::open(&sim, &options).unwrap();
    let manifest = Path::new(STORE_DIR).join("MANIFEST");
    let before = sim.content(&manifest).unwrap().len();
    for number in 0..100 {
        target.table(0).unwrap().put(&key(0, number), b"value").unwrap();
    }
    drop(target);
    let content = sim.content(&manifest).unwrap();
    assert!(content.len() > before, "a frame was added");
    let told = |damaged: Vec<u8>, has_note: bool, story: &str| {
        let sim = sim.image(End::Kill, 0);
        sim.put(&manifest, damaged);
        if !has_note {
            // As if not written back when power failed.
            let staging = Path::new(STORE_DIR).join("staging");
            let mut content = sim.content(&staging).unwrap();
            content[3 * 16..4 * 16].fill(0);
            sim.put(&staging, content);
        }
        match Target::open(&sim, &options).err() {
            Some(Error::Damaged { path, offset, .. }) => {
                assert_eq!((path, offset), (manifest.clone(), before as u64), "{story}");
            }
            other => panic!("{story}: {other:?}"),
        }
    };
    for has_note in [true, false] {
        for bit in before * 8..content.len() * 8 {
            let mut damaged = content.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            told(damaged, has_note, &format!("bit {bit}, note: {has_note}"));
        }
        for len in before..content.len() {
            told(content[..len].to_vec(), has_note, &format!("cut to {len}, note: {has_note}"));
        }
    }
}
