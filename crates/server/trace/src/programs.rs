//! The two programs that run in the kernel: at the entry and at the exit of
//! every system call of the machine. Both leave after five instructions where
//! the calling process is not the traced one.
//!
//! Registers: R6 the program's arguments, R7 the number of the call (entry) or its
//! result (exit), R8 this CPU's block of tallies, R9 the slot of the descriptor.

pub(crate) mod capture;

use crate::arch::{Registers, Role, calls_of};
use bpf::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf::asm::{Alu, AssembleError, Assembler, Instruction, Label, Reg, Size, When};
use bpf::helper;

use crate::histogram::{BUCKETS, KIND};
use crate::layout::{BLOCK, Layout, SYSCALLS, slot, tally};

/// How the programs recognise the traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// by its number in the machine's initial process namespace
    Initial { tgid: i32 },
    /// by its number in the process namespace that the file `device`, `inode` stands for
    Namespaced { tgid: i32, device: u64, inode: u64 },
}

/// Parameters of both programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramPlan {
    pub identity: Identity,
    pub layout: Layout,
    pub registers: Registers,
    /// descriptors of the maps
    pub tallies: i32,
    pub slots: i32,
}

struct Writer<'a> {
    a: Assembler,
    plan: &'a ProgramPlan,
    done: Label,
}

