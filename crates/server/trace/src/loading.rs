//! Putting a pair of programs, at the entry and the exit of system calls, into the kernel.

use bpf::asm::{AssembleError, Instruction};
use bpf::{Attached, BpfError, Btf, Program, SharedMemory};

use crate::layout::slot;
use crate::target::Target;
use crate::unavailable::UnavailableReason;
use std::sync::atomic::Ordering;

/// Programs at the entry and at the exit of every system call.
pub(crate) struct Pair {
    pub entry: Program,
    pub exit: Program,
}

type Assembled = Result<Vec<Instruction>, AssembleError>;

impl Pair {
    /// Each with its name in the kernel.
    pub fn load(entry: (&str, Assembled), exit: (&str, Assembled)) -> Result<Pair, BpfError> {
        let types = Btf::of_kernel()?;
        let load = |tracepoint, (name, program): (&str, Assembled)| {
            Program::load(name, &types.tracepoint(tracepoint)?, program)
        };
        Ok(Pair { entry: load("sys_enter", entry)?, exit: load("sys_exit", exit)? })
    }

    /// Lets both run until the result is dropped.
    pub fn attach(&self) -> Result<[Attached; 2], BpfError> {
        // The exit last: a request is never begun that could not be ended.
        Ok([self.entry.attach()?, self.exit.attach()?])
    }
}

/// Marks the sockets that a process has, after its programs are attached, so that no connection is
/// missed; a slot that they have set meanwhile is left as it is.
pub(crate) fn mark_sockets(slots: &SharedMemory, target: &Target) -> Result<(), UnavailableReason> {
    let words = slots.words();
    for (descriptor, outgoing) in target.sockets()? {
        let state = if outgoing { slot::OUTGOING } else { slot::IDLE } as u64;
        if let Some(word) = words.get(descriptor) {
            let other = slot::OTHER as u64;
            let _ = word.compare_exchange(other, state, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
    Ok(())
}
