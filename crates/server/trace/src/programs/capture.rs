//! The programs of a capture: they copy what the traced process reads from its clients' sockets
//! into a ring.
//!
//! A slot has its state in the low [`STATE_BITS`] bits and above them how many bytes were read from
//! the connection, so that a copy that was lost leaves a gap of known length.

use super::{ProgramPlan, Writer};
use crate::arch::{Call, Role, calls_of};
use bpf::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf::asm::{Alu, AssembleError, Instruction, Label, Size, When};
use bpf::helper;

use crate::layout::slot;

/// Parameters of the programs; of the layout, the tallies are the two of [`counter`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturePlan {
    pub base: ProgramPlan,
    /// Descriptors of further maps: the ring, and [`SCRATCH`] bytes a CPU.
    pub ring: i32,
    pub scratch: i32,
}

/// Byte offsets in an event, before its bytes.
pub(crate) mod event {
    pub const AT_NS: i16 = 0;
    pub const DESCRIPTOR: i16 = 8;
    /// Bytes of the connection before these.
    pub const POSITION: i16 = 16;
    /// Bytes that were read in the low half (0: the connection begins), of these copied in the
    /// high half.
    pub const LENGTHS: i16 = 24;
    pub const HEADER: usize = 32;
}

/// Byte offsets of the counters.
pub(crate) mod counter {
    /// Events for which the ring had no room.
    pub const LOST: i16 = 0;
    /// Events of descriptors too high to be followed.
    pub const UNTRACKED: i16 = 8;
    pub const BYTES: usize = 16;
}

/// The most bytes that are copied of one read; memcached and Redis read requests in blocks of as
/// many.
pub(crate) const MOST_BYTES: i32 = 16 << 10;
pub(crate) const SCRATCH: usize = event::HEADER + MOST_BYTES as usize;

const STATE_BITS: i32 = 2;
const STATE: i32 = (1 << STATE_BITS) - 1;

/// What the second argument of a call points to.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Buffer {
    Bytes,
    /// An array of `struct iovec`, of which the first is copied.
    Vector,
    /// `struct msghdr`.
    Message,
}

/// Where in `struct msghdr` the pointer to its vector is.
const MESSAGE_VECTOR: i32 = 16;

/// `BPF_RB_NO_WAKEUP`: the reader looks by itself, so that the server wakes nobody.
const NO_WAKEUP: i32 = 1;

/// Places on the stack, as offsets from the frame pointer.
mod stack {
    /// A `struct iovec`.
    pub const VECTOR: i16 = -16;
    pub const LIMIT: i16 = -24;
    pub const DESCRIPTOR: i16 = -32;
    pub const POSITION: i16 = -40;
    pub const KEY: i16 = -48;
    /// An event without bytes.
    pub const EVENT: i16 = -80;
}

fn buffer_of(call: Call) -> Option<Buffer> {
    match call.name {
        "read" | "recvfrom" => Some(Buffer::Bytes),
        "readv" => Some(Buffer::Vector),
        "recvmsg" => Some(Buffer::Message),
        // `recvmmsg` is of datagrams.
        _ => None,
    }
}

/// At the entry of a call: a descriptor is closed, or becomes a connection to another server.
pub(crate) fn at_entry(plan: &CapturePlan) -> Result<Vec<Instruction>, AssembleError> {
    let mut w = Writer::begin(&plan.base);
    let [close, connect] = std::array::from_fn(|_| w.a.label());
    w.a.load(Size::Double, R0, R6, 8);
    w.dispatch(Role::Close, close);
    w.dispatch(Role::Connect, connect);
    w.leave();
    w.end_connections(close, connect);
    w.finish()
}