impl<'a> Writer<'a> {
    /// Begins a program: leaves unless the traced process made the call.
    fn begin(plan: &'a ProgramPlan) -> Writer<'a> {
        let mut a = Assembler::new();
        let done = a.label();
        a.alu(Alu::Move, R6, R1);
        match plan.identity {
            Identity::Initial { tgid } => {
                a.call(helper::GET_CURRENT_PID_TGID);
                a.alu(Alu::ShiftRight, R0, 32);
                a.jump_if(When::NotEqual, R0, tgid, done);
            }
            Identity::Namespaced { tgid, device, inode } => {
                a.constant(R1, device);
                a.constant(R2, inode);
                a.alu(Alu::Move, R3, R10);
                a.alu(Alu::Add, R3, -8);
                a.alu(Alu::Move, R4, 8);
                a.call(helper::GET_NS_CURRENT_PID_TGID);
                a.jump_if(When::NotEqual, R0, 0, done);
                // struct bpf_pidns_info { pid, tgid }
                a.load(Size::Word, R0, R10, -4);
                a.jump_if(When::NotEqual, R0, tgid, done);
            }
        }
        Writer { a, plan, done }
    }

    /// R8 = the block of this CPU.
    fn find_block(&mut self) {
        let Layout { blocks, .. } = self.plan.layout;
        self.a.call(helper::GET_SMP_PROCESSOR_ID);
        self.a.alu(Alu::And, R0, blocks as i32 - 1);
        self.a.alu(Alu::Mul, R0, BLOCK as i32);
        self.a.map_value(R8, self.plan.tallies);
        self.a.alu(Alu::Add, R8, R0);
    }

    /// `*(base + offset) += R2`; R1 may be the base and is kept.
    fn add_r2(&mut self, base: Reg, offset: i16) {
        if self.plan.layout.shared {
            self.a.atomic_add(base, offset, R2);
        } else {
            self.a.load(Size::Double, R3, base, offset);
            self.a.alu(Alu::Add, R3, R2);
            self.a.store(base, offset, R3);
        }
    }

    fn add_one(&mut self, base: Reg, offset: i16) {
        self.a.alu(Alu::Move, R2, 1);
        self.add_r2(base, offset);
    }

    /// `*(R8 + offset + 8 * R1) += 1` where R1 is known to be in bounds.
    fn add_one_at_r1(&mut self, offset: i16) {
        self.a.alu(Alu::ShiftLeft, R1, 3);
        self.a.alu(Alu::Add, R1, R8);
        self.add_one(R1, offset);
    }

    /// Where R0, the number of the call, is one of the role's, goes to `label`.
    fn dispatch(&mut self, role: Role, label: Label) {
        for call in calls_of(&[role]) {
            self.a.jump_if(When::Equal, R0, call.number, label);
        }
    }

    /// R0 = the number of the call that ends.
    fn load_number(&mut self) {
        self.a.load(Size::Double, R1, R6, 0);
        let registers = self.plan.registers;
        let size = if registers.number_is_word { Size::Word } else { Size::Double };
        self.a.load(size, R0, R1, registers.number);
    }

    /// What follows the dispatch of the entry's calls: the descriptor is no longer a client's.
    fn end_connections(&mut self, close: Label, connect: Label) {
        self.a.place(close);
        self.find_slot(self.done);
        self.set_slot(slot::OTHER);
        self.leave();
        self.a.place(connect);
        self.find_slot(self.done);
        self.set_slot(slot::OUTGOING);
    }

    /// R9 = the slot of the call's first argument, or goes to `too_high`.
    fn find_slot(&mut self, too_high: Label) {
        self.a.load(Size::Double, R1, R6, 0);
        self.a.load(Size::Word, R1, R1, self.plan.registers.first_argument);
        self.find_slot_of_r1(too_high);
    }

    fn find_slot_of_r1(&mut self, too_high: Label) {
        self.a.jump_if(When::AtLeast, R1, self.plan.layout.slots as i32, too_high);
        self.a.alu(Alu::ShiftLeft, R1, 3);
        self.a.map_value(R9, self.plan.slots);
        self.a.alu(Alu::Add, R9, R1);
    }

    fn set_slot(&mut self, state: i32) {
        self.a.alu(Alu::Move, R1, state);
        self.a.store(R9, 0, R1);
    }

    fn leave(&mut self) {
        self.a.leave();
    }

    fn count_and_leave(&mut self, at: Label, counter: i16) {
        self.a.place(at);
        self.add_one(R8, counter);
        self.leave();
    }

    fn finish(mut self) -> Result<Vec<Instruction>, AssembleError> {
        self.a.place(self.done);
        self.a.leave();
        self.a.finish()
    }
}

/// At the entry of a call: counts it; a write ends the request pending on its socket.
pub(crate) fn at_entry(plan: &ProgramPlan) -> Result<Vec<Instruction>, AssembleError> {
    let mut w = Writer::begin(plan);
    let [write, further, untracked, close, connect, known] = std::array::from_fn(|_| w.a.label());
    w.find_block();
    w.a.load(Size::Double, R7, R6, 8);
    w.a.alu(Alu::Move, R1, R7);
    w.a.jump_if(When::Below, R1, SYSCALLS as i32, known);
    w.a.alu(Alu::Move, R1, SYSCALLS as i32 - 1);
    w.a.place(known);
    w.add_one_at_r1(tally::SYSCALLS);
    w.a.alu(Alu::Move, R0, R7);
    w.dispatch(Role::Write, write);
    w.dispatch(Role::Close, close);
    w.dispatch(Role::Connect, connect);
    w.leave();

    w.a.place(write);
    w.find_slot(untracked);
    w.a.load(Size::Double, R7, R9, 0);
    w.a.jump_if(When::Equal, R7, slot::IDLE, further);
    w.a.jump_if(When::Below, R7, slot::PENDING, w.done);
    w.a.call(helper::KTIME_GET_NS);
    w.set_slot(slot::IDLE);
    w.a.alu(Alu::Sub, R0, R7);
    record_r0(&mut w);
    w.leave();

    w.count_and_leave(further, tally::FURTHER_WRITES);
    w.count_and_leave(untracked, tally::UNTRACKED);

    w.end_connections(close, connect);
    w.finish()
}

/// Counts the time in R0 (ns) in the histogram and in the sum.
fn record_r0(w: &mut Writer<'_>) {
    let positive = w.a.label();
    // The clocks of two CPUs may differ by a little.
    w.a.jump_if(When::AtLeastSigned, R0, 0, positive);
    w.a.alu(Alu::Move, R0, 0);
    w.a.place(positive);
    w.a.alu(Alu::Move, R2, R0);
    w.add_r2(R8, tally::SUM_NS);
    KIND.find_bucket(&mut w.a);
    // Unreachable; required by the verifier.
    w.a.jump_if(When::AtLeast, R1, BUCKETS as i32, w.done);
    w.add_one_at_r1(tally::HISTOGRAM);
}

/// At the exit of a call: a read that brought bytes starts a request.
pub(crate) fn at_exit(plan: &ProgramPlan) -> Result<Vec<Instruction>, AssembleError> {
    let mut w = Writer::begin(plan);
    let [read, receive, accept, wait, begin, fresh, untracked] =
        std::array::from_fn(|_| w.a.label());
    w.a.load(Size::Double, R7, R6, 8);
    w.a.jump_if(When::AtMostSigned, R7, 0, w.done);
    w.load_number();
    w.dispatch(Role::Wait, wait);
    w.dispatch(Role::Read, read);
    w.dispatch(Role::Receive, receive);
    w.dispatch(Role::Accept, accept);
    w.leave();

    w.a.place(read);
    w.find_block();
    w.find_slot(untracked);
    w.a.load(Size::Double, R7, R9, 0);
    w.a.jump_if(When::Equal, R7, slot::OTHER, w.done);
    w.a.jump_if(When::NotEqual, R7, slot::OUTGOING, begin);
    w.leave();

    w.a.place(receive);
    w.find_block();
    w.find_slot(untracked);
    w.a.load(Size::Double, R7, R9, 0);
    w.a.jump_if(When::Equal, R7, slot::OUTGOING, w.done);

    w.a.place(begin);
    w.a.jump_if(When::Below, R7, slot::PENDING, fresh);
    w.add_one(R8, tally::JOINED_READS);
    w.a.place(fresh);
    w.add_one(R8, tally::READS);
    w.a.call(helper::KTIME_GET_NS);
    w.a.store(R9, 0, R0);
    w.leave();

    w.count_and_leave(untracked, tally::UNTRACKED);

    w.a.place(accept);
    w.a.alu(Alu::Move, R1, R7);
    w.find_slot_of_r1(w.done);
    w.set_slot(slot::IDLE);
    w.leave();

    w.a.place(wait);
    w.find_block();
    w.add_one(R8, tally::WAKEUPS);
    w.a.alu(Alu::Move, R2, R7);
    w.add_r2(R8, tally::READY);
    w.finish()
}
