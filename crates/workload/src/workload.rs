//! A compiled workload.

use crate::alias::Alias;
use crate::error::SpecError;
use crate::insert_positions::InsertPositions;
use crate::operation::Operation;
use crate::popularity::RecordChooser;
use crate::reuse::Reuse;
use crate::spec::{ABSENT, INSERTS, LOAD, OPERATIONS, REUSE, WorkloadParts, WorkloadSpec};
use crate::ttl::Ttl;
use crate::value::ValueMismatch;
use model::random::{Draws, RandomStream, mix, unit};
use model::{Expiry, Op};

/// A compiled [`WorkloadSpec`]: immutable, shared by all threads, some tens of KiB whatever the
/// number of records.
#[derive(Debug, Clone)]
pub struct Workload {
    spec: WorkloadSpec,
    parts: WorkloadParts,
    load: RandomStream,
    pub(crate) operations: RandomStream,
    pub(crate) inserts: InsertPositions,
    /// The kinds of operations other than inserts.
    pub(crate) others: OtherOps,
    pub(crate) chooser: RecordChooser,
    /// The part of them that was loaded, where it is not all.
    pub(crate) hit_ratio: Option<f64>,
    pub(crate) reuse: Option<Reuse>,
    ttl: Option<Ttl>,
}

/// A record of a read, and its drawn rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenRecord {
    pub record: u64,
    pub rank: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum OtherOps {
    /// Always this one, without a draw.
    One(Op),
    Drawn(Alias),
}

impl Workload {
    /// Records from this one on are never loaded: reads that must miss use them. There are as many
    /// as there can be loaded ones, and each is read at most once, almost surely.
    pub const ABSENT: u64 = ABSENT;

    /// Whether a record is absent by design. Refilling it after the miss would take memory for a
    /// record that is never read again.
    #[inline]
    pub fn is_absent(record: u64) -> bool {
        record >= ABSENT
    }

