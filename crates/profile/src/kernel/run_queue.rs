//! How long threads of the profiled processes wait for a CPU: from their wake-up, or from when
//! another thread got their CPU, until they run.

use std::fs;
use std::os::unix::fs::MetadataExt;

use bpf::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf::asm::{Alu, AssembleError, Assembler, Instruction, Label, Size, When};
use bpf::{Argument, BpfError, Btf, Field, HashMap, Program, Tracepoint, helper};
use model::{KernelHistogram, KernelQuantity};

use super::counts::{CountedSeries, Counts, OWN_STACK, address};
use super::{Running, UncountedReason};
use crate::sampler::Target;

/// Threads that wait at the same time.
const WAITING: usize = 16_384;
/// Buckets that are not empty, for each process: of 528 that there are.
const BUCKETS: usize = 512;
/// Inode of the machine's first process namespace, `PROC_PID_INIT_INO` of Linux.
const INITIAL_NAMESPACE: u64 = 0xeffffffc;
/// Places on the stack: a thread's number, a time.
const THREAD: i16 = OWN_STACK;
const TIME: i16 = OWN_STACK - 8;

/// What the programs need to know.
struct Plan<'a> {
    task: TaskFields,
    processes: Vec<u32>,
    without: &'a [u32],
    waiting: &'a HashMap,
    counts: &'a Counts,
}

/// Fields of `struct task_struct`.
struct TaskFields {
    thread: Field,
    process: Field,
    state: StateSource,
}

/// From where it is known in which state a thread leaves its CPU.
enum StateSource {
    /// The tracepoint's argument with this offset.
    Argument(i16),
    /// A field, before Linux 5.18.
    Field(Field),
}

/// Begins to count.
pub(super) fn start(
    types: &Btf,
    targets: &[Target],
    without: &[u32],
) -> Result<Running, UncountedReason> {
    let initial = fs::metadata("/proc/self/ns/pid");
    if initial.is_ok_and(|namespace| namespace.ino() != INITIAL_NAMESPACE) {
        return Err(UncountedReason::Namespace);
    }
    let waiting = HashMap::create("kvmeter_waiting", 4, 8, WAITING)?;
    let counts = Counts::create(BUCKETS * targets.len().max(1))?;
    let switch = types.tracepoint("sched_switch")?;
    let member = |name| types.member("task_struct", name);
    let task = TaskFields {
        thread: member("pid")?,
        process: member("tgid")?,
        state: match switch.arguments.iter().position(|a| *a == Argument::Number(4)) {
            Some(place) => StateSource::Argument(place as i16 * 8),
            None => StateSource::Field(member("__state").or_else(|_| member("state"))?),
        },
    };
    let plan = Plan {
        task,
        processes: targets.iter().map(|target| target.pid).collect(),
        without,
        waiting: &waiting,
        counts: &counts,
    };
    let mut programs = vec![Program::load("kvmeter_switch", &switch, plan.at_switch(&switch)?)?];
    for name in ["sched_wakeup", "sched_wakeup_new"] {
        let tracepoint = types.tracepoint(name)?;
        programs.push(Program::load("kvmeter_wake", &tracepoint, plan.at_wake_up(&tracepoint)?)?);
    }
    Running::attach(programs, counts)
}

/// The histogram of a process.
pub(super) fn named(series: &CountedSeries, targets: &[Target]) -> Option<KernelHistogram> {
    let target = targets.get(series.subject as usize)?;
    Some(KernelHistogram {
        quantity: KernelQuantity::RunQueue,
        subject: target.name.clone(),
        side: Some(target.side),
        operation: None,
        buckets: series.buckets.clone(),
    })
}

fn task_argument(tracepoint: &Tracepoint, nth: usize) -> Result<i16, BpfError> {
    let place = tracepoint.structure("task_struct", nth);
    let missing = || BpfError::NoField("task_struct among a tracepoint's arguments".to_owned());
    Ok(place.ok_or_else(missing)? as i16 * 8)
}

type Assembled = Result<Vec<Instruction>, AssembleError>;

