//! The operations of the measured phase, in blocks that any thread can take.

use model::Op;

use crate::operation::{BLOCK, Operation};
use crate::workload::{OtherOps, Workload};
use model::random::{Draws, below, mix};

impl Workload {
    /// A stream over the operations of the measured phase, at block 0.
    pub fn stream(&self) -> OperationStream<'_> {
        OperationStream::new(self)
    }
}

/// A walk over blocks of operations. Operation `i` is the same in every stream of a workload.
#[derive(Debug, Clone)]
pub struct OperationStream<'a> {
    workload: &'a Workload,
    records: u64,
    /// Whether reads are more than of one key that was loaded.
    special: bool,
    /// The current block and its end, in operations; `index` is the next operation.
    block: u64,
    index: u64,
    end: u64,
    /// Inserts before `index`, and those that are still to come in the block.
    inserted: u64,
    inserts_left: u64,
    positions: Draws,
    redirected: u64,
    fingerprint: u64,
}

/// A drawn operation, before a `latest` read is moved to an existing record.
pub(crate) struct DrawnOperation {
    pub op: Op,
    pub record: u64,
    /// The rank behind the record; 0 for inserts.
    pub rank: u64,
    pub salt: u64,
    pub scan: u32,
    pub keys: u32,
}

impl DrawnOperation {
    /// The newest record that a `latest` draw can use: the other keys of a read may use the newest
    /// of all.
    #[inline(always)]
    fn reach(&self) -> u64 {
        if self.keys > 1 { self.record + self.rank } else { self.record }
    }

    pub fn operation(&self) -> Operation {
        let &DrawnOperation { op, record, salt, scan, keys, .. } = self;
        Operation { op, record, salt, scan, keys }
    }
}

impl<'a> OperationStream<'a> {
    fn new(workload: &'a Workload) -> OperationStream<'a> {
        let mut stream = OperationStream {
            workload,
            records: workload.spec().records.0,
            special: workload.has_special_reads(),
            block: 0,
            index: 0,
            end: 0,
            inserted: 0,
            inserts_left: 0,
            positions: Draws::from(0),
            redirected: 0,
            fingerprint: 0,
        };
        stream.enter(0);
        stream
    }

    /// Goes to the beginning of `block`, operations `block * BLOCK ..`. Forward this costs a few
    /// nanoseconds a block that is skipped, and nothing where there are no inserts; backward it
    /// starts again from block 0.
    #[inline]
    pub fn seek(&mut self, block: u64) {
        let inserts = &self.workload.inserts;
        self.inserted = match block {
            _ if block > self.block => {
                self.inserted + self.inserts_left + inserts.between(self.block + 1, block)
            }
            _ if block == self.block => self.inserted + self.inserts_left - inserts.of_block(block),
            _ => inserts.between(0, block),
        };
        self.enter(block);
    }

    fn enter(&mut self, block: u64) {
        self.block = block;
        self.index = block * BLOCK;
        self.end = self.index + BLOCK;
        self.inserts_left = self.workload.inserts.of_block(block);
        // Their positions come from another part of the stream than their number.
        self.positions = Draws::from(mix(self.workload.inserts.random.at(!block)));
    }

    /// The record number of the first insert at or after the current position.
    #[inline]
    pub fn next_insert(&self) -> u64 {
        self.records + self.inserted
    }

    /// Whether it reads records that it inserts: then `next` needs the acknowledged ones.
    pub fn reads_inserted(&self) -> bool {
        self.workload.chooser.counts_from_newest() && self.workload.spec().mix.contains(Op::Insert)
    }

    /// The next operation of the block, `None` at its end. All records below `acknowledged` are in
    /// the store; a `latest` draw that falls on a newer one is taken relative to `acknowledged`
    /// instead, and counted; a read of several keys also where only another of its keys could fall
    /// there. Inserts are never moved.
    #[inline]
    pub fn next(&mut self, acknowledged: u64) -> Option<Operation> {
        if self.special {
            return self.next_special(acknowledged);
        }
        self.advance::<false>(acknowledged)
    }

    /// A function of its own, so that other streams pay one branch.
    #[cold]
    #[inline(never)]
    fn next_special(&mut self, acknowledged: u64) -> Option<Operation> {
        self.advance::<true>(acknowledged)
    }

    #[inline(always)]
    fn advance<const SPECIAL: bool>(&mut self, acknowledged: u64) -> Option<Operation> {
        let index = self.index;
        let step = self.draw::<SPECIAL>()?;
        self.fingerprint = self.fingerprint.wrapping_add(print(index, &step));
        let mut operation = step.operation();
        if self.workload.chooser.counts_from_newest()
            && step.op != Op::Insert
            && step.reach() >= acknowledged
            && !(SPECIAL && Workload::is_absent(step.record))
        {
            operation.record = acknowledged.saturating_sub(1).saturating_sub(step.rank);
            self.redirected += 1;
        }
        Some(operation)
    }

    /// The next operation as drawn.
    pub(crate) fn step(&mut self) -> Option<DrawnOperation> {
        if self.special { self.draw::<true>() } else { self.draw::<false>() }
    }

    #[inline(always)]
    fn draw<const SPECIAL: bool>(&mut self) -> Option<DrawnOperation> {
        if self.index == self.end {
            return None;
        }
        let index = self.index;
        self.index += 1;
        let workload = self.workload;
        let salt = workload.operations.at(index);
        if self.inserts_left > 0 {
            let positions = self.end - index;
            if self.inserts_left == positions
                || below(self.positions.next(), positions) < self.inserts_left
            {
                self.inserts_left -= 1;
                let record = self.records + self.inserted;
                self.inserted += 1;
                return Some(DrawnOperation {
                    op: Op::Insert,
                    record,
                    rank: 0,
                    salt,
                    scan: 0,
                    keys: 1,
                });
            }
        }
        let mut draws = Draws::from(salt);
        let op = match &workload.others {
            OtherOps::One(op) => *op,
            OtherOps::Drawn(alias) => Op::ALL[alias.pick(draws.next()) as usize],
        };
        let rank = match &workload.reuse {
            Some(reuse) if SPECIAL => reuse.record(index, &workload.chooser),
            _ => workload.chooser.rank(index, &mut draws),
        };
        let newest = (self.records + self.inserted).wrapping_sub(1);
        if SPECIAL && op == Op::Read {
            let record = workload.choose(rank, &mut draws, newest).record;
            return Some(DrawnOperation {
                op,
                record,
                rank,
                salt,
                scan: 0,
                keys: workload.multi_get(),
            });
        }
        let record = workload.chooser.record(rank, newest);
        let scan = if op == Op::Scan { workload.scan_length(draws.next()) } else { 0 };
        Some(DrawnOperation { op, record, rank, salt, scan, keys: 1 })
    }

    /// How many `latest` draws were taken relative to what was acknowledged.
    pub fn redirected(&self) -> u64 {
        self.redirected
    }

    /// A hash over everything that this stream has drawn, as drawn: index, operation, record, salt,
    /// scan length and number of keys. The (wrapping) sum over all threads is the same for the same operations,
    /// however they were divided.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

#[inline(always)]
fn print(index: u64, step: &DrawnOperation) -> u64 {
    let what =
        step.op as u64 | u64::from(step.scan) << 8 | u64::from(step.keys.wrapping_sub(1)) << 40;
    let word = step.salt.wrapping_add(index)
        ^ step.record.wrapping_mul(0x9fb2_1c65_1e98_df25)
        ^ what.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (word ^ (word >> 32)).wrapping_mul(0xa076_1d64_78bd_642f)
}