/// At the exit of a call: bytes were read, or a connection was accepted.
pub(crate) fn at_exit(plan: &CapturePlan) -> Result<Vec<Instruction>, AssembleError> {
    let mut w = Writer::begin(&plan.base);
    let [accept, read, receive, copy, untracked, lost] = std::array::from_fn(|_| w.a.label());
    w.a.load(Size::Double, R7, R6, 8);
    w.a.jump_if(When::AtMostSigned, R7, 0, w.done);
    w.load_number();
    dispatch_reads(&mut w, Role::Read, read);
    dispatch_reads(&mut w, Role::Receive, receive);
    w.dispatch(Role::Accept, accept);
    w.leave();

    w.a.place(read);
    w.find_slot(untracked);
    load_state(&mut w);
    w.a.jump_if(When::NotEqual, R2, slot::IDLE, w.done);
    w.a.jump(copy);

    w.a.place(receive);
    w.find_slot(untracked);
    load_state(&mut w);
    w.a.jump_if(When::Equal, R2, slot::OUTGOING, w.done);
    w.a.jump_if(When::Equal, R2, slot::IDLE, copy);
    w.set_slot(slot::IDLE);

    w.a.place(copy);
    take_position(&mut w);
    find_source(&mut w);
    copy_bytes(&mut w, plan);
    w.a.jump_if(When::NotEqual, R0, 0, lost);
    w.leave();

    w.a.place(accept);
    w.a.alu(Alu::Move, R1, R7);
    w.find_slot_of_r1(untracked);
    w.set_slot(slot::IDLE);
    announce(&mut w, plan);
    w.a.jump_if(When::NotEqual, R0, 0, lost);
    w.leave();

    for (label, offset) in [(untracked, counter::UNTRACKED), (lost, counter::LOST)] {
        w.a.place(label);
        w.a.map_value(R1, plan.base.tallies);
        w.a.alu(Alu::Move, R2, 1);
        w.a.atomic_add(R1, offset, R2);
        w.leave();
    }
    w.finish()
}

/// Where R0 is one of the role's calls: R8 = its [`Buffer`], and goes to `label`.
fn dispatch_reads(w: &mut Writer<'_>, role: Role, label: Label) {
    for call in calls_of(&[role]) {
        let Some(buffer) = buffer_of(call) else { continue };
        let next = w.a.label();
        w.a.jump_if(When::NotEqual, R0, call.number, next);
        w.a.alu(Alu::Move, R8, buffer as i32);
        w.a.jump(label);
        w.a.place(next);
    }
}

/// R2 = the state in the slot at R9.
fn load_state(w: &mut Writer<'_>) {
    w.a.load(Size::Double, R2, R9, 0);
    w.a.alu(Alu::And, R2, STATE);
}

/// Notes descriptor and position of R7 bytes on the stack, and adds them to the slot.
fn take_position(w: &mut Writer<'_>) {
    w.a.load(Size::Double, R1, R9, 0);
    w.a.alu(Alu::Move, R2, R1);
    w.a.alu(Alu::ShiftRight, R2, STATE_BITS);
    w.a.store(R10, stack::POSITION, R2);
    w.a.alu(Alu::Move, R2, R7);
    w.a.alu(Alu::ShiftLeft, R2, STATE_BITS);
    w.a.alu(Alu::Add, R1, R2);
    w.a.store(R9, 0, R1);
    w.a.load(Size::Double, R1, R6, 0);
    w.a.load(Size::Word, R1, R1, w.plan.registers.first_argument);
    w.a.store(R10, stack::DESCRIPTOR, R1);
}

/// R8 = the address of the bytes, and on the stack how many may be there.
fn find_source(w: &mut Writer<'_>) {
    let [vector, found] = std::array::from_fn(|_| w.a.label());
    w.a.load(Size::Double, R1, R6, 0);
    w.a.load(Size::Double, R3, R1, w.plan.registers.second_argument);
    w.a.alu(Alu::Move, R1, MOST_BYTES);
    w.a.store(R10, stack::LIMIT, R1);
    w.a.jump_if(When::Equal, R8, Buffer::Bytes as i32, found);
    w.a.jump_if(When::Equal, R8, Buffer::Vector as i32, vector);
    w.a.alu(Alu::Add, R3, MESSAGE_VECTOR);
    read_user(w, 8);
    w.a.load(Size::Double, R3, R10, stack::VECTOR);
    w.a.place(vector);
    read_user(w, 16);
    w.a.load(Size::Double, R3, R10, stack::VECTOR);
    w.a.load(Size::Double, R1, R10, stack::VECTOR + 8);
    w.a.store(R10, stack::LIMIT, R1);
    w.a.place(found);
    w.a.alu(Alu::Move, R8, R3);
}

