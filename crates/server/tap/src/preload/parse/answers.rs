//! Answers: counts those that begin in a piece of the server's bytes.

use super::requests::{binary_header, is_quiet};
use super::{ParseLost, Position, after, after_line, flag, lines, word};

mod text_step {
    pub const WORD: u8 = 0;
    /// The rest of the line is ignored.
    pub const LINE: u8 = 1;
    /// `VALUE key flags bytes [unique]`
    pub const VALUE: u8 = 2;
    /// `VA bytes flags*`
    pub const META_VALUE: u8 = 3;
    pub const BODY: u8 = 4;
}

pub fn text(position: &mut Position, piece: &[u8], begun: &mut u32) -> Result<(), ParseLost> {
    use text_step::*;
    let mut rest = piece;
    while !rest.is_empty() {
        match position.step {
            WORD => {
                if position.flags & flag::OPEN == 0 {
                    position.flags |= flag::OPEN;
                    *begun += 1;
                }
                match lines::first_word(position, &mut rest)? {
                    lines::Word::Unfinished => {}
                    lines::Word::Line => text_line_done(position),
                    lines::Word::Blank => {
                        position.step = step_of(position);
                        lines::begin_fields(position);
                    }
                }
            }
            LINE => match after_line(rest) {
                Some(tail) => {
                    rest = tail;
                    text_line_done(position);
                }
                None => rest = after(rest, rest.len()),
            },
            BODY => {
                if position.pass_body(&mut rest) {
                    text_line_done(position);
                }
            }
            step => {
                let length_at = if step == VALUE { 3 } else { 1 };
                let ended = lines::fields(position, &mut rest, step == VALUE, |position| {
                    if position.token == length_at {
                        position.need = position.number as u32;
                        position.flags |= if position.number == lines::NOT_A_NUMBER {
                            flag::BAD
                        } else {
                            flag::BODY
                        };
                    }
                });
                if !ended {
                    continue;
                }
                if position.flags & (flag::BODY | flag::BAD) != flag::BODY {
                    return Err(ParseLost);
                }
                position.skip = u64::from(position.need) + 2;
                position.step = BODY;
            }
        }
    }
    Ok(())
}

/// The next step after the first word of an answer's line.
fn step_of(position: &mut Position) -> u8 {
    const VALUE: u64 = word(b"VALUE");
    const META_VALUE: u64 = word(b"VA");
    const ONE_OF_SEVERAL: [u64; 3] = [word(b"STAT"), word(b"ITEM"), word(b"PREFIX")];
    match position.word {
        VALUE => {
            position.flags |= flag::MORE;
            text_step::VALUE
        }
        META_VALUE => text_step::META_VALUE,
        other => {
            if ONE_OF_SEVERAL.contains(&other) {
                position.flags |= flag::MORE;
            }
            text_step::LINE
        }
    }
}

fn text_line_done(position: &mut Position) {
    let more = position.flags & flag::MORE != 0;
    position.restart();
    if more {
        position.flags = flag::OPEN;
    }
}

pub fn binary(position: &mut Position, piece: &[u8], begun: &mut u32) -> Result<(), ParseLost> {
    const STAT: u8 = 0x10;
    let mut rest = piece;
    while !rest.is_empty() {
        if position.skip > 0 {
            position.pass_body(&mut rest);
        } else if let Some(header) = binary_header(position, &mut rest, 0x81)? {
            position.skip = u64::from(header.body_bytes);
            // Statistics are one answer in many messages; the last has no key.
            if position.flags & flag::OPEN == 0 && !is_quiet(header.opcode) {
                *begun += 1;
            }
            position.flags =
                if header.opcode == STAT && header.key_bytes > 0 { flag::OPEN } else { 0 };
        }
    }
    Ok(())
}

mod resp_step {
    pub const TYPE: u8 = 0;
    /// A value that is its line.
    pub const LINE: u8 = 1;
    pub const LENGTH: u8 = 2;
    pub const BODY: u8 = 3;
    /// So many values follow; each of a map is two.
    pub const VALUES: u8 = 4;
    pub const PAIRS: u8 = 5;
    /// Pairs about the value that follows them.
    pub const ATTRIBUTES: u8 = 6;
}

/// Whether a RESP2 or RESP3 value can begin with `byte`.
pub fn is_resp_type(byte: u8) -> bool {
    resp_step_of(byte).is_some()
}

fn resp_step_of(byte: u8) -> Option<u8> {
    match byte {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Some(resp_step::LINE),
        b'$' | b'=' | b'!' => Some(resp_step::LENGTH),
        b'*' | b'~' | b'>' => Some(resp_step::VALUES),
        b'%' => Some(resp_step::PAIRS),
        b'|' => Some(resp_step::ATTRIBUTES),
        _ => None,
    }
}

pub fn resp(position: &mut Position, piece: &[u8], begun: &mut u32) -> Result<(), ParseLost> {
    use resp_step::*;
    let mut rest = piece;
    while let Some((&byte, tail)) = rest.split_first() {
        match position.step {
            TYPE => {
                rest = tail;
                if position.need == 0 {
                    // A pushed message answers nothing.
                    *begun += u32::from(byte != b'>');
                    position.need = 1;
                }
                position.step = resp_step_of(byte).ok_or(ParseLost)?;
            }
            LINE => match after_line(rest) {
                Some(tail) => {
                    rest = tail;
                    value_done(position, 0);
                }
                None => rest = after(rest, rest.len()),
            },
            BODY => {
                if position.pass_body(&mut rest) {
                    value_done(position, 0);
                }
            }
            step => {
                let Some(count) = lines::number(position, &mut rest) else { continue };
                // -1 (null) is the only negative length.
                let count = if count == lines::NOT_A_NUMBER { None } else { Some(count as u32) };
                match (step, count) {
                    (LENGTH, Some(length)) => {
                        position.skip = u64::from(length) + 2;
                        position.step = BODY;
                    }
                    (VALUES, Some(count)) => value_done(position, count),
                    (PAIRS, Some(count)) => value_done(position, count.saturating_mul(2)),
                    (ATTRIBUTES, Some(count)) => {
                        value_done(position, count.saturating_mul(2).saturating_add(1));
                    }
                    (_, _) => value_done(position, 0),
                }
            }
        }
    }
    Ok(())
}

/// One value is complete and `contained` more follow.
fn value_done(position: &mut Position, contained: u32) {
    position.step = resp_step::TYPE;
    position.need = position.need.saturating_sub(1).saturating_add(contained);
}
