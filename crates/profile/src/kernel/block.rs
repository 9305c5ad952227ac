//! How long requests to block devices wait until they are given to the device, how long they take
//! from there until they are complete, and how large they are. Of the whole machine: the kernel
//! writes for many.

use std::fs;

use bpf::asm::Reg::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use bpf::asm::{Alu, AssembleError, Assembler, Instruction, Size, When};
use bpf::{Argument, BpfError, Btf, Field, HashMap, Program, Tracepoint, helper};
use model::{BlockOperation, KernelHistogram, KernelQuantity};

use super::counts::{CountedSeries, Counts, OWN_STACK, address};
use super::{Running, UncountedReason};
use crate::sampler::Target;

/// Requests in the devices at the same time.
const IN_FLIGHT: usize = 16_384;
/// Buckets that are not empty, of all devices.
const BUCKETS: usize = 8192;
/// `REQ_OP_MASK`: the lower 8 bits of a request's flags are the operation (since Linux 4.10).
const OPERATION_MASK: i32 = 0xff;
/// Operations from here on are counted as others; those below are as in `enum req_op`.
const OTHER: i32 = 4;
const OPERATIONS: [BlockOperation; 5] = [
    BlockOperation::Read,
    BlockOperation::Write,
    BlockOperation::Flush,
    BlockOperation::Discard,
    BlockOperation::Other,
];
/// Series are operations, those of sizes and of waits with these bits.
const SIZES: u32 = 1 << 8;
const WAITS: u32 = 1 << 9;
/// `MINORBITS` of the kernel's device numbers.
const MINOR_BITS: u32 = 20;
/// Places on the stack: a request's address, then its entry in the table, which is a time and a
/// size, then how long it took.
const REQUEST: i16 = OWN_STACK;
const BYTES: i16 = OWN_STACK - 8;
const TIME: i16 = OWN_STACK - 16;
const TOOK: i16 = OWN_STACK - 24;

/// Fields of `struct request` and of what it points to.
struct RequestFields {
    bytes: Field,
    flags: Field,
    /// When it was made, on the clock of `bpf_ktime_get_ns`; 0 where the kernel keeps no statistics
    /// of the device.
    made: Field,
    /// From one structure to the next, until the disk.
    disk: Vec<Field>,
    major: Field,
    first_minor: Field,
}

struct Plan<'a> {
    request: RequestFields,
    in_flight: &'a HashMap,
    counts: &'a Counts,
}

/// Begins to count.
pub(super) fn start(types: &Btf) -> Result<Running, UncountedReason> {
    let in_flight = HashMap::create("kvmeter_requests", 8, 16, IN_FLIGHT)?;
    let counts = Counts::create(BUCKETS)?;
    let member = |name| types.member("request", name);
    let disk = match types.member("request_queue", "disk") {
        Ok(disk) => vec![member("q")?, disk],
        // Before Linux 5.15.
        Err(_) => vec![member("rq_disk")?],
    };
    let request = RequestFields {
        bytes: member("__data_len")?,
        flags: member("cmd_flags")?,
        made: member("start_time_ns")?,
        disk,
        major: types.member("gendisk", "major")?,
        first_minor: types.member("gendisk", "first_minor")?,
    };
    let plan = Plan { request, in_flight: &in_flight, counts: &counts };
    let (issue, complete) =
        (types.tracepoint("block_rq_issue")?, types.tracepoint("block_rq_complete")?);
    let programs = vec![
        Program::load("kvmeter_complete", &complete, plan.at_completion(&complete)?)?,
        Program::load("kvmeter_issue", &issue, plan.at_issue(&issue)?)?,
    ];
    Running::attach(programs, counts)
}