/// Copies so many bytes at R3 of the process to the stack, or leaves.
fn read_user(w: &mut Writer<'_>, bytes: i32) {
    w.a.alu(Alu::Move, R1, R10);
    w.a.alu(Alu::Add, R1, i32::from(stack::VECTOR));
    w.a.alu(Alu::Move, R2, bytes);
    w.a.call(helper::PROBE_READ_USER);
    w.a.jump_if(When::NotEqual, R0, 0, w.done);
}

/// Makes an event of R7 bytes at R8 and puts it into the ring; R0 is not 0 where there is no room.
fn copy_bytes(w: &mut Writer<'_>, plan: &CapturePlan) {
    let [within_limit, within_most, copied] = std::array::from_fn(|_| w.a.label());
    // The scratch memory of this CPU: preemption is off.
    w.a.alu(Alu::Move, R1, 0);
    w.a.store(R10, stack::KEY, R1);
    w.a.map(R1, plan.scratch);
    w.a.alu(Alu::Move, R2, R10);
    w.a.alu(Alu::Add, R2, i32::from(stack::KEY));
    w.a.call(helper::MAP_LOOKUP_ELEM);
    w.a.jump_if(When::Equal, R0, 0, w.done);
    w.a.alu(Alu::Move, R9, R0);
    w.a.call(helper::KTIME_GET_NS);
    w.a.store(R9, event::AT_NS, R0);
    for (from, to) in [(stack::DESCRIPTOR, event::DESCRIPTOR), (stack::POSITION, event::POSITION)] {
        w.a.load(Size::Double, R1, R10, from);
        w.a.store(R9, to, R1);
    }
    w.a.alu(Alu::Move, R2, R7);
    w.a.load(Size::Double, R1, R10, stack::LIMIT);
    w.a.jump_if(When::Below, R2, R1, within_limit);
    w.a.alu(Alu::Move, R2, R1);
    w.a.place(within_limit);
    w.a.jump_if(When::Below, R2, MOST_BYTES, within_most);
    w.a.alu(Alu::Move, R2, MOST_BYTES);
    w.a.place(within_most);
    w.a.alu(Alu::Move, R6, R2);
    w.a.alu(Alu::Move, R1, R6);
    w.a.alu(Alu::ShiftLeft, R1, 32);
    w.a.alu(Alu::Or, R1, R7);
    w.a.store(R9, event::LENGTHS, R1);
    w.a.alu(Alu::Move, R1, R9);
    w.a.alu(Alu::Add, R1, event::HEADER as i32);
    w.a.alu(Alu::Move, R3, R8);
    w.a.call(helper::PROBE_READ_USER);
    w.a.jump_if(When::Equal, R0, 0, copied);
    // A page of them is not in memory.
    w.a.store(R9, event::LENGTHS, R7);
    w.a.alu(Alu::Move, R6, 0);
    w.a.place(copied);
    w.a.alu(Alu::Move, R3, R6);
    w.a.alu(Alu::Add, R3, event::HEADER as i32);
    w.a.alu(Alu::Move, R2, R9);
    put_in_ring(w, plan);
}

/// Puts the event "descriptor R7 is a new connection" into the ring.
fn announce(w: &mut Writer<'_>, plan: &CapturePlan) {
    w.a.call(helper::KTIME_GET_NS);
    w.a.store(R10, stack::EVENT + event::AT_NS, R0);
    w.a.store(R10, stack::EVENT + event::DESCRIPTOR, R7);
    w.a.alu(Alu::Move, R1, 0);
    w.a.store(R10, stack::EVENT + event::POSITION, R1);
    w.a.store(R10, stack::EVENT + event::LENGTHS, R1);
    w.a.alu(Alu::Move, R2, R10);
    w.a.alu(Alu::Add, R2, i32::from(stack::EVENT));
    w.a.alu(Alu::Move, R3, event::HEADER as i32);
    put_in_ring(w, plan);
}

/// Puts R3 bytes at R2 into the ring.
fn put_in_ring(w: &mut Writer<'_>, plan: &CapturePlan) {
    w.a.map(R1, plan.ring);
    w.a.alu(Alu::Move, R4, NO_WAKEUP);
    w.a.call(helper::RINGBUF_OUTPUT);
}
