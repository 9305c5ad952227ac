//! Loads the programs, attaches them to their tracepoints, reads their counts.

use bpf::{Attached, BpfError, RunTime, SharedMemory};

use crate::arch;
use crate::layout::Layout;
use crate::loading::{Pair, mark_sockets};
use crate::programs::{self, Identity, ProgramPlan};
use crate::snapshot::Snapshot;
use crate::sys;
use crate::target::{self, Target};
use crate::unavailable::UnavailableReason;
use std::os::fd::OwnedFd;

const ENTRY: &str = "kvmeter_entry";
const EXIT: &str = "kvmeter_exit";

/// Traces the system calls of one process until dropped. Several may trace the
/// same process, each with counts of its own.
pub struct Tracer {
    // Detached first, before the memory is freed.
    _attached: [Attached; 2],
    loaded: Loaded,
    target: Target,
}

/// The programs in the kernel with their memory.
struct Loaded {
    programs: Pair,
    tallies: SharedMemory,
    slots: SharedMemory,
}

impl Loaded {
    fn load(identity: Identity, layout: Layout) -> Result<Loaded, UnavailableReason> {
        let registers = arch::REGISTERS.ok_or(UnavailableReason::Architecture)?;
        let tallies = SharedMemory::create("kvmeter_tallies", layout.tallies_bytes())?;
        let slots = SharedMemory::create("kvmeter_slots", layout.slots_bytes())?;
        let plan = ProgramPlan {
            identity,
            layout,
            registers,
            tallies: tallies.descriptor(),
            slots: slots.descriptor(),
        };
        let programs =
            Pair::load((ENTRY, programs::at_entry(&plan)), (EXIT, programs::at_exit(&plan)))?;
        Ok(Loaded { programs, tallies, slots })
    }
}

/// Whether processes can be traced here: loads and attaches the programs for
/// no process at all, and takes them away again.
///
/// # Errors
/// The reason.
pub fn available() -> Result<(), UnavailableReason> {
    // No process has the number 0.
    let loaded = Loaded::load(target::identity(0)?, Layout::new(1, 0))?;
    Ok(loaded.programs.attach().map(drop)?)
}

/// Number and name of all BPF programs in the kernel, whoever loaded them; those of
/// this crate start with `kvmeter_`. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
/// As of [`available`].
pub fn loaded_programs() -> Result<Vec<(u32, String)>, UnavailableReason> {
    Ok(bpf::list_programs()?)
}

impl Tracer {
    /// Traces the process with the number `pid` (or of which it is a thread), as
    /// seen from this process's namespace, with the connections that it has.
    ///
    /// # Errors
    /// Why it cannot be traced.
    pub fn attach(pid: u32) -> Result<Tracer, UnavailableReason> {
        let target = Target::inspect(pid)?;
        let layout = Layout::new(target::possible_cpus(), target.descriptors);
        Tracer::start(target::identity(target.pid)?, layout, target)
    }

    fn start(
        identity: Identity,
        layout: Layout,
        target: Target,
    ) -> Result<Tracer, UnavailableReason> {
        let loaded = Loaded::load(identity, layout)?;
        let attached = loaded.programs.attach()?;
        mark_sockets(&loaded.slots, &target)?;
        Ok(Tracer { _attached: attached, loaded, target })
    }

    /// The traced process's number.
    pub fn pid(&self) -> u32 {
        self.target.pid
    }

    /// Whether the process has ended. What was counted can still be read, but
    /// another process that is given its number would be counted too.
    pub fn exited(&self) -> bool {
        sys::has_exited(&self.target.handle)
    }

    /// Counts so far. Reads memory, makes no system call.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::read(self.loaded.tallies.words())
    }

    /// Makes the kernel time the programs until the result is dropped. This slows every BPF program
    /// of the machine, so it is off by default.
    ///
    /// # Errors
    /// A kernel before 5.8, or no `CAP_SYS_ADMIN`, which this alone takes.
    pub fn watch_cost(&self) -> Result<CostWatch, UnavailableReason> {
        let switch = bpf::enable_statistics()?;
        Ok(CostWatch { _switch: switch, start: self.run_times()? })
    }

    fn run_times(&self) -> Result<[RunTime; 2], BpfError> {
        let Pair { entry, exit } = &self.loaded.programs;
        Ok([entry.run_time()?, exit.run_time()?])
    }
}

