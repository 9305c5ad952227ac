//! What a running process reads from its clients' sockets, copied as it reads.

use bpf::{Attached, Ring, Scratch, SharedMemory};

use crate::arch;
use crate::layout::Layout;
use crate::loading::{Pair, mark_sockets};
use crate::programs::capture::{self as programs, CapturePlan, SCRATCH, counter, event};
use crate::programs::{Identity, ProgramPlan};
use crate::sys;
use crate::target::{self, Target};
use crate::unavailable::UnavailableReason;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for reads that are not yet taken.
const RING: usize = 32 << 20;

/// Copies the reads of one process until dropped.
pub struct ReadCapture {
    // Detached first, before the memory is freed.
    _attached: [Attached; 2],
    _programs: Pair,
    ring: Ring,
    counters: Arc<SharedMemory>,
    _slots: SharedMemory,
    _scratch: Scratch,
    target: Target,
    /// What the kernel's clock of the events is behind the time of day.
    behind_ns: i128,
}

/// A read of bytes from a client's socket, or that a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketRead<'a> {
    /// When it ended, since 1970.
    pub at_ns: u64,
    pub descriptor: u32,
    /// Bytes of the connection that were read before, since it began or the capture did.
    pub position: u64,
    /// Bytes that were read; 0: a new connection has this descriptor.
    pub length: u32,
    /// The first of them: as many as lay in one piece, at most 16 KiB.
    pub bytes: &'a [u8],
}

/// Counts of a [`ReadCapture`], also after it.
#[derive(Clone)]
pub struct LostReads(Arc<SharedMemory>);

impl LostReads {
    /// Reads that were not copied, as the ring was full or the descriptor above 262,143.
    pub fn reads(&self) -> u64 {
        let words = self.0.words();
        let count = |offset: i16| {
            words.get(offset as usize / 8).map_or(0, |word| word.load(Ordering::Relaxed))
        };
        count(counter::LOST) + count(counter::UNTRACKED)
    }
}

impl ReadCapture {
    /// Copies from now on what the process with the number `pid` reads.
    ///
    /// # Errors
    /// Why it cannot be traced.
    pub fn attach(pid: u32) -> Result<ReadCapture, UnavailableReason> {
        let target = Target::inspect(pid)?;
        let identity = target::identity(target.pid)?;
        ReadCapture::start(identity, target)
    }

    fn start(identity: Identity, target: Target) -> Result<ReadCapture, UnavailableReason> {
        let registers = arch::REGISTERS.ok_or(UnavailableReason::Architecture)?;
        let layout = Layout::new(1, target.descriptors);
        let ring = Ring::create("kvmeter_reads", RING)?;
        let scratch = Scratch::create("kvmeter_scratch", SCRATCH)?;
        let counters = SharedMemory::create("kvmeter_counters", counter::BYTES)?;
        let slots = SharedMemory::create("kvmeter_slots", layout.slots_bytes())?;
        let plan = CapturePlan {
            base: ProgramPlan {
                identity,
                layout,
                registers,
                tallies: counters.descriptor(),
                slots: slots.descriptor(),
            },
            ring: ring.descriptor(),
            scratch: scratch.descriptor(),
        };
        let programs = Pair::load(
            ("kvmeter_closes", programs::at_entry(&plan)),
            ("kvmeter_reads", programs::at_exit(&plan)),
        )?;
        let attached = programs.attach()?;
        mark_sockets(&slots, &target)?;
        Ok(ReadCapture {
            _attached: attached,
            _programs: programs,
            ring,
            counters: Arc::new(counters),
            _slots: slots,
            _scratch: scratch,
            target,
            behind_ns: sys::behind_the_day_ns(),
        })
    }

    /// Passes the reads that were not yet taken to `each`, in the order in which they ended;
    /// returns their number, and does not wait.
    pub fn take(&mut self, mut each: impl FnMut(SocketRead<'_>)) -> usize {
        let behind_ns = self.behind_ns;
        self.ring.take(|record| each(read_of(record, behind_ns)))
    }

    /// What it loses.
    pub fn losses(&self) -> LostReads {
        LostReads(Arc::clone(&self.counters))
    }

    /// Whether the process has ended.
    pub fn exited(&self) -> bool {
        sys::has_exited(&self.target.handle)
    }
}

fn read_of(record: &[u8], behind_ns: i128) -> SocketRead<'_> {
    let word = |offset: i16| {
        let bytes = record.get(offset as usize..).and_then(<[u8]>::first_chunk);
        u64::from_ne_bytes(bytes.copied().unwrap_or_default())
    };
    let lengths = word(event::LENGTHS);
    let copied = (lengths >> 32) as usize;
    SocketRead {
        at_ns: u64::try_from(i128::from(word(event::AT_NS)) + behind_ns).unwrap_or(0),
        descriptor: word(event::DESCRIPTOR) as u32,
        position: word(event::POSITION),
        length: lengths as u32,
        // The kernel rounds a record up to 8 bytes.
        bytes: record.get(event::HEADER..event::HEADER + copied).unwrap_or_default(),
    }
}
