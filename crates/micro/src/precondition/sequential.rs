//! Sequential writes over a part of the addresses, again and again.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::WriteError;
use super::ring::WriteRing;

/// How long one look at the answers takes at most.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// What to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequentialWrites {
    /// Bytes of addresses, from the first on: a multiple of the device's block.
    pub(super) range: u64,
    /// Bytes in all.
    pub(super) total: u64,
    /// Where to go on: bytes that were written before.
    pub(super) from: u64,
    pub(super) block: usize,
    pub(super) depth: usize,
    /// Bytes per second at most.
    pub(super) rate: Option<f64>,
}

/// Writes the sequence; answers how many bytes of it are done in one piece from its beginning.
/// Less than its total: `stop` was raised or `limit` is over. `told` gets that number now and then,
/// and an error of its own ends the writing.
pub(super) fn write(
    file: &File,
    sequence: &SequentialWrites,
    limit: Instant,
    stop: &AtomicBool,
    told: &mut dyn FnMut(u64) -> Result<(), WriteError>,
) -> Result<u64, WriteError> {
    let mut ring = WriteRing::new(file, sequence.depth, sequence.block, sequence.from ^ 0x5eed)?;
    let begun = Instant::now();
    let mut handed_over = sequence.from;
    let mut told_at = Instant::now();
    let ends = || stop.load(Ordering::Relaxed) || Instant::now() >= limit;
    while handed_over < sequence.total && !ring.has_failed() && !ends() {
        while ring.has_room()
            && handed_over < sequence.total
            && allowed(sequence, begun, handed_over)
        {
            let offset = handed_over % sequence.range;
            // Neither beyond the range nor beyond the total.
            let left = (sequence.range - offset).min(sequence.total - handed_over);
            let length = left.min(sequence.block as u64) as usize;
            ring.write(offset, length, handed_over)?;
            handed_over += length as u64;
        }
        match ring.under_way() {
            // The rate lets nothing out at the moment.
            0 => std::thread::sleep(Duration::from_millis(1)),
            _ => drop(ring.wait(LOOK.min(Duration::from_millis(50)))?),
        }
        if told_at.elapsed() >= LOOK {
            told_at = Instant::now();
            // What is written without a gap.
            told(ring.lowest().unwrap_or(handed_over))?;
        }
    }
    ring.finish()?;
    Ok(handed_over)
}

/// Whether the rate lets another write out.
fn allowed(sequence: &SequentialWrites, begun: Instant, handed_over: u64) -> bool {
    sequence.rate.is_none_or(|rate| {
        (handed_over - sequence.from) as f64 <= rate * begun.elapsed().as_secs_f64()
    })
}
