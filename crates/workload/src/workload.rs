//! A workload made ready to be asked.

use crate::alias::Alias;
use crate::popularity::Chooser;
use crate::spec::{INSERTS, LOAD, OPERATIONS, Parts};
use crate::stream::Inserts;
use crate::{Skew, Spec, SpecError, Stream, Wrong, skew};
use model::Op;
use model::random::Lane;

/// A compiled [`Spec`]: immutable, shared by all threads, some tens of KiB whatever the number of
/// records.
#[derive(Debug, Clone)]
pub struct Workload {
    spec: Spec,
    parts: Parts,
    load: Lane,
    pub(crate) operations: Lane,
    pub(crate) inserts: Inserts,
    /// What an operation that is no insert is.
    pub(crate) others: Others,
    pub(crate) chooser: Chooser,
}

#[derive(Debug, Clone)]
pub(crate) enum Others {
    /// Always this, for nothing.
    One(Op),
    Drawn(Alias),
}

impl Workload {
    /// # Errors
    /// What [`Spec::check`] says.
    pub fn new(spec: &Spec) -> Result<Workload, SpecError> {
        let parts = spec.parts()?;
        let mut weights = parts.shares;
        weights[Op::Insert] = 0.0;
        let asked: Vec<Op> = Op::ALL.into_iter().filter(|op| weights[*op] > 0.0).collect();
        let others = match asked.as_slice() {
            [] => Others::One(Op::Insert),
            [one] => Others::One(*one),
            _ => Others::Drawn(Alias::new(&weights.0)),
        };
        let share = if spec.is_load() { 1.0 } else { parts.shares[Op::Insert] };
        Ok(Workload {
            load: Lane::new(spec.seed, LOAD),
            operations: Lane::new(spec.seed, OPERATIONS),
            inserts: Inserts::new(share, Lane::new(spec.seed, INSERTS)),
            others,
            chooser: Chooser::new(spec.popularity, spec.records.0.max(1)),
            spec: spec.clone(),
            parts,
        })
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// A stream over the operations of the measured phase, at block 0.
    pub fn stream(&self) -> Stream<'_> {
        Stream::new(self)
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

    /// Whether `value` was written for `key`, by the load or by any operation.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), Wrong> {
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

    /// The skew that the first `operations` operations of the stream really have; `None` where
    /// none of them asks for a record that is there already. Takes at most some tenths of a second
    /// and 16 MiB, which are given back.
    pub fn skew(&self, operations: u64) -> Option<Skew> {
        skew::measure(self, operations)
    }
}
