//! How long softirqs take on all CPUs, by their kind.

use std::fs;

use bpf::asm::Reg::{R0, R1, R2, R6, R7, R8, R10};
use bpf::asm::{Alu, AssembleError, Assembler, Instruction, Size, When};
use bpf::{Btf, Program, Scratch, helper};
use model::{KernelHistogram, KernelQuantity};

use super::counts::{CountedSeries, Counts, OWN_STACK, address};
use super::{Running, UncountedReason};
use crate::sampler::Target;

/// Buckets that are not empty, of ten kinds.
const BUCKETS: usize = 4096;
const KEY: i16 = OWN_STACK;

type Assembled = Result<Vec<Instruction>, AssembleError>;

/// Begins to count.
pub(super) fn start(types: &Btf) -> Result<Running, UncountedReason> {
    with_buckets(types, BUCKETS)
}

fn with_buckets(types: &Btf, buckets: usize) -> Result<Running, UncountedReason> {
    let begun = Scratch::create("kvmeter_begun", 8)?;
    let counts = Counts::create(buckets)?;
    let (entry, exit) = (types.tracepoint("softirq_entry")?, types.tracepoint("softirq_exit")?);
    let programs = vec![
        Program::load("kvmeter_sirq_end", &exit, at_exit(&begun, &counts))?,
        Program::load("kvmeter_sirq", &entry, at_entry(&begun))?,
    ];
    Running::attach(programs, counts)
}

/// The histogram of a kind, which has its name in `/proc/softirqs`.
pub(super) fn named(series: &CountedSeries, _: &[Target]) -> Option<KernelHistogram> {
    let table = fs::read_to_string("/proc/softirqs").unwrap_or_default();
    let row = table.lines().nth(series.subject as usize + 1);
    let name = row.and_then(|row| Some(row.split_once(':')?.0.trim().to_owned()));
    Some(KernelHistogram {
        quantity: KernelQuantity::Softirq,
        subject: name.unwrap_or_else(|| series.subject.to_string()),
        side: None,
        operation: None,
        buckets: series.buckets.clone(),
    })
}

/// R0 = where this CPU's time is.
fn find_begin(a: &mut Assembler, begun: &Scratch) {
    a.alu(Alu::Move, R1, 0);
    a.store(R10, KEY, R1);
    a.map(R1, begun.descriptor());
    address(a, R2, KEY);
    a.call(helper::MAP_LOOKUP_ELEM);
}

fn at_entry(begun: &Scratch) -> Assembled {
    let mut a = Assembler::new();
    let done = a.label();
    a.call(helper::KTIME_GET_NS);
    a.alu(Alu::Move, R7, R0);
    find_begin(&mut a, begun);
    a.jump_if(When::Equal, R0, 0, done);
    a.store(R0, 0, R7);
    a.place(done);
    a.leave();
    a.finish()
}

fn at_exit(begun: &Scratch, counts: &Counts) -> Assembled {
    let mut a = Assembler::new();
    let done = a.label();
    a.alu(Alu::Move, R6, R1);
    find_begin(&mut a, begun);
    a.jump_if(When::Equal, R0, 0, done);
    a.load(Size::Double, R7, R0, 0);
    // 0: it began before the programs did.
    a.jump_if(When::Equal, R7, 0, done);
    a.alu(Alu::Move, R1, 0);
    a.store(R0, 0, R1);
    a.call(helper::KTIME_GET_NS);
    a.alu(Alu::Sub, R0, R7);
    a.alu(Alu::Move, R8, R0);
    a.load(Size::Double, R1, R6, 0);
    Counts::set_subject(&mut a, R1);
    a.alu(Alu::Move, R1, 0);
    Counts::set_series(&mut a, R1);
    counts.add(&mut a);
    a.place(done);
    a.leave();
    a.finish()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_a_full_table_has_no_room_for_is_lost_and_counted() {
        let started = Btf::of_kernel().map_err(UncountedReason::from);
        let running = match started.and_then(|types| with_buckets(&types, 1)) {
            Ok(running) => running,
            Err(UncountedReason::Bpf(error @ bpf::BpfError::Rejected { .. })) => panic!("{error}"),
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                return;
            }
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Until durations differ by more than a bucket.
        while running.counts.lost() == 0 {
            socket.send_to(&[0; 512], socket.local_addr().unwrap()).unwrap();
            socket.recv(&mut [0; 512]).unwrap();
        }
        let (series, lost) = running.end().unwrap();
        let [only] = series.as_slice() else { panic!("{series:?}") };
        assert!(only.buckets.len() == 1 && only.buckets[0].count > 0 && lost > 0);
    }
}
