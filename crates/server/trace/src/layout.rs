//! The layout of the memory that the programs and user space share.
//!
//! Two maps, each an array with a single value that is mapped into user space: the programs access
//! it without a look-up, user space reads it without a system call.
//!
//! - *tallies*: one block a CPU, so that CPUs share no cache line. Syscall
//!   tracepoints run with preemption off, so a block has one writer and plain
//!   adds suffice. Beyond [`MOST_BLOCKS`] CPUs share blocks, and adds are atomic.
//! - *slots*: one word a file descriptor of the process, see [`slot`].

use crate::histogram::BUCKETS;

/// Counted system call numbers; the last entry counts all higher ones.
pub(crate) const SYSCALLS: usize = 512;
/// Keeps the map below the 4 MiB that older kernels allow for a value.
const MOST_BLOCKS: usize = 64;
/// Descriptors from here on are not followed: 2 MiB of slots.
pub(crate) const MOST_SLOTS: usize = 1 << 18;

/// Byte offsets of the counters in a block.
pub(crate) mod tally {
    pub const SUM_NS: i16 = 0;
    pub const READS: i16 = 8;
    pub const JOINED_READS: i16 = 16;
    pub const FURTHER_WRITES: i16 = 24;
    pub const WAKEUPS: i16 = 32;
    pub const READY: i16 = 40;
    pub const UNTRACKED: i16 = 48;
    pub const SYSCALLS: i16 = 64;
    pub const HISTOGRAM: i16 = SYSCALLS + 8 * super::SYSCALLS as i16;
}

/// The states of a slot.
pub(crate) mod slot {
    /// Not a socket as far as is known.
    pub const OTHER: i32 = 0;
    /// A connection of a client with nothing pending.
    pub const IDLE: i32 = 1;
    /// A connection that this process opened as a client.
    pub const OUTGOING: i32 = 2;
    /// From here on: the time (monotonic, ns) of the read that brought a request.
    pub const PENDING: i32 = 3;
}

/// Bytes of a CPU's block, a multiple of a cache line.
pub(crate) const BLOCK: usize = (tally::HISTOGRAM as usize + 8 * BUCKETS).next_multiple_of(128);

/// The sizes of the two maps for one traced process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// A power of two.
    pub blocks: usize,
    /// CPUs share blocks, so adds have to be atomic.
    pub shared: bool,
    pub slots: usize,
}

impl Layout {
    pub fn new(cpus: usize, descriptors: usize) -> Layout {
        let blocks = cpus.max(1).next_power_of_two().min(MOST_BLOCKS);
        Layout { blocks, shared: blocks < cpus, slots: descriptors.clamp(64, MOST_SLOTS) }
    }

    pub fn tallies_bytes(&self) -> usize {
        self.blocks * BLOCK
    }

    pub fn slots_bytes(&self) -> usize {
        self.slots * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_sizes_stay_within_kernel_limits() {
        let limit = 4 << 20;
        for (cpus, shared) in [(1, false), (2, false), (48, false), (64, false), (192, true)] {
            let layout = Layout::new(cpus, 1 << 30);
            assert_eq!(layout.shared, shared, "{cpus} CPUs");
            assert!(layout.blocks.is_power_of_two());
            assert!(layout.tallies_bytes() < limit && layout.slots_bytes() < limit);
        }
        assert_eq!(BLOCK % 128, 0);
    }
}
