//! Runs a memory trace through the caches, without time.
//!
//! A line per access, `WHO OPERATION ADDRESS [BYTES]`: `core3 read 0x7f00 8`, `card write 0x1000
//! 1500`. Empty lines and those that begin with `#` are ignored.

use std::io::BufRead;

use serde::Serialize;

use crate::cache::{LINE, LineNumber};
use crate::describe::machine::SimulatedMachine;
use crate::engine::Levels;
use crate::error::SimError;
use crate::memory::{Caches, Hits, MemoryLines};

/// Longest access.
const MAX_ACCESS: u64 = 1 << 20;

/// The result of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceOutcome {
    pub kind: &'static str,
    pub machine: String,
    pub accesses: u64,
    pub lines: u64,
    pub core_lines: u64,
    pub private_hits: u64,
    pub llc_hits: u64,
    pub peer_hits: u64,
    pub llc_misses: u64,
    pub card_write_hits: u64,
    pub card_write_misses: u64,
    pub card_read_hits: u64,
    pub card_read_misses: u64,
    pub memory_read_bytes: u64,
    pub memory_write_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TraceAccess {
    /// None is the card.
    core: Option<usize>,
    write: bool,
    first: LineNumber,
    lines: u32,
    part: bool,
}

/// Runs a trace; `card` are the ways in which the card may allocate, 0 for none.
pub fn run(
    machine: &SimulatedMachine,
    card: u32,
    seed: u64,
    origin: &str,
    trace: impl BufRead,
) -> Result<TraceOutcome, SimError> {
    let cores = *machine.cores.get_ref() as usize;
    let mut caches = Caches::new(machine.shape(cores), seed);
    let every = machine.shared_geometry().every_way();
    let ways = (card != 0).then_some(card);
    let (mut levels, mut written, mut read) = (Levels::default(), Hits::default(), Hits::default());
    let mut accesses = 0;
    for (i, line) in trace.lines().enumerate() {
        let line = line.map_err(|error| SimError::File {
            path: format!("{origin}:{}", i + 1),
            why: error.to_string(),
        })?;
        let Some(access) = parse(&line, cores).map_err(|why| {
            SimError::Place(format!("{origin}:{}: {why}\n{} | {line}", i + 1, i + 1))
        })?
        else {
            continue;
        };
        accesses += 1;
        match access.core {
            Some(core) => {
                for line in access.first..access.first + access.lines {
                    levels.count(caches.core_access(core, line, access.write, every));
                }
            }
            None if access.write => {
                written += caches.device_write(access.first, access.lines, access.part, ways);
            }
            None => read += caches.device_read(access.first, access.lines),
        }
    }
    let memory: MemoryLines = caches.memory;
    Ok(TraceOutcome {
        kind: "simulated",
        machine: machine.name.clone(),
        accesses,
        lines: levels.total() + written.total() + read.total(),
        core_lines: levels.total(),
        private_hits: levels.private,
        llc_hits: levels.shared,
        peer_hits: levels.peer,
        llc_misses: levels.memory,
        card_write_hits: written.hits,
        card_write_misses: written.misses,
        card_read_hits: read.hits,
        card_read_misses: read.misses,
        memory_read_bytes: memory.reads() * LINE,
        memory_write_bytes: memory.writes() * LINE,
    })
}

fn parse(line: &str, cores: usize) -> Result<Option<TraceAccess>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(actor), Some(operation), Some(address)) = (words.next(), words.next(), words.next())
    else {
        return Err(
            "write an access as `WHO OPERATION ADDRESS [BYTES]`, e.g. `core0 read 0x1000 8`".into(),
        );
    };
    let core = match (actor, actor.strip_prefix("core").map(str::parse::<usize>)) {
        ("card", _) => None,
        (_, Some(Ok(core))) if core < cores => Some(core),
        (_, Some(Ok(_))) => {
            return Err(format!("`{actor}`: the machine has cores 0 to {}", cores - 1));
        }
        _ => return Err(format!("`{actor}` is neither `card` nor `core0` to `core{}`", cores - 1)),
    };
    let write = match operation {
        "read" => false,
        "write" => true,
        _ => return Err(format!("`{operation}` is neither `read` nor `write`")),
    };
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let begin = number(address).ok_or_else(|| format!("`{address}` is not an address"))?;
    let bytes = match words.next() {
        None => 1,
        Some(text) => number(text)
            .filter(|bytes| (1..=MAX_ACCESS).contains(bytes))
            .ok_or_else(|| format!("`{text}` is not a number of bytes of 1 to {MAX_ACCESS}"))?,
    };
    if let Some(more) = words.next() {
        return Err(format!("`{more}` is too much: an access has at most four words"));
    }
    let end = begin.checked_add(bytes).filter(|end| *end < LINE << 32);
    let end = end.ok_or_else(|| format!("`{address}`: addresses must be below 256 GiB"))?;
    let (first, last) = (begin / LINE, (end - 1) / LINE);
    let part = end % LINE != 0;
    Ok(Some(TraceAccess {
        core,
        write,
        first: first as u32,
        lines: (last - first + 1) as u32,
        part,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Result<TraceOutcome, SimError> {
        let machine = SimulatedMachine::open("xeon-gold-6140").unwrap();
        run(&machine, 0x600, 1, "t.txt", text.as_bytes())
    }

    #[test]
    fn a_written_packet_hits() {
        let outcome =
            trace("# rx\ncard write 0x10000 1500\n\ncore0 read 0x10000 64\ncard read 0x10000 1500")
                .unwrap();
        assert_eq!((outcome.card_write_misses, outcome.card_write_hits), (24, 0));
        assert_eq!((outcome.llc_hits, outcome.llc_misses), (1, 0));
        assert_eq!((outcome.card_read_hits, outcome.card_read_misses), (24, 0));
        // The part of the last line that was not written had to be read.
        assert_eq!((outcome.memory_read_bytes, outcome.memory_write_bytes), (64, 0));
        assert_eq!((outcome.accesses, outcome.lines), (3, 49));
    }

    #[test]
    fn a_bad_line_is_shown_with_its_number() {
        for (text, says) in [
            ("core0 read", "t.txt:1: write an access as"),
            ("\ncore99 read 0 1", "t.txt:2: `core99`: the machine has cores 0 to 17"),
            ("nic read 0", "t.txt:1: `nic` is neither"),
            ("card move 0", "t.txt:1: `move` is neither"),
            ("card read x", "t.txt:1: `x` is not an address"),
            ("card read 0 0", "t.txt:1: `0` is not a number of bytes"),
            ("card read 0 8 9", "t.txt:1: `9` is too much"),
            ("card read 0x4000000000 8", "t.txt:1: `0x4000000000`: addresses"),
        ] {
            let error = trace(text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
