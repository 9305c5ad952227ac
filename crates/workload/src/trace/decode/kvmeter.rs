//! kvmeter's own traces, as [`TraceWriter`](super::super::TraceWriter) writes them.

use model::Expiry;

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::input::Input;
use super::super::number::within;
use super::super::record::{LONGEST_KEY, RecordBatch, RecordFields, TraceKey};
use super::super::varint;
use super::super::write::{
    AT_ONCE, END, HAS_EXPIRY, HAS_VALUE_SIZE, HASHED, MAGIC, OPERATION, OPERATIONS, REQUESTS,
    VERSION,
};
use super::{Decoder, Failure};
use crate::value::LONGEST;

/// The longest head of a file.
const LONGEST_HEAD: usize = 64 << 10;
/// The longest request: a key, and all numbers at their longest.
const LONGEST_REQUEST: usize = LONGEST_KEY + 64;

/// The decoder of kvmeter's own format.
#[derive(Debug, Default)]
pub(in super::super) struct KvmeterTrace {
    head_read: bool,
    /// Requests of the block that are still to be decoded.
    in_block: u64,
    at_us: u64,
    requests: u64,
    ended: bool,
    key: Vec<u8>,
}

/// What is at a place of the file.
enum Item {
    Block { requests: u64, at_us: u64 },
    Request { fields: RecordFields, at_us: u64 },
    End { requests: u64, lost: u64 },
}

impl Decoder for KvmeterTrace {
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        if !self.head_read {
            self.head(input)?;
        }
        while !out.is_full() && !self.ended {
            match self.item(input.data()).map_err(Failure::fatal)? {
                Some((item, used)) => {
                    input.begin_record();
                    input.consume(used);
                    self.take(item, out)?;
                }
                None if input.data().len() > LONGEST_REQUEST => {
                    input.begin_record();
                    return Err(Failure::fatal(RecordProblem::Varint));
                }
                None if !out.is_empty() => break,
                // A frame that was not written whole ends the file like one that is missing.
                None if !input.fill().unwrap_or(false) => {
                    input.begin_record();
                    self.ended = true;
                    return Err(Failure::bad(RecordProblem::Unfinished));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}

impl KvmeterTrace {
    /// Reads the lines at the beginning.
    fn head(&mut self, input: &mut Input) -> Result<(), Failure> {
        let end = loop {
            let data = input.data();
            match memchr::memmem::find(&data[..data.len().min(LONGEST_HEAD)], b"\n\n") {
                Some(end) => break end,
                None if data.len() >= LONGEST_HEAD || !input.fill()? => {
                    return Err(Failure::fatal(RecordProblem::Unfinished));
                }
                None => {}
            }
        };
        let line = input.data()[..end].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let version = line.strip_prefix(MAGIC.as_bytes()).unwrap_or_default();
        if version != VERSION.as_bytes() {
            let version = excerpt(version);
            return Err(Failure::fatal(RecordProblem::Version { version, known: VERSION }));
        }
        input.consume(end + 2);
        self.head_read = true;
        Ok(())
    }

    /// The next item and its bytes; `None` where more of them are needed.
    fn item(&mut self, data: &[u8]) -> Result<Option<(Item, usize)>, RecordProblem> {
        let parsed = match self.in_block {
            0 => block(data)?,
            _ => self.request(data)?,
        };
        Ok(parsed.map(|(item, rest)| (item, data.len() - rest.len())))
    }

    fn take(&mut self, item: Item, out: &mut RecordBatch) -> Result<(), Failure> {
        match item {
            Item::Block { requests, at_us } => (self.in_block, self.at_us) = (requests, at_us),
            Item::Request { fields, at_us } => {
                self.at_us = at_us;
                self.in_block -= 1;
                self.requests += 1;
                out.push(fields, TraceKey::Bytes(&self.key)).map_err(Failure::bad)?;
            }
            Item::End { requests, .. } if requests != self.requests => {
                let (of, have) = (requests, self.requests);
                return Err(Failure::fatal(RecordProblem::Requests { have, of }));
            }
            Item::End { lost, .. } => {
                out.lost += lost;
                self.ended = true;
            }
        }
        Ok(())
    }

    fn request<'d>(&mut self, data: &'d [u8]) -> Result<Option<(Item, &'d [u8])>, RecordProblem> {
        let Some((after_us, rest)) = varint::take(data) else { return Ok(None) };
        let Some((bits, rest)) = rest.split_first() else { return Ok(None) };
        let number = bits & OPERATION;
        let operation = OPERATIONS.get(usize::from(number)).copied();
        let operation = operation.ok_or(RecordProblem::Kind { kind: u64::from(number) })?;
        let at_us = self.at_us.saturating_add(after_us);
        let mut fields = RecordFields::new(at_us.saturating_mul(1000), operation);
        let Some(mut rest) = self.key(bits & HASHED != 0, &mut fields, rest)? else {
            return Ok(None);
        };
        if bits & HAS_VALUE_SIZE != 0 {
            let Some((size, behind)) = varint::take(rest) else { return Ok(None) };
            fields.value_size = Some(within("value size", size, LONGEST)?);
            rest = behind;
        }
        if bits & HAS_EXPIRY != 0 {
            let Some((seconds, behind)) = varint::take(rest) else { return Ok(None) };
            fields.expiry = Some(match seconds {
                AT_ONCE => Expiry::AtOnce,
                seconds => Expiry::after(within("TTL", seconds, u64::from(u32::MAX))?),
            });
            rest = behind;
        }
        Ok(Some((Item::Request { fields, at_us }, rest)))
    }

    /// Takes the key, or what stands for it: the class of its prefix and its hash.
    fn key<'d>(
        &mut self,
        hashed: bool,
        fields: &mut RecordFields,
        data: &'d [u8],
    ) -> Result<Option<&'d [u8]>, RecordProblem> {
        self.key.clear();
        if hashed {
            let Some((hash, rest)) = data.split_first_chunk() else { return Ok(None) };
            let Some((size, rest)) = varint::take(rest) else { return Ok(None) };
            let Some((class, rest)) = varint::take(rest) else { return Ok(None) };
            match within("key length", size, LONGEST_KEY as u64)? {
                0 => return Err(RecordProblem::NoKeySize),
                size => fields.key_size = Some(size),
            }
            let text = format!("{class:x}:{:016x}", u64::from_le_bytes(*hash));
            self.key.extend_from_slice(text.as_bytes());
            return Ok(Some(rest));
        }
        let Some((size, rest)) = varint::take(data) else { return Ok(None) };
        let size = within("key length", size, LONGEST_KEY as u64)? as usize;
        let Some((key, rest)) = rest.split_at_checked(size) else { return Ok(None) };
        self.key.extend_from_slice(key);
        Ok(Some(rest))
    }
}

/// The head of a block, or the mark of the end.
fn block(data: &[u8]) -> Result<Option<(Item, &[u8])>, RecordProblem> {
    let Some((kind, rest)) = data.split_first() else { return Ok(None) };
    let Some((requests, rest)) = varint::take(rest) else { return Ok(None) };
    let Some((second, rest)) = varint::take(rest) else { return Ok(None) };
    let item = match *kind {
        REQUESTS => Item::Block { requests, at_us: second },
        END => Item::End { requests, lost: second },
        kind => return Err(RecordProblem::Kind { kind: u64::from(kind) }),
    };
    Ok(Some((item, rest)))
}

/// Whether a file begins so.
pub(in super::super) fn recognises(head: &[u8]) -> bool {
    head.starts_with(MAGIC.as_bytes())
}