    /// # Errors
    /// Errors of [`WorkloadSpec::check`].
    pub fn new(spec: &WorkloadSpec) -> Result<Workload, SpecError> {
        let parts = spec.parts()?;
        let mut weights = parts.shares;
        weights[Op::Insert] = 0.0;
        let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| weights[*op] > 0.0).collect();
        let others = match ops.as_slice() {
            [] => OtherOps::One(Op::Insert),
            [one] => OtherOps::One(*one),
            _ => OtherOps::Drawn(Alias::new(&weights.0)),
        };
        let records = spec.records.0;
        let popular = spec.reuse.as_ref().map_or(records, |reuse| reuse.popular(records)).max(1);
        let random = RandomStream::new(spec.seed, REUSE);
        let share = if spec.is_load() { 1.0 } else { parts.shares[Op::Insert] };
        Ok(Workload {
            load: RandomStream::new(spec.seed, LOAD),
            operations: RandomStream::new(spec.seed, OPERATIONS),
            inserts: InsertPositions::new(share, RandomStream::new(spec.seed, INSERTS)),
            others,
            chooser: RecordChooser::new(&spec.popularity, popular, spec.multi_get),
            hit_ratio: (spec.hit_ratio < 1.0).then_some(spec.hit_ratio),
            reuse: spec.reuse.as_ref().map(|reuse| Reuse::new(reuse, records, random)),
            ttl: spec.ttl.as_ref().map(Ttl::new),
            spec: spec.clone(),
            parts,
        })
    }

    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// The record of key `n` of a read, `n` below [`Operation::keys`]; `operation.record` for `n` =
    /// 0.
    ///
    /// A pure function of the operation. Every key is drawn by the popularity of the workload and,
    /// where the hit ratio says so, is absent, independently of the others: the same record can
    /// occur twice in one read, as it does when users are gathered in one request, the more often
    /// the more skewed the popularity is. `sequential` goes on from `operation.record` instead.
    /// `latest` counts back from the record that was the newest when the operation was drawn; where
    /// that is unknown, because `operation.record` is absent, from the last loaded one.
    #[inline]
    pub fn nth(&self, operation: &Operation, n: u32) -> u64 {
        if n == 0 { operation.record } else { self.nth_chosen(operation, n).record }
    }

    /// Key `n` of a read, `n` > 0, with the rank behind it.
    pub(crate) fn nth_chosen(&self, operation: &Operation, n: u32) -> ChosenRecord {
        // The first key's draws begin at the salt; these begin elsewhere for every key.
        let mut draws = Draws::from(mix(operation.salt.wrapping_add(u64::from(n) << 32)));
        if self.chooser.is_sequential() {
            let position = (operation.record & (ABSENT - 1)) + u64::from(n);
            let rank = position % self.spec.records.0;
            return self.choose(rank, &mut draws, 0);
        }
        let newest = match self.chooser.counts_from_newest() {
            true if Workload::is_absent(operation.record) => self.spec.records.0.wrapping_sub(1),
            true => operation.record + self.first_rank(operation.salt),
            false => 0,
        };
        let rank = self.chooser.rank(0, &mut draws);
        self.choose(rank, &mut draws, newest)
    }

    /// The rank of the operation with this salt.
    fn first_rank(&self, salt: u64) -> u64 {
        let mut draws = Draws::from(salt);
        if let OtherOps::Drawn(_) = self.others {
            draws.next();
        }
        self.chooser.rank(0, &mut draws)
    }

    /// Keys of a read.
    pub(crate) fn multi_get(&self) -> u32 {
        self.spec.multi_get
    }

    /// Whether a read is more than of one key that was loaded, or requests come back.
    pub(crate) fn has_special_reads(&self) -> bool {
        self.multi_get() > 1 || self.hit_ratio.is_some() || self.reuse.is_some()
    }

    /// The record of a read with this rank.
    #[inline(always)]
    pub(crate) fn choose(&self, rank: u64, draws: &mut Draws, newest: u64) -> ChosenRecord {
        if let Some(hit_ratio) = self.hit_ratio
            && unit(draws.next()) >= hit_ratio
        {
            // A sequential read must be able to go on from here.
            let number = if self.chooser.is_sequential() { rank } else { draws.next() };
            return ChosenRecord { record: ABSENT | (number & (ABSENT - 1)), rank };
        }
        ChosenRecord { record: self.chooser.record(rank, newest), rank }
    }

    /// Replaces `out` by the key of `record`.
    #[inline]
    pub fn key(&self, record: u64, out: &mut Vec<u8>) {
        self.parts.keys.write(record, out);
    }

    /// Replaces `out` by the value that `salt` gives to `key`. Faster where `out` still has the
    /// length of such a value.
    #[inline]
    pub fn value(&self, key: &[u8], salt: u64, out: &mut Vec<u8>) {
        self.parts.values.write(key, salt, out);
    }

    /// The longest value that the load or any operation can write, in bytes.
    pub fn longest_value(&self) -> u64 {
        self.parts.values.longest()
    }

    /// When a value expires that the operation with this salt writes.
    #[inline]
    pub fn expiry(&self, salt: u64) -> Expiry {
        self.ttl.as_ref().map_or(Expiry::Never, |ttl| ttl.of(salt))
    }

    /// How long the modelled database takes for a miss of the operation with this salt.
    #[inline]
    pub fn miss_latency(&self, salt: u64) -> Option<std::time::Duration> {
        self.spec.miss_latency.as_ref().map(|latency| latency.of(salt))
    }

    /// Bytes of the value that `salt` gives to `key`.
    pub fn value_length(&self, key: &[u8], salt: u64) -> u64 {
        self.parts.values.length(key, salt)
    }

    /// Whether `value` was written for `key`, by the load or by any operation.
    ///
    /// # Errors
    /// The mismatch.
    #[inline]
    pub fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), ValueMismatch> {
        self.parts.values.verify(key, value)
    }

    /// The salt of the value that the load writes for `record`.
    #[inline]
    pub fn load_salt(&self, record: u64) -> u64 {
        self.load.at(record)
    }

    /// The length of a scan that 64 random bits stand for.
    #[inline]
    pub(crate) fn scan_length(&self, random: u64) -> u32 {
        self.parts.scan.draw(random) as u32
    }
}
