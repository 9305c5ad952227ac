//! Repeated sequential writes over a part of the addresses.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::WriteError;
use super::ring::WriteRing;

/// Longest wait for completions.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The settings of sequential writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequentialWrites {
    /// Bytes of addresses, from the first on: a multiple of the device's block.
    pub(super) range: u64,
    /// Bytes in all.
    pub(super) total: u64,
    /// Bytes that were written before, from which to resume.
    pub(super) from: u64,
    pub(super) block: usize,
    pub(super) depth: usize,
    /// Bytes per second at most.
    pub(super) rate: Option<f64>,
}

/// Writes the sequence; returns the bytes that are done without a gap from its beginning, fewer
/// than the total if `stop` was set or `limit` is over. `report` gets that number now and then; its
/// error ends the writing.
pub(super) fn write(
    file: &File,
    sequence: &SequentialWrites,
    limit: Instant,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64) -> Result<(), WriteError>,
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
            let length_left = (sequence.range - offset).min(sequence.total - handed_over);
            let length = length_left.min(sequence.block as u64) as usize;
            ring.write(offset, length, handed_over)?;
            handed_over += length as u64;
        }
        match ring.under_way() {
            // The rate allows no write now.
            0 => std::thread::sleep(Duration::from_millis(1)),
            _ => drop(ring.wait(POLL_INTERVAL.min(Duration::from_millis(50)))?),
        }
        if told_at.elapsed() >= POLL_INTERVAL {
            told_at = Instant::now();
            // Bytes written without a gap.
            report(ring.lowest().unwrap_or(handed_over))?;
        }
    }
    ring.finish()?;
    Ok(handed_over)
}

/// Whether the rate allows another write.
fn allowed(sequence: &SequentialWrites, begun: Instant, handed_over: u64) -> bool {
    sequence.rate.is_none_or(|rate| {
        (handed_over - sequence.from) as f64 <= rate * begun.elapsed().as_secs_f64()
    })
}
