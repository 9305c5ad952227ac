//! One request of a trace in a form that all formats share.

use model::Expiry;
use model::random::mix;

use super::error::RecordProblem;
use super::operation::TraceOp;
use crate::value::hash;

/// The longest key that is read; what is sent is shorter.
pub(super) const LONGEST_KEY: usize = 64 << 10;

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Keys are sampled by another hash than the one that divides them over threads.
const SAMPLE: u64 = 0x51ab_5a3d_7c2e_9f16;

/// One request of a trace, as its format gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceRecord<'a> {
    /// Nanoseconds since the epoch, or since an instant that the format does not name; 0 where it
    /// has no times. See [`TraceReader::timing`](super::TraceReader::timing) for how exact.
    pub at_ns: u64,
    pub operation: TraceOp,
    pub key: TraceKey<'a>,
    /// Bytes of the original key, where the format says them apart from the key.
    pub key_size: Option<u32>,
    /// Bytes of the value that is written or was read.
    pub value_size: Option<u32>,
    /// The expiry of a write.
    pub expiry: Option<Expiry>,
}

/// The key of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceKey<'a> {
    /// The key, or what stands for it where keys are anonymised. Any bytes.
    Bytes(&'a [u8]),
    /// A number that stands for it.
    Number(u64),
}

impl TraceKey<'_> {
    /// A hash of 64 well mixed bits.
    #[inline]
    pub fn hash(&self) -> u64 {
        match *self {
            TraceKey::Bytes(key) => hash(key),
            TraceKey::Number(number) => mix(number ^ 0x9ae1_6a3b_2f90_404f),
        }
    }
}

/// The fields of a request but for its key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RecordFields {
    pub at_ns: u64,
    pub operation: TraceOp,
    pub key_size: Option<u32>,
    pub value_size: Option<u32>,
    pub expiry: Option<Expiry>,
    /// How many times the same request is issued.
    pub times: u32,
}

impl RecordFields {
    pub fn new(at_ns: u64, operation: TraceOp) -> RecordFields {
        RecordFields { at_ns, operation, key_size: None, value_size: None, expiry: None, times: 1 }
    }
}

#[derive(Debug, Clone, Copy)]
struct RecordEntry {
    fields: RecordFields,
    key: KeyPlace,
}

#[derive(Debug, Clone, Copy)]
enum KeyPlace {
    Bytes { begin: u32, end: u32 },
    Number(u64),
}

/// Requests that were decoded together; the memory is reused.
#[derive(Debug)]
pub(super) struct RecordBatch {
    entries: Vec<RecordEntry>,
    keys: Vec<u8>,
    /// The next request, and how many times it was taken.
    next: usize,
    taken: u32,
    /// The last instant, and the nanoseconds of the unit in which messages say it.
    last_ns: u64,
    unit_ns: u64,
    scans: bool,
    /// Records that are no requests.
    pub ignored: u64,
    /// Requests that are known to be missing.
    pub lost: u64,
}

impl RecordBatch {
    /// Requests that are decoded at a time.
    const FULL: usize = 512;

    pub fn new(unit_ns: u64, scans: bool) -> RecordBatch {
        RecordBatch {
            entries: Vec::with_capacity(Self::FULL),
            keys: Vec::new(),
            next: 0,
            taken: 0,
            last_ns: 0,
            unit_ns,
            scans,
            ignored: 0,
            lost: 0,
        }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
        (self.next, self.taken) = (0, 0);
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() >= Self::FULL
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Removes the requests of a record of which a later one is malformed.
    #[cold]
    pub fn truncate(&mut self, requests: usize) {
        self.entries.truncate(requests);
    }

    /// Appends a request.
    #[inline]
    pub fn push(&mut self, fields: RecordFields, key: TraceKey<'_>) -> Result<(), RecordProblem> {
        if fields.at_ns < self.last_ns {
            return Err(RecordProblem::TimeGoesBack {
                before: self.last_ns / self.unit_ns,
                now: fields.at_ns / self.unit_ns,
            });
        }
        if fields.operation == TraceOp::Seek && !self.scans {
            return Err(RecordProblem::Scan);
        }
        let key = match key {
            TraceKey::Number(number) => KeyPlace::Number(number),
            TraceKey::Bytes([]) => return Err(RecordProblem::EmptyKey),
            TraceKey::Bytes(key) if key.len() > LONGEST_KEY => {
                let (number, most) = (key.len() as u64, LONGEST_KEY as u64);
                return Err(RecordProblem::TooLarge { field: "key length", number, most });
            }
            TraceKey::Bytes(key) => {
                let begin = self.keys.len() as u32;
                self.keys.extend_from_slice(key);
                KeyPlace::Bytes { begin, end: self.keys.len() as u32 }
            }
        };
        self.last_ns = fields.at_ns;
        self.entries.push(RecordEntry { fields, key });
        Ok(())
    }

    /// Whether there is another request, which [`RecordBatch::take`] then takes. Those whose key's
    /// hash is above the bound are passed over.
    #[inline]
    pub fn find(&mut self, bound: u64) -> bool {
        while let Some(entry) = self.entries.get(self.next) {
            if self.taken < entry.fields.times
                && (bound == u64::MAX || mix(self.key(entry).hash() ^ SAMPLE) <= bound)
            {
                return true;
            }
            self.next += 1;
            self.taken = 0;
        }
        false
    }

    /// The next request, once.
    #[inline]
    pub fn take(&mut self) -> Option<TraceRecord<'_>> {
        let entry = self.entries.get(self.next)?;
        self.taken += 1;
        let RecordFields { at_ns, operation, key_size, value_size, expiry, .. } = entry.fields;
        let key = self.key(entry);
        Some(TraceRecord { at_ns, operation, key, key_size, value_size, expiry })
    }

    #[inline]
    fn key(&self, entry: &RecordEntry) -> TraceKey<'_> {
        match entry.key {
            KeyPlace::Bytes { begin, end } => {
                TraceKey::Bytes(&self.keys[begin as usize..end as usize])
            }
            KeyPlace::Number(number) => TraceKey::Number(number),
        }
    }
}