/// Times the programs of a [`Tracer`] while it lives.
pub struct CostWatch {
    _switch: OwnedFd,
    start: [RunTime; 2],
}

/// The time of the programs themselves, over all processes of the machine: each of their system
/// calls runs both. Not included: what the kernel does around a tracepoint, which [`Tracer`] alone
/// cannot see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub runs: u64,
    pub run_time_ns: u64,
}

impl Cost {
    /// Mean nanoseconds of a run; `None` where there was none.
    pub fn ns_per_run(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.run_time_ns as f64 / self.runs as f64)
    }
}

impl CostWatch {
    /// The time of the tracer's programs since the start of this watch.
    ///
    /// # Errors
    /// The kernel's error in reading the figures.
    pub fn cost(&self, tracer: &Tracer) -> Result<Cost, UnavailableReason> {
        let now = tracer.run_times()?;
        let each = now.iter().zip(&self.start);
        let (runs, run_time_ns) = each.fold((0, 0), |(runs, time), (now, start)| {
            (
                runs + now.runs.saturating_sub(start.runs),
                time + now.nanoseconds.saturating_sub(start.nanoseconds),
            )
        });
        Ok(Cost { runs, run_time_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    /// Answers `rounds` requests in this very process and returns what a tracer with this identity
    /// and layout counted. The client end connects itself, so it must not be counted.
    fn count_own(identity: Identity, layout: Layout, rounds: u64) -> Snapshot {
        let target = Target::inspect(std::process::id()).unwrap();
        let tracer = Tracer::start(identity, layout, target).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut client = TcpStream::connect(address).unwrap();
                for _ in 0..rounds {
                    client.write_all(b"?").unwrap();
                    client.read_exact(&mut [0]).unwrap();
                }
            });
            let (mut server, _) = listener.accept().unwrap();
            for _ in 0..rounds {
                server.read_exact(&mut [0]).unwrap();
                server.write_all(b"!").unwrap();
            }
        });
        tracer.snapshot()
    }

    /// One test, since its parts would count each other's calls.
    #[test]
    fn every_form_of_the_programs_passes_the_verifier_and_counts_alike() {
        if let Err(why) = available() {
            assert!(!matches!(why, UnavailableReason::Bpf(BpfError::Rejected { .. })), "{why}");
            eprintln!("SKIPPED: {why}");
            return;
        }
        let tgid = std::process::id() as i32;
        let namespace = fs::File::open("/proc/self/ns/pid").unwrap();
        let (device, inode) = sys::identity_of(&namespace).unwrap();
        let usual = Layout::new(target::possible_cpus(), 1024);
        let many_cpus = Layout { shared: true, blocks: 1, ..usual };
        let most_blocks = Layout::new(1000, usize::MAX);
        assert!(!usual.shared && most_blocks.shared);
        for layout in [usual, many_cpus, most_blocks] {
            for identity in [
                target::identity(std::process::id()).unwrap(),
                Identity::Namespaced { tgid, device, inode },
            ] {
                let counted = count_own(identity, layout, 100);
                assert_eq!(counted.requests(), 100, "{identity:?} {layout:?}");
                assert_eq!((counted.reads, counted.further_writes), (100, 0));
                assert_eq!((counted.joined_reads, counted.untracked), (0, 0));
            }
        }
        let other = Identity::Namespaced { tgid, device, inode: inode + 1 };
        assert_eq!(count_own(other, usual, 10).total_calls(), 0);
        // A descriptor beyond the slots is counted as untracked: 64 slots are the minimum.
        let files: Vec<_> = (0..70).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let few = Layout::new(1, 0);
        let counted = count_own(target::identity(std::process::id()).unwrap(), few, 10);
        assert_eq!((counted.requests(), counted.untracked >= 20), (0, true));
        drop(files);
    }
}
