//! The table of buckets that programs fill: a key for each bucket that something fell into, each
//! CPU with its own count and sum.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bpf::asm::Reg::{R0, R1, R2, R3, R4, R8, R10};
use bpf::asm::{Alu, Assembler, Reg, Size, When};
use bpf::{BpfError, HashMap, LogLinear, SharedMemory, helper};
use model::KernelBucket;

/// A bucket is at most 1/16 of its value wide.
const KIND: LogLinear = LogLinear::new(4);
const KEY_BYTES: usize = 8;
/// How many, and their sum.
const VALUE_BYTES: usize = 16;
/// The lower part of a selector is the bucket.
const SERIES_SHIFT: i32 = 16;
/// Add a new entry only.
const NO_EXIST: i32 = 1;

/// Places on a program's stack that [`Counts::add`] uses, below its frame pointer; programs have
/// theirs from [`stack::OWN`] on downwards.
mod stack {
    pub const SERIES: i16 = -8;
    pub const SELECTOR: i16 = -12;
    pub const SUBJECT: i16 = -16;
    pub const ZEROS: i16 = -32;
    pub const OWN: i16 = -40;
}

/// The first place on a stack that is a program's own; further ones are 8 bytes lower each.
pub(super) const OWN_STACK: i16 = stack::OWN;

/// What was counted of one subject and series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CountedSeries {
    pub subject: u32,
    pub series: u32,
    /// The lowest first.
    pub buckets: Vec<KernelBucket>,
}

/// Histograms by subject and series, and how many events had no room.
pub(super) struct Counts {
    table: HashMap,
    lost: SharedMemory,
}

impl Counts {
    /// Room for so many buckets that are not empty.
    pub fn create(buckets: usize) -> Result<Counts, BpfError> {
        let table = HashMap::per_cpu("kvmeter_counts", KEY_BYTES, VALUE_BYTES, buckets)?;
        Ok(Counts { table, lost: SharedMemory::create("kvmeter_lost", 8)? })
    }

    /// Says which subject the next values are of.
    pub fn set_subject(a: &mut Assembler, subject: Reg) {
        a.store_sized(Size::Word, R10, stack::SUBJECT, subject);
    }

    /// Says which series the next values are of; changes `series`, which must be below 32,768.
    pub fn set_series(a: &mut Assembler, series: Reg) {
        a.alu(Alu::ShiftLeft, series, SERIES_SHIFT);
        a.store(R10, stack::SERIES, series);
    }

    /// Counts the value in R8, negative ones as 0; changes R0 to R5.
    pub fn add(&self, a: &mut Assembler) {
        let [positive, found, end] = std::array::from_fn(|_| a.label());
        // The clocks of two CPUs may differ by a little.
        a.jump_if(When::AtLeastSigned, R8, 0, positive);
        a.alu(Alu::Move, R8, 0);
        a.place(positive);
        a.alu(Alu::Move, R0, R8);
        KIND.find_bucket(a);
        a.load(Size::Double, R2, R10, stack::SERIES);
        a.alu(Alu::Add, R1, R2);
        a.store_sized(Size::Word, R10, stack::SELECTOR, R1);
        self.look_up(a);
        a.jump_if(When::NotEqual, R0, 0, found);
        a.alu(Alu::Move, R1, 0);
        a.store(R10, stack::ZEROS, R1);
        a.store(R10, stack::ZEROS + 8, R1);
        a.map(R1, self.table.descriptor());
        address(a, R2, stack::SUBJECT);
        address(a, R3, stack::ZEROS);
        a.alu(Alu::Move, R4, NO_EXIST);
        a.call(helper::MAP_UPDATE_ELEM);
        // Another CPU may have been faster; where there is no room there is still no entry.
        self.look_up(a);
        a.jump_if(When::NotEqual, R0, 0, found);
        self.add_lost(a);
        a.jump(end);
        a.place(found);
        a.alu(Alu::Move, R2, 1);
        a.atomic_add(R0, 0, R2);
        a.atomic_add(R0, 8, R8);
        a.place(end);
    }

    fn look_up(&self, a: &mut Assembler) {
        a.map(R1, self.table.descriptor());
        address(a, R2, stack::SUBJECT);
        a.call(helper::MAP_LOOKUP_ELEM);
    }

    /// Counts an event that is lost; changes R1 and R2.
    pub fn add_lost(&self, a: &mut Assembler) {
        a.map_value(R1, self.lost.descriptor());
        a.alu(Alu::Move, R2, 1);
        a.atomic_add(R1, 0, R2);
    }

    /// Events that had no room.
    pub fn lost(&self) -> u64 {
        self.lost.words().first().map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// All that was counted, by subject and series.
    pub fn read(&self) -> Result<Vec<CountedSeries>, BpfError> {
        let mut buckets = BTreeMap::new();
        self.table.for_each(|key, values| {
            let number = |at: usize| {
                let bytes = key.get(at..).and_then(<[u8]>::first_chunk);
                u32::from_ne_bytes(bytes.copied().unwrap_or_default())
            };
            let (subject, selector) = (number(0), number(4));
            let (series, bucket) = (selector >> SERIES_SHIFT, selector & 0xffff);
            let (low, width) = KIND.range_of(bucket as usize);
            let sum_of = |at| values.iter().skip(at).step_by(2).sum();
            let counted = KernelBucket { low, width, count: sum_of(0), sum: sum_of(1) };
            buckets.insert((subject, series, bucket), counted);
        })?;
        let mut all: Vec<CountedSeries> = Vec::new();
        for ((subject, series, _), bucket) in buckets {
            match all.last_mut().filter(|last| (last.subject, last.series) == (subject, series)) {
                Some(last) => last.buckets.push(bucket),
                None => all.push(CountedSeries { subject, series, buckets: vec![bucket] }),
            }
        }
        Ok(all)
    }
}

/// `register = frame pointer + offset`.
pub(super) fn address(a: &mut Assembler, register: Reg, offset: i16) {
    a.alu(Alu::Move, register, R10);
    a.alu(Alu::Add, register, i32::from(offset));
}
