//! Direct writes with a fixed queue depth, by io_uring.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use model::random::Draws;

use super::error::{SECTOR, WriteError};

/// Alignment of memory that direct I/O needs on every device.
const ALIGNMENT: usize = 4096;
/// Bytes per stamp of address and time in a block: no two blocks are alike, so no device can
/// deduplicate them.
const STAMP_INTERVAL: usize = 4096;

/// A queue of writes to one file.
pub(super) struct WriteRing<'a> {
    // Dropped before the slots, whose memory it may still write.
    ring: IoUring,
    file: &'a File,
    slots: Vec<WriteSlot>,
    /// Numbers of idle slots.
    idle: Vec<usize>,
    stamp: u64,
    /// The failed write of the lowest offset, and the number of others.
    failed: Option<(WriteFailure, usize)>,
}

struct WriteFailure {
    offset: u64,
    length: u32,
    error: io::Error,
}

struct WriteSlot {
    memory: Vec<u8>,
    begin: usize,
    position: u64,
    /// Offset of the write in flight, and the bytes of it that are done.
    offset: u64,
    done: usize,
}

impl WriteSlot {
    fn bytes(&mut self, length: usize) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + length]
    }
}

impl<'a> WriteRing<'a> {
    /// A queue of `depth` writes of up to `length` bytes, with incompressible content.
    pub(super) fn new(
        file: &'a File,
        depth: usize,
        length: usize,
        seed: u64,
    ) -> Result<Self, WriteError> {
        let ring =
            IoUring::new(depth.next_power_of_two() as u32).map_err(|error| WriteError::Call {
                what: "io_uring (allow it: sysctl kernel.io_uring_disabled=0)",
                error,
            })?;
        let mut random = Draws::from(seed);
        let slot = |_| {
            let mut memory = vec![0; length + ALIGNMENT];
            memory
                .chunks_mut(8)
                .for_each(|part| part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]));
            let begin = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
            WriteSlot { memory, begin, position: 0, offset: 0, done: 0 }
        };
        let slots = (0..depth).map(slot).collect();
        Ok(WriteRing { ring, file, slots, idle: (0..depth).collect(), stamp: seed, failed: None })
    }

    pub(super) fn has_room(&self) -> bool {
        !self.idle.is_empty()
    }

    pub(super) fn under_way(&self) -> usize {
        self.slots.len() - self.idle.len()
    }

    /// The lowest position of a write in flight.
    pub(super) fn lowest(&self) -> Option<u64> {
        let busy = (0..self.slots.len()).filter(|slot| !self.idle.contains(slot));
        busy.map(|slot| self.slots[slot].position).min()
    }

    /// Submits a write that begins at the caller's `position`-th byte. There must be room.
    pub(super) fn write(
        &mut self,
        offset: u64,
        length: usize,
        position: u64,
    ) -> Result<(), WriteError> {
        let Some(number) = self.idle.pop() else {
            return Err(WriteError::Other("more writes than there is room for".to_owned()));
        };
        self.stamp = self.stamp.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let stamp = self.stamp;
        let slot = &mut self.slots[number];
        (slot.position, slot.offset, slot.done) = (position, offset, 0);
        for (at, block) in slot.bytes(length).chunks_mut(STAMP_INTERVAL).enumerate() {
            let place = offset + (at * STAMP_INTERVAL) as u64;
            block[..8].copy_from_slice(&place.to_le_bytes());
            block[8..16].copy_from_slice(&stamp.to_le_bytes());
        }
        self.push(number, length)
    }

    fn push(&mut self, number: usize, length: usize) -> Result<(), WriteError> {
        let slot = &mut self.slots[number];
        let (offset, done) = (slot.offset + slot.done as u64, slot.done);
        let bytes = &slot.bytes(length)[done..];
        let write = opcode::Write::new(
            types::Fd(self.file.as_raw_fd()),
            bytes.as_ptr(),
            bytes.len() as u32,
        )
        .offset(offset)
        .build()
        .user_data(number as u64 | (length as u64) << 32);
        // SAFETY: the file outlives the ring; the slot's memory is neither moved nor touched until
        // its answer is taken, and `Drop` waits for all answers.
        let pushed = unsafe { self.ring.submission().push(&write) };
        if pushed.is_err() {
            self.idle.push(number);
            return Err(WriteError::Other("the kernel accepts no more writes".to_owned()));
        }
        Ok(())
    }

    /// Waits for at least one completion, or `most`, and takes all. Returns the bytes written.
    pub(super) fn wait(&mut self, most: Duration) -> Result<u64, WriteError> {
        let timeout = types::Timespec::from(most);
        let args = types::SubmitArgs::new().timespec(&timeout);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {}
            Err(error) => return Err(WriteError::Call { what: "waiting for writes", error }),
        }
        let answers: Vec<(u64, i32)> =
            self.ring.completion().map(|answer| (answer.user_data(), answer.result())).collect();
        let mut written = 0;
        for (data, result) in answers {
            let (number, length) = ((data & 0xffff_ffff) as usize, (data >> 32) as usize);
            let slot = &mut self.slots[number];
            let error = match result {
                // A write of no bytes would be retried for ever.
                0 => Some(io::ErrorKind::WriteZero.into()),
                code if code < 0 => Some(io::Error::from_raw_os_error(-code)),
                part => {
                    slot.done += part as usize;
                    written += part as u64;
                    None
                }
            };
            let rest = length - slot.done.min(length);
            match (error, rest) {
                (Some(error), _) => {
                    let offset = slot.offset + slot.done as u64;
                    self.idle.push(number);
                    note(&mut self.failed, WriteFailure { offset, length: rest as u32, error });
                }
                (None, 0) => self.idle.push(number),
                // The rest of a short write.
                (None, _) => self.push(number, length)?,
            }
        }
        Ok(written)
    }

    /// Waits for all writes in flight, then returns the failure of the lowest offset.
    pub(super) fn finish(&mut self) -> Result<u64, WriteError> {
        /// A device without completions for this time hangs.
        const COMPLETION_TIMEOUT: Duration = Duration::from_secs(120);
        let begun = Instant::now();
        let mut written = 0;
        while self.under_way() > 0 {
            written += self.wait(Duration::from_secs(1))?;
            if begun.elapsed() > COMPLETION_TIMEOUT {
                return Err(WriteError::Other(format!(
                    "{} writes have had no answer for {} s",
                    self.under_way(),
                    COMPLETION_TIMEOUT.as_secs()
                )));
            }
        }
        self.check()?;
        Ok(written)
    }

    /// Whether a write has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    fn check(&mut self) -> Result<(), WriteError> {
        match self.failed.take() {
            None => Ok(()),
            Some((WriteFailure { offset, length, error }, further)) => {
                Err(WriteError::Io { sector: offset / SECTOR, length, error, further })
            }
        }
    }
}

/// Keeps the lowest offset. The kernel merges adjacent writes into one request, and each of them
/// fails with it, in any order: the request, and what the kernel's log names, begins with the lowest.
fn note(failed: &mut Option<(WriteFailure, usize)>, failure: WriteFailure) {
    *failed = Some(match failed.take() {
        None => (failure, 0),
        Some((known, further)) if known.offset <= failure.offset => (known, further + 1),
        Some((_, further)) => (failure, further + 1),
    });
}

impl Drop for WriteRing<'_> {
    fn drop(&mut self) {
        // The kernel may still read the slots' memory, so a write that hangs leaks it.
        if self.under_way() > 0 && self.finish().is_err() && self.under_way() > 0 {
            self.slots.drain(..).for_each(std::mem::forget);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_merged_writes_the_lowest_is_named() {
        let mut failed = None;
        for offset in [512, 256, 768] {
            let error = io::Error::from_raw_os_error(libc::EIO);
            note(&mut failed, WriteFailure { offset, length: 256, error });
        }
        let named = failed.map(|(failure, further)| (failure.offset, further));
        assert_eq!(named, Some((256, 2)));
    }
}