impl Plan<'_> {
    fn at_wake_up(&self, tracepoint: &Tracepoint) -> Result<Assembled, BpfError> {
        let mut a = Assembler::new();
        a.load(Size::Double, R7, R1, task_argument(tracepoint, 0)?);
        self.begin_wait(&mut a);
        a.leave();
        Ok(a.finish())
    }

    fn at_switch(&self, tracepoint: &Tracepoint) -> Result<Assembled, BpfError> {
        let mut a = Assembler::new();
        let [preempted, next, done] = std::array::from_fn(|_| a.label());
        a.alu(Alu::Move, R6, R1);
        let (before, after) = (task_argument(tracepoint, 0)?, task_argument(tracepoint, 1)?);
        // The first argument says whether the thread leaves without having wanted to.
        a.load(Size::Double, R1, R6, 0);
        a.jump_if(When::NotEqual, R1, 0, preempted);
        match self.task.state {
            StateSource::Argument(offset) => a.load(Size::Double, R1, R6, offset),
            StateSource::Field(Field { offset, bytes }) => {
                a.load(Size::Double, R1, R6, before);
                let size = if bytes == 8 { Size::Double } else { Size::Word };
                a.load(size, R1, R1, offset);
            }
        }
        // 0: it could run on.
        a.jump_if(When::NotEqual, R1, 0, next);
        a.place(preempted);
        a.load(Size::Double, R7, R6, before);
        self.begin_wait(&mut a);
        a.place(next);
        a.load(Size::Double, R7, R6, after);
        self.find_process(&mut a, done);
        a.load(Size::Word, R1, R7, self.task.thread.offset);
        a.store_sized(Size::Word, R10, THREAD, R1);
        self.with_thread(&mut a, helper::MAP_LOOKUP_ELEM);
        a.jump_if(When::Equal, R0, 0, done);
        a.load(Size::Double, R8, R0, 0);
        a.call(helper::KTIME_GET_NS);
        a.alu(Alu::Sub, R0, R8);
        a.alu(Alu::Move, R8, R0);
        self.with_thread(&mut a, helper::MAP_DELETE_ELEM);
        Counts::set_subject(&mut a, R9);
        a.alu(Alu::Move, R1, 0);
        Counts::set_series(&mut a, R1);
        self.counts.add(&mut a);
        a.place(done);
        a.leave();
        Ok(a.finish())
    }

    /// Notes that the thread in R7 waits for a CPU from now on, if it is of a profiled process.
    fn begin_wait(&self, a: &mut Assembler) {
        let other = a.label();
        self.find_process(a, other);
        a.load(Size::Word, R1, R7, self.task.thread.offset);
        for thread in self.without {
            a.jump_if(When::Equal, R1, *thread as i32, other);
        }
        a.store_sized(Size::Word, R10, THREAD, R1);
        a.call(helper::KTIME_GET_NS);
        a.store(R10, TIME, R0);
        a.map(R1, self.waiting.descriptor());
        address(a, R2, THREAD);
        address(a, R3, TIME);
        a.alu(Alu::Move, R4, 0);
        a.call(helper::MAP_UPDATE_ELEM);
        a.jump_if(When::Equal, R0, 0, other);
        self.counts.add_lost(a);
        a.place(other);
    }

    /// R9 = the place of the process of the thread in R7 among those that are profiled, or goes to
    /// `other`.
    fn find_process(&self, a: &mut Assembler, other: Label) {
        let found = a.label();
        a.load(Size::Word, R8, R7, self.task.process.offset);
        for (place, process) in self.processes.iter().enumerate() {
            a.alu(Alu::Move, R9, place as i32);
            a.jump_if(When::Equal, R8, *process as i32, found);
        }
        a.jump(other);
        a.place(found);
    }

    fn with_thread(&self, a: &mut Assembler, helper: i32) {
        a.map(R1, self.waiting.descriptor());
        address(a, R2, THREAD);
        a.call(helper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That for kernels that do not pass the state, on a kernel that does.
    #[test]
    fn the_program_for_older_kernels_passes_the_verifier() {
        let loaded = || {
            let types = Btf::of_kernel()?;
            let waiting = HashMap::create("kvmeter_waiting", 4, 8, 16)?;
            let counts = Counts::create(16)?;
            let member = |name| types.member("task_struct", name);
            let state = member("__state").or_else(|_| member("state"))?;
            let (thread, process) = (member("pid")?, member("tgid")?);
            let plan = Plan {
                task: TaskFields { thread, process, state: StateSource::Field(state) },
                processes: vec![1, 2],
                without: &[3],
                waiting: &waiting,
                counts: &counts,
            };
            let switch = types.tracepoint("sched_switch")?;
            Program::load("kvmeter_switch", &switch, plan.at_switch(&switch)?)
        };
        match loaded() {
            Ok(_) => {}
            Err(why @ (BpfError::Rejected { .. } | BpfError::NoField(_))) => panic!("{why}"),
            Err(why) => eprintln!("SKIPPED: {why}"),
        }
    }
}
