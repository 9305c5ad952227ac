//! The items that memtier imports (`--data-import`): a dump of a memcached, each item a write.
//!
//! `dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data`, the key and the
//! data in quotes, of the lengths that the line announces; they may hold commas and line ends, and
//! a quote in them is doubled. `nbytes` counts the two bytes of memcached's line end.
//! Source: <https://github.com/RedisLabs/memtier_benchmark>.

use model::Expiry;

use super::super::error::{RecordProblem, excerpt};
use super::super::format::TraceTiming;
use super::super::input::Input;
use super::super::number::{number, small, within};
use super::super::operation::TraceOp;
use super::super::record::{LONGEST_KEY, RecordBatch, RecordFields, TraceKey};
use super::{Decoder, Failure};
use crate::value::LONGEST;

const HEADER: &[u8] = b"dumpflags, time, exptime";

/// Numbers before the key, and the most bytes that they take.
const NUMBERS: usize = 8;
const NUMBERS_SIZE: usize = 256;

/// Seconds from which memcached takes an expiry for a date.
const DATE: u64 = 30 * 24 * 3600;

/// The decoder of memtier's items.
#[derive(Debug, Default)]
pub(in super::super) struct Memtier {
    begun: bool,
    key: Vec<u8>,
}

/// Whether a first line is one of this format.
pub(in super::super) fn recognises(line: &[u8]) -> bool {
    line.starts_with(HEADER)
}

/// What the numbers of an item say.
struct Item {
    expiry: Expiry,
    data_size: u32,
    key_size: u32,
}

impl Decoder for Memtier {
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.begun, true) {
            input.begin_record();
            input.need(HEADER.len())?;
            input.count_lines(1);
            if !recognises(input.data()) {
                let text = excerpt(input.data());
                let problem = RecordProblem::Header { expected: "dumpflags, time, exptime" };
                return Err(Failure::Record { problem, text, fatal: true });
            }
            input.skip_line()?;
        }
        while !out.is_full() {
            if input.data().is_empty() && (!out.is_empty() || !input.fill()?) {
                break;
            }
            input.begin_record();
            input.count_lines(1);
            self.item(input, out)?;
        }
        Ok(())
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Untimed
    }
}

impl Memtier {
    fn item(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        // The numbers, the key and its quotes.
        input.need(NUMBERS_SIZE)?;
        let text = excerpt(first_line(input.data()));
        let failed = |problem| Failure::Record { problem, text: text.clone(), fatal: false };
        let fatal = |problem| Failure::Record { problem, text: text.clone(), fatal: true };
        let numbers = match numbers(input.data()) {
            Ok(numbers) => numbers,
            Err(problem) => {
                input.skip_line()?;
                return Err(failed(problem));
            }
        };
        let (Item { expiry, data_size, key_size }, begin) = numbers;
        input.consume(begin);
        // From here on lengths say where the next item begins: without them there is none.
        self.key.clear();
        if !quoted(input, u64::from(key_size), Some(&mut self.key))?
            || !separator(input)?
            || !quoted(input, u64::from(data_size), None)?
        {
            return Err(fatal(RecordProblem::ItemLength));
        }
        if !end_of_line(input)? {
            return Err(fatal(RecordProblem::ItemLength));
        }
        let mut fields = RecordFields::new(0, TraceOp::Set);
        (fields.expiry, fields.value_size) = (Some(expiry), Some(data_size));
        out.push(fields, TraceKey::Bytes(&self.key)).map_err(failed)
    }
}

fn first_line(data: &[u8]) -> &[u8] {
    data.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// The numbers of an item, and where its key begins.
fn numbers(data: &[u8]) -> Result<(Item, usize), RecordProblem> {
    let line = first_line(data);
    let line = &line[..line.len().min(NUMBERS_SIZE)];
    let mut found: [&[u8]; NUMBERS] = [&[]; NUMBERS];
    let mut begin = 0;
    for (count, place) in found.iter_mut().enumerate() {
        let comma = line[begin..].iter().position(|byte| *byte == b',');
        let comma = comma.ok_or(RecordProblem::Columns { count, of: NUMBERS + 2 })?;
        *place = line[begin..begin + comma].trim_ascii();
        begin += comma + 1;
    }
    begin += usize::from(line.get(begin) == Some(&b' '));
    for (name, text) in [("dumpflags", found[0]), ("nsuffix", found[4]), ("it_flags", found[5])] {
        number(name, text)?;
    }
    number("clsid", found[6])?;
    let expiry = match (number("time", found[1])?, number("exptime", found[2])?) {
        (_, 0) => Expiry::Never,
        (_, seconds @ ..=DATE) => Expiry::After(seconds as u32),
        (now, date) => match date.saturating_sub(now) {
            0 => Expiry::AtOnce,
            seconds => Expiry::After(u32::try_from(seconds).unwrap_or(u32::MAX)),
        },
    };
    let bytes = number("nbytes", found[3])?;
    let data_size = bytes.checked_sub(2).ok_or(RecordProblem::ItemLength)?;
    let data_size = within("nbytes", data_size, LONGEST)?;
    let key_size = small("nkey", found[7], LONGEST_KEY as u64)?;
    match key_size {
        0 => Err(RecordProblem::EmptyKey),
        _ => Ok((Item { expiry, data_size, key_size }, begin)),
    }
}

/// Consumes a field of so many bytes, in quotes or, without commas and line ends, plain; false
/// where it is not so long. The bytes are appended to `out`.
fn quoted(input: &mut Input, bytes: u64, mut out: Option<&mut Vec<u8>>) -> Result<bool, Failure> {
    let mut left = bytes;
    let is_quoted = input.need(1)? && input.data()[0] == b'"';
    input.consume(usize::from(is_quoted));
    while left > 0 {
        if input.data().is_empty() && !input.fill()? {
            return Ok(false);
        }
        let data = input.data();
        let most = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let stop = |byte: &u8| match is_quoted {
            true => *byte == b'"',
            false => matches!(byte, b',' | b'\n'),
        };
        let plain = data[..most].iter().position(stop).unwrap_or(most);
        let lines = memchr::memchr_iter(b'\n', &data[..plain]).count();
        if let Some(out) = &mut out {
            out.extend_from_slice(&data[..plain]);
        }
        input.count_lines(lines as u64);
        input.consume(plain);
        left -= plain as u64;
        if plain < most {
            if !is_quoted || !input.need(2)? || !input.data().starts_with(b"\"\"") {
                return Ok(false);
            }
            if let Some(out) = &mut out {
                out.push(b'"');
            }
            input.consume(2);
            left -= 1;
        }
    }
    if !is_quoted {
        return Ok(true);
    }
    let closed = input.need(1)? && input.data()[0] == b'"';
    input.consume(usize::from(closed));
    Ok(closed)
}

fn separator(input: &mut Input) -> Result<bool, Failure> {
    let comma = input.need(2)? && input.data().starts_with(b", ");
    input.consume(if comma { 2 } else { 0 });
    Ok(comma)
}

/// Consumes the end of a line, or of the file.
fn end_of_line(input: &mut Input) -> Result<bool, Failure> {
    if !input.need(1)? {
        return Ok(true);
    }
    let carriage = input.data()[0] == b'\r' && input.need(2)?;
    input.consume(usize::from(carriage));
    let end = input.data()[0] == b'\n';
    input.consume(usize::from(end));
    Ok(end)
}
