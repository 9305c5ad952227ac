//! Chunks of a trace's requests.

use model::Expiry;
use model::random::mix;

use super::key::{self, KeyFit};
use super::operation::TraceOp;
use super::record::{TraceKey, TraceRecord};
use crate::value::hash;

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceRequest<'a> {
    /// Its number in the trace, from 0. Used as a salt, it makes every written value distinct.
    pub index: u64,
    /// Seconds after the first request of the trace, or its second where the trace has whole ones:
    /// then [`ArrivalSpread`](super::ArrivalSpread) chooses where in its second a request lies. 0 in
    /// a trace without times.
    pub at_s: f64,
    pub operation: TraceOp,
    /// The key to send: the trace's, in the original size, at most 250 B. Where it is anonymised, it
    /// is often of another length than the original: what is too long is cut, what is too short is
    /// lengthened, and letters of a hash of the whole key keep it distinct.
    pub key: &'a [u8],
    pub fit: KeyFit,
    /// Bytes of the original key.
    pub key_size: u32,
    /// Bytes of the value that is written or was read; 0 where it is not known.
    pub value_size: u32,
    /// The expiry of a write; never for other operations.
    pub expiry: Expiry,
}

impl TraceRequest<'_> {
    /// A hash over the whole request; the (wrapping) sum over the threads of a replay is the same
    /// for the same requests.
    #[inline]
    pub fn fingerprint(&self) -> u64 {
        let what = self.operation as u64 | u64::from(self.value_size) << 8;
        mix(self.index ^ mix(hash(self.key) ^ what.wrapping_mul(0xd6e8_feb8_6659_fd93)))
    }
}

/// A reusable buffer of requests.
#[derive(Debug, Clone, Default)]
pub struct RequestChunk {
    requests: Vec<ChunkEntry>,
    keys: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct ChunkEntry {
    index: u64,
    at_s: f64,
    /// Where its key ends in `keys`; it begins where the one before ends.
    key_end: u32,
    key_size: u32,
    value_size: u32,
    expiry: Expiry,
    operation: TraceOp,
    fit: KeyFit,
}

impl RequestChunk {
    pub fn new() -> RequestChunk {
        RequestChunk::default()
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Request `n` of this chunk, in the order of the trace.
    #[inline]
    pub fn get(&self, n: usize) -> Option<TraceRequest<'_>> {
        let entry = self.requests.get(n)?;
        let begin = n.checked_sub(1).map_or(0, |before| self.requests[before].key_end);
        Some(TraceRequest {
            index: entry.index,
            at_s: entry.at_s,
            operation: entry.operation,
            key: &self.keys[begin as usize..entry.key_end as usize],
            fit: entry.fit,
            key_size: entry.key_size,
            value_size: entry.value_size,
            expiry: entry.expiry,
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = TraceRequest<'_>> {
        (0..self.len()).filter_map(|n| self.get(n))
    }

    /// Removes all requests; the memory is reused.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.keys.clear();
    }

    /// Appends copy `copy` of a request, with a key of its own unless that is 0.
    pub(super) fn push(&mut self, record: &TraceRecord<'_>, copy: u32, text_keys: bool) {
        let (fit, key_size) = match record.key {
            TraceKey::Number(number) => (key::append_number(number, copy, &mut self.keys), None),
            TraceKey::Bytes(key) => {
                let size = record.key_size.unwrap_or(key.len() as u32);
                let fit = match text_keys && key::has_other_bytes(key) {
                    true => key::append_hashed(key, size, copy, &mut self.keys),
                    false => key::append(key, size, copy, &mut self.keys),
                };
                (fit, Some(size))
            }
        };
        self.requests.push(ChunkEntry {
            index: 0,
            at_s: 0.0,
            key_end: self.keys.len() as u32,
            key_size: key_size.unwrap_or(key::NUMBER as u32),
            value_size: record.value_size.unwrap_or(0),
            expiry: record.expiry.filter(|_| record.operation.op().writes()).unwrap_or_default(),
            operation: record.operation,
            fit,
        });
    }

    /// Moves all requests of another chunk behind those of this one.
    pub(super) fn take_all(&mut self, other: &mut RequestChunk) {
        other.iter().for_each(|request| self.push_copy(&request));
        other.clear();
    }

    /// Numbers the requests from `first` on, and returns the number after the last.
    pub(super) fn number(&mut self, first: u64) -> u64 {
        let mut index = first;
        for entry in &mut self.requests {
            entry.index = index;
            index += 1;
        }
        index
    }

    pub(super) fn push_copy(&mut self, request: &TraceRequest<'_>) {
        self.keys.extend_from_slice(request.key);
        self.requests.push(ChunkEntry {
            index: request.index,
            at_s: request.at_s,
            key_end: self.keys.len() as u32,
            key_size: request.key_size,
            value_size: request.value_size,
            expiry: request.expiry,
            operation: request.operation,
            fit: request.fit,
        });
    }

    /// The instants of all requests, to be set.
    pub(super) fn instants(&mut self) -> impl ExactSizeIterator<Item = &mut f64> {
        self.requests.iter_mut().map(|entry| &mut entry.at_s)
    }
}
