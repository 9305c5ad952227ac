//! Putting a pair of programs, at the entry and the exit of system calls, into the kernel.

use crate::asm::{AssembleError, Instruction};
use crate::btf;
use crate::layout::slot;
use crate::sys::{Attached, Program, SharedMemory};
use crate::target::Target;
use crate::unavailable::{UnavailableReason, reason_for};
use std::fs;
use std::io;
use std::sync::atomic::Ordering;

/// Programs at the entry and at the exit of every system call.
pub(crate) struct Pair {
    pub entry: Program,
    pub exit: Program,
}

type Assembled = Result<Vec<Instruction>, AssembleError>;

impl Pair {
    /// Each with its name in the kernel.
    pub fn load(
        entry: (&str, Assembled),
        exit: (&str, Assembled),
    ) -> Result<Pair, UnavailableReason> {
        let [entry_point, exit_point] = tracepoints()?;
        let load = |tracepoint, (name, program): (&str, Assembled)| {
            let program =
                program.map_err(|error| UnavailableReason::Rejected { log: error.to_string() })?;
            Program::load(name, tracepoint, &program)
                .map_err(|(error, log)| reason_for("loading a BPF program", &error, log))
        };
        Ok(Pair { entry: load(entry_point, entry)?, exit: load(exit_point, exit)? })
    }

    /// Lets both run until the result is dropped.
    pub fn attach(&self) -> Result<[Attached; 2], UnavailableReason> {
        let attach = |program: &Program| {
            program
                .attach()
                .map_err(|error| reason_for("attaching to a tracepoint", &error, String::new()))
        };
        // The exit last: a request is never begun that could not be ended.
        Ok([attach(&self.entry)?, attach(&self.exit)?])
    }
}

/// The type numbers of the two tracepoints.
fn tracepoints() -> Result<[u32; 2], UnavailableReason> {
    let no_types = |detail: String| UnavailableReason::NoTypes { detail };
    let types =
        fs::read(btf::VMLINUX).map_err(|error| no_types(format!("{}: {error}", btf::VMLINUX)))?;
    let names = ["btf_trace_sys_enter", "btf_trace_sys_exit"];
    let [entry, exit] = btf::find(&types, btf::KIND_TYPEDEF, names)
        .map_err(|error| no_types(format!("{}: {error}", btf::VMLINUX)))?;
    Ok([
        entry.ok_or(UnavailableReason::NoTracepoint("sys_enter"))?,
        exit.ok_or(UnavailableReason::NoTracepoint("sys_exit"))?,
    ])
}

/// What the kernel answered when it was to give memory to programs.
pub(crate) fn no_memory(error: io::Error) -> UnavailableReason {
    reason_for("making shared memory", &error, String::new())
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
