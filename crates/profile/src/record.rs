//! The records of a ring, `include/uapi/linux/perf_event.h`.

use crate::sys::REGISTER_COUNT;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
/// `PERF_RECORD_MISC_SWITCH_OUT`, `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// From here on an entry of a call chain is a mark, such as "inside the kernel".
const MARKS: u64 = -4095i64 as u64;

/// One record of interest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PerfRecord<'a> {
    Sample(Sample<'a>),
    /// A thread got a CPU, or left it: preempted or not.
    Switch {
        at: u64,
        pid: u32,
        thread: u32,
        out: Option<bool>,
    },
    /// So many records had no room.
    Lost(u64),
    Other,
}

/// A sample of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    pub pid: u32,
    pub thread: u32,
    /// By `CLOCK_MONOTONIC`, nanoseconds.
    pub at: u64,
    /// For how many events it stands.
    pub period: u64,
    /// Addresses inside the kernel, the innermost first.
    pub kernel: Vec<u64>,
    /// Registers of the program, in the order of their numbers; none of a kernel's thread.
    pub registers: Option<[u64; REGISTER_COUNT]>,
    /// From the stack pointer upwards.
    pub stack: &'a [u8],
}

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'a> PerfRecord<'a> {
    /// Of bytes with their header; what is cut is [`PerfRecord::Other`].
    pub fn of(bytes: &'a [u8]) -> PerfRecord<'a> {
        let kind = bytes.first_chunk().map_or(0, |kind| u32::from_ne_bytes(*kind));
        let misc = bytes.get(4..6).and_then(|misc| misc.first_chunk());
        let misc = misc.map_or(0, |misc| u16::from_ne_bytes(*misc));
        let mut words = Words(bytes.get(8..).unwrap_or_default());
        let read = match kind {
            SAMPLE => sample(&mut words).map(PerfRecord::Sample),
            SWITCH => switch(&mut words, misc),
            // An identity, and the count.
            LOST => words.word().and_then(|_| words.word()).map(PerfRecord::Lost),
            _ => None,
        };
        read.unwrap_or(PerfRecord::Other)
    }
}

/// What `sample_id_all` appends.
fn switch<'a>(words: &mut Words<'_>, misc: u16) -> Option<PerfRecord<'a>> {
    let (process, at) = (words.word()?, words.word()?);
    let out = (misc & OUT != 0).then_some(misc & PREEMPTED != 0);
    Some(PerfRecord::Switch { at, pid: process as u32, thread: (process >> 32) as u32, out })
}

fn sample<'a>(words: &mut Words<'a>) -> Option<Sample<'a>> {
    let _address = words.word()?;
    let process = words.word()?;
    let (pid, thread) = (process as u32, (process >> 32) as u32);
    let (at, period) = (words.word()?, words.word()?);
    let depth = words.word()? as usize;
    let mut kernel = Vec::new();
    for _ in 0..depth {
        let address = words.word()?;
        if address < MARKS {
            kernel.push(address);
        }
    }
    let has_registers = words.word()? != 0;
    let mut registers = [0; REGISTER_COUNT];
    if has_registers {
        for register in &mut registers {
            *register = words.word()?;
        }
    }
    let size = words.word()? as usize;
    let mut stack = words.bytes(size)?;
    if size > 0 {
        // How many of the bytes were there.
        stack = stack.get(..words.word()? as usize)?;
    }
    let registers = has_registers.then_some(registers);
    Some(Sample { pid, thread, at, period, kernel, registers, stack })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64], stack: &[u8], seen: u64) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[0; 4]);
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
        bytes.extend_from_slice(stack);
        bytes.extend_from_slice(&seen.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_sample_has_chain_registers_and_stack() {
        let mut words = vec![7, 42 | 43 << 32, 999, 3, 3, -128i64 as u64, 100, 200, 2];
        words.extend((1..).take(REGISTER_COUNT));
        words.push(16);
        let bytes = record(SAMPLE, &words, &[9; 16], 8);
        let PerfRecord::Sample(sample) = PerfRecord::of(&bytes) else { panic!() };
        assert_eq!(
            (sample.pid, &sample.kernel[..], sample.stack),
            (42, &[100, 200][..], &[9; 8][..])
        );
        assert_eq!((sample.thread, sample.at, sample.period), (43, 999, 3));
        assert_eq!(sample.registers.map(|registers| registers[0]), Some(1));
        for length in 0..bytes.len() {
            assert_eq!(PerfRecord::of(&bytes[..length]), PerfRecord::Other);
        }
        assert_eq!(PerfRecord::of(&record(LOST, &[1], &[], 5)), PerfRecord::Lost(5));
        let mut switch = record(SWITCH, &[42 | 43 << 32], &[], 777);
        let (at, pid, thread) = (777, 42, 43);
        let is = |out| PerfRecord::Switch { at, pid, thread, out };
        assert_eq!(PerfRecord::of(&switch), is(None));
        switch[5] = 0x20;
        assert_eq!(PerfRecord::of(&switch), is(Some(false)));
        switch[5] = 0x60;
        assert_eq!(PerfRecord::of(&switch), is(Some(true)));
    }
}
