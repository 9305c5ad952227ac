//! The cost of the kernel's simplest services: the calls of LMBench's `lat_syscall`, and the first
//! touch of a page.
#![allow(unsafe_code, reason = "calls past the C library's caches")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use serde::Serialize;

use crate::batches::{self, BatchSpread};
use crate::error::MicroError;
use crate::region::{PageSize, Placement, Region};

/// Pages that one call of `fault` touches; the cost is that of one page.
const TOUCHED_PAGES: u64 = 64;
const PAGE: u64 = 4096;

/// One service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    pub name: &'static str,
    pub what: &'static str,
    pub cost: BatchSpread,
}

type Once<'a> = Box<dyn FnMut() -> io::Result<()> + 'a>;

/// Measures every call for `time` each, on the calling thread, and calls `each` with every
/// result. When `stop` returns true, the results until then count.
///
/// # Errors
/// A call failed, or it was stopped before the first was measured.
pub fn run(
    time: Duration,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(&Call),
) -> Result<Vec<Call>, MicroError> {
    let mut zero = File::open("/dev/zero").map_err(failed_at("/dev/zero"))?;
    let null = File::options().write(true).open("/dev/null").map_err(failed_at("/dev/null"))?;
    let mut byte = [0_u8];
    let services: [(&str, &str, u64, Once<'_>); 7] = [
        ("null", "getppid: enters the kernel and returns", 1, Box::new(parent)),
        ("read", "reads 1 B of /dev/zero", 1, Box::new(move || zero.read_exact(&mut byte))),
        ("write", "writes 1 B to /dev/null", 1, Box::new(|| (&null).write_all(&[0]))),
        ("fstat", "reads the status of an open file", 1, Box::new(|| null.metadata().map(drop))),
        (
            "stat",
            "reads the status of /dev/null by its path",
            1,
            Box::new(|| std::fs::metadata("/dev/null").map(drop)),
        ),
        (
            "open",
            "opens /dev/null and closes it",
            1,
            Box::new(|| File::open("/dev/null").map(drop)),
        ),
        (
            "fault",
            "touches a fresh page of 4 KiB, its share of mapping 64 of them included",
            TOUCHED_PAGES,
            Box::new(touch),
        ),
    ];
    let mut calls = Vec::new();
    for (name, what, parts, mut once) in services {
        let many = |calls: u64| (0..calls).try_for_each(|_| once());
        let Some(cost) = batches::measure(time, stop, many).map_err(failed_at(name))? else {
            break;
        };
        let call = Call { name, what, cost: cost.per(parts) };
        each(&call);
        calls.push(call);
    }
    if calls.is_empty() { Err(MicroError::Stopped) } else { Ok(calls) }
}

fn failed_at(name: &str) -> impl Fn(io::Error) -> MicroError {
    move |error| MicroError::Failed(format!("{name}: {error}"))
}

/// The C library may cache a process's own number, but not its parent's.
fn parent() -> io::Result<()> {
    // SAFETY: a question that takes no pointer and cannot fail.
    std::hint::black_box(unsafe { libc::syscall(libc::SYS_getppid) });
    Ok(())
}

fn touch() -> io::Result<()> {
    let region = Region::map(TOUCHED_PAGES * PAGE, PageSize::Small, Placement::FirstTouch);
    let mut region = region.map_err(|fault| io::Error::other(fault.to_string()))?;
    let words = region.as_mut_slice::<u64>();
    for page in words.chunks_mut(PAGE as usize / 8) {
        std::hint::black_box(&mut page[0]);
        page[0] = 1;
    }
    std::hint::black_box(words);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_cost() {
        let mut reported = Vec::new();
        let calls = run(Duration::ZERO, &|| false, &mut |call| reported.push(call.name)).unwrap();
        assert_eq!(calls.iter().map(|call| call.name).collect::<Vec<_>>(), reported);
        assert_eq!(reported, ["null", "read", "write", "fstat", "stat", "open", "fault"]);
        for call in &calls {
            assert!(call.cost.min_ns > 0.0 && call.cost.min_ns <= call.cost.median_ns, "{call:?}");
        }
        assert!(calls[6].cost.calls.is_multiple_of(TOUCHED_PAGES));
        assert_eq!(run(Duration::ZERO, &|| true, &mut |_| {}), Err(MicroError::Stopped));
    }
}