/// The histogram of a device and an operation; flushes have no size.
pub(super) fn named(series: &CountedSeries, _: &[Target]) -> Option<KernelHistogram> {
    let operation = *OPERATIONS.get((series.series & (SIZES - 1)) as usize)?;
    let quantity = match series.series & (SIZES | WAITS) {
        0 => KernelQuantity::BlockLatency,
        WAITS => KernelQuantity::BlockWait,
        _ if operation == BlockOperation::Flush => return None,
        _ => KernelQuantity::BlockSize,
    };
    let (major, minor) = (series.subject >> MINOR_BITS, series.subject & ((1 << MINOR_BITS) - 1));
    let number = format!("{major}:{minor}");
    let folder = fs::read_link(format!("/sys/dev/block/{number}")).ok();
    let name = folder.and_then(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
    Some(KernelHistogram {
        quantity,
        subject: name.unwrap_or(number),
        side: None,
        operation: Some(operation),
        buckets: series.buckets.clone(),
    })
}

fn request_argument(tracepoint: &Tracepoint) -> Result<usize, BpfError> {
    let missing = || BpfError::NoField("request among a tracepoint's arguments".to_owned());
    tracepoint.structure("request", 0).ok_or_else(missing)
}

type Assembled = Result<Vec<Instruction>, AssembleError>;

impl Plan<'_> {
    fn at_issue(&self, tracepoint: &Tracepoint) -> Result<Assembled, BpfError> {
        let mut a = Assembler::new();
        let [noted, done] = std::array::from_fn(|_| a.label());
        a.load(Size::Double, R7, R1, request_argument(tracepoint)? as i16 * 8);
        a.jump_if(When::Equal, R7, 0, done);
        a.store(R10, REQUEST, R7);
        a.load(Size::Word, R1, R7, self.request.bytes.offset);
        a.store(R10, BYTES, R1);
        a.call(helper::KTIME_GET_NS);
        a.store(R10, TIME, R0);
        a.map(R1, self.in_flight.descriptor());
        address(&mut a, R2, REQUEST);
        address(&mut a, R3, TIME);
        a.alu(Alu::Move, R4, 0);
        a.call(helper::MAP_UPDATE_ELEM);
        a.jump_if(When::Equal, R0, 0, noted);
        self.counts.add_lost(&mut a);
        a.place(noted);
        a.load(Size::Double, R1, R7, self.request.made.offset);
        a.jump_if(When::Equal, R1, 0, done);
        a.load(Size::Double, R8, R10, TIME);
        a.alu(Alu::Sub, R8, R1);
        self.load_operation(&mut a);
        self.set_device(&mut a);
        a.alu(Alu::Add, R9, WAITS as i32);
        Counts::set_series(&mut a, R9);
        self.counts.add(&mut a);
        a.place(done);
        a.leave();
        Ok(a.finish())
    }

    fn at_completion(&self, tracepoint: &Tracepoint) -> Result<Assembled, BpfError> {
        let request = request_argument(tracepoint)?;
        let numbers = tracepoint.arguments.iter().rposition(|a| *a == Argument::Number(4));
        let missing = || BpfError::NoField("size among a tracepoint's arguments".to_owned());
        let completed = numbers.ok_or_else(missing)?;
        let mut a = Assembler::new();
        let done = a.label();
        a.alu(Alu::Move, R6, R1);
        a.load(Size::Double, R7, R6, request as i16 * 8);
        a.jump_if(When::Equal, R7, 0, done);
        // A part of it; the rest comes later.
        a.load(Size::Double, R1, R6, completed as i16 * 8);
        a.load(Size::Word, R2, R7, self.request.bytes.offset);
        a.jump_if(When::Below, R1, R2, done);
        a.store(R10, REQUEST, R7);
        self.with_request(&mut a, helper::MAP_LOOKUP_ELEM);
        a.jump_if(When::Equal, R0, 0, done);
        a.load(Size::Double, R8, R0, 0);
        a.load(Size::Double, R9, R0, 8);
        a.store(R10, BYTES, R9);
        a.call(helper::KTIME_GET_NS);
        a.alu(Alu::Sub, R0, R8);
        a.store(R10, TOOK, R0);
        self.with_request(&mut a, helper::MAP_DELETE_ELEM);
        self.load_operation(&mut a);
        self.set_device(&mut a);
        for (bit, value) in [(0, TOOK), (SIZES, BYTES)] {
            a.alu(Alu::Move, R1, R9);
            a.alu(Alu::Add, R1, bit as i32);
            Counts::set_series(&mut a, R1);
            a.load(Size::Double, R8, R10, value);
            self.counts.add(&mut a);
        }
        a.place(done);
        a.leave();
        Ok(a.finish())
    }

    /// R9 = what the request in R7 does.
    fn load_operation(&self, a: &mut Assembler) {
        let known = a.label();
        a.load(Size::Word, R9, R7, self.request.flags.offset);
        a.alu(Alu::And, R9, OPERATION_MASK);
        a.jump_if(When::Below, R9, OTHER, known);
        a.alu(Alu::Move, R9, OTHER);
        a.place(known);
    }

    /// The subject is the number of the device of the request in R7.
    fn set_device(&self, a: &mut Assembler) {
        a.alu(Alu::Move, R1, R7);
        for field in &self.request.disk {
            a.load(Size::Double, R1, R1, field.offset);
        }
        a.load(Size::Word, R2, R1, self.request.major.offset);
        a.load(Size::Word, R3, R1, self.request.first_minor.offset);
        a.alu(Alu::ShiftLeft, R2, MINOR_BITS as i32);
        a.alu(Alu::Add, R2, R3);
        Counts::set_subject(a, R2);
    }

    fn with_request(&self, a: &mut Assembler, helper: i32) {
        a.map(R1, self.in_flight.descriptor());
        address(a, R2, REQUEST);
        a.call(helper);
    }
}
