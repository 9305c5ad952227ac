//! Requests: counts those that end in a piece of a client's bytes.

use super::{Grammar, ParseLost, ParsedRequest, Position, after, after_line, flag, lines, word};

impl Position {
    fn request_done(&mut self, parsed: &mut ParsedRequest) {
        parsed.complete += 1;
        parsed.quiet += u32::from(self.flags & flag::QUIET != 0);
        self.restart();
    }
}

mod text_step {
    pub const COMMAND: u8 = 0;
    /// The rest of the line is ignored.
    pub const LINE: u8 = 1;
    /// `key flags expiry bytes [..] [noreply]`
    pub const SET: u8 = 2;
    /// `key bytes flags*`
    pub const META_SET: u8 = 3;
    /// `key flags*`
    pub const META: u8 = 4;
    /// `.. [noreply]`
    pub const NOREPLY: u8 = 5;
    pub const BODY: u8 = 6;
}

const NOREPLY_WORD: u64 = word(b"noreply");

pub fn text(
    position: &mut Position,
    piece: &[u8],
    parsed: &mut ParsedRequest,
) -> Result<(), ParseLost> {
    use text_step::*;
    let mut rest = piece;
    while let Some(first) = rest.first() {
        match position.step {
            COMMAND if position.token == 0 && *first == b'*' => {
                // Redis after an inline command.
                position.grammar = Grammar::Resp;
                return resp(position, rest, parsed);
            }
            COMMAND => match lines::first_word(position, &mut rest)? {
                lines::Word::Unfinished => {}
                lines::Word::Blank if position.token == 0 => {}
                lines::Word::Line if position.token == 0 => position.restart(),
                lines::Word::Blank => {
                    position.step = step_of(position);
                    lines::begin_fields(position);
                }
                lines::Word::Line => {
                    step_of(position);
                    position.request_done(parsed);
                }
            },
            LINE => match after_line(rest) {
                Some(tail) => {
                    rest = tail;
                    position.request_done(parsed);
                }
                None => rest = &[],
            },
            BODY => {
                if position.pass_body(&mut rest) {
                    position.request_done(parsed);
                }
            }
            step => {
                let ended =
                    lines::fields(position, &mut rest, step != NOREPLY, |position| match step {
                        SET => set_field(position),
                        META_SET if position.token == 2 => body_length(position),
                        META_SET | META => {
                            if position.token >= 2 && position.word == u64::from(b'q') {
                                position.flags |= flag::QUIET;
                            }
                        }
                        _ => noreply(position),
                    });
                if !ended {
                    continue;
                }
                if position.flags & (flag::BODY | flag::BAD) == flag::BODY {
                    position.skip = u64::from(position.need) + 2;
                    position.step = BODY;
                } else {
                    position.request_done(parsed);
                }
            }
        }
    }
    Ok(())
}

/// How to read on after the command in `position.word`.
fn step_of(position: &mut Position) -> u8 {
    const GET: u64 = word(b"get");
    const META_GET: u64 = word(b"mg");
    const SET: u64 = word(b"set");
    const META_SET: u64 = word(b"ms");
    const OTHER_SETS: [u64; 5] =
        [word(b"add"), word(b"replace"), word(b"append"), word(b"prepend"), word(b"cas")];
    const OTHER_META: [u64; 2] = [word(b"md"), word(b"ma")];
    const MAY_BE_QUIET: [u64; 8] = [
        word(b"delete"),
        word(b"incr"),
        word(b"decr"),
        word(b"touch"),
        word(b"flush_all"),
        word(b"verbosity"),
        word(b"cache_memlimit"),
        word(b"shutdown"),
    ];
    match position.word {
        GET => text_step::LINE,
        META_GET => text_step::META,
        SET => text_step::SET,
        META_SET => text_step::META_SET,
        other if OTHER_SETS.contains(&other) => text_step::SET,
        other if OTHER_META.contains(&other) => text_step::META,
        other if MAY_BE_QUIET.contains(&other) => text_step::NOREPLY,
        other => {
            if other == word(b"quit") {
                position.flags |= flag::QUIET;
            }
            text_step::LINE
        }
    }
}

fn set_field(position: &mut Position) {
    match position.token {
        2 if position.number == lines::NOT_A_NUMBER => position.flags |= flag::BAD,
        4 => body_length(position),
        5.. => noreply(position),
        _ => {}
    }
}

fn body_length(position: &mut Position) {
    if position.number == lines::NOT_A_NUMBER {
        position.flags |= flag::BAD;
    } else {
        position.flags |= flag::BODY;
        position.need = position.number as u32;
    }
}

fn noreply(position: &mut Position) {
    if position.word == NOREPLY_WORD {
        position.flags |= flag::QUIET;
    }
}

/// memcached's quiet opcodes: answered only on errors or, for gets, on hits.
pub fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, 0x09 | 0x0d | 0x11..=0x1a | 0x1e | 0x24)
}

/// The used fields of a binary header.
pub struct BinaryHeader {
    pub opcode: u8,
    pub key_bytes: u16,
    pub body_bytes: u32,
}

/// Reads a header of 24 bytes that begins with `magic`; `None` while it has
/// not ended.
pub fn binary_header(
    position: &mut Position,
    rest: &mut &[u8],
    magic: u8,
) -> Result<Option<BinaryHeader>, ParseLost> {
    if position.token == 0
        && let Some((head, tail)) = rest.split_first_chunk::<24>()
    {
        *rest = tail;
        let [first, opcode, k1, k0, _, _, _, _, b3, b2, b1, b0, ..] = *head;
        return if first == magic {
            Ok(Some(BinaryHeader {
                opcode,
                key_bytes: u16::from_be_bytes([k1, k0]),
                body_bytes: u32::from_be_bytes([b3, b2, b1, b0]),
            }))
        } else {
            Err(ParseLost)
        };
    }
    while let Some((&byte, tail)) = rest.split_first() {
        *rest = tail;
        match position.token {
            0 if byte != magic => return Err(ParseLost),
            1..=3 => position.word = position.word << 8 | u64::from(byte),
            8..=11 => position.number = position.number << 8 | u64::from(byte),
            23 => {
                let header = BinaryHeader {
                    opcode: (position.word >> 16) as u8,
                    key_bytes: position.word as u16,
                    body_bytes: position.number as u32,
                };
                position.token = 0;
                position.word = 0;
                position.number = 0;
                return Ok(Some(header));
            }
            _ => {}
        }
        position.token += 1;
    }
    Ok(None)
}

pub fn binary(
    position: &mut Position,
    piece: &[u8],
    parsed: &mut ParsedRequest,
) -> Result<(), ParseLost> {
    let mut rest = piece;
    while !rest.is_empty() {
        if position.skip > 0 {
            if position.pass_body(&mut rest) {
                position.request_done(parsed);
            }
        } else if let Some(header) = binary_header(position, &mut rest, 0x80)? {
            if is_quiet(header.opcode) {
                position.flags |= flag::QUIET;
            }
            position.skip = u64::from(header.body_bytes);
            if position.skip == 0 {
                position.request_done(parsed);
            }
        }
    }
    Ok(())
}

mod resp_step {
    pub const TYPE: u8 = 0;
    pub const COUNT: u8 = 1;
    pub const DOLLAR: u8 = 2;
    pub const LENGTH: u8 = 3;
    /// The command's name is read; arguments are skipped.
    pub const NAME: u8 = 4;
    pub const BODY: u8 = 5;
    /// An inline command.
    pub const LINE: u8 = 6;
}

pub fn resp(
    position: &mut Position,
    piece: &[u8],
    parsed: &mut ParsedRequest,
) -> Result<(), ParseLost> {
    use resp_step::*;
    let mut rest = piece;
    while let Some((&byte, tail)) = rest.split_first() {
        match position.step {
            TYPE => {
                rest = tail;
                match byte {
                    b'*' => position.step = COUNT,
                    b'\r' | b'\n' => {}
                    0x21..=0x7e => position.step = LINE,
                    _ => return Err(ParseLost),
                }
            }
            COUNT => match lines::number(position, &mut rest) {
                Some(0 | lines::NOT_A_NUMBER) => position.restart(),
                Some(count) => {
                    position.need = count as u32;
                    position.step = DOLLAR;
                }
                None => {}
            },
            DOLLAR => {
                rest = tail;
                if byte != b'$' {
                    return Err(ParseLost);
                }
                position.step = LENGTH;
            }
            LENGTH => match lines::number(position, &mut rest) {
                Some(lines::NOT_A_NUMBER) => return Err(ParseLost),
                Some(length) => {
                    position.skip = length + 2;
                    // `token` is set after the command's name.
                    position.step = if position.token == 0 { NAME } else { BODY };
                    position.token = 1;
                }
                None => {}
            },
            NAME | BODY => {
                if position.step == NAME {
                    let name = position.skip.saturating_sub(2).min(rest.len() as u64) as usize;
                    // Only the end of long names is stored.
                    position.word =
                        rest.iter().take(name.min(16)).fold(position.word, |word, b| {
                            word << 8 | u64::from(b.to_ascii_lowercase())
                        });
                }
                if position.pass_body(&mut rest) {
                    if position.step == NAME {
                        parsed.stream |= makes_a_stream(position.word);
                        position.word = 0;
                    }
                    position.need = position.need.saturating_sub(1);
                    position.step = DOLLAR;
                    if position.need == 0 {
                        position.request_done(parsed);
                    }
                }
            }
            _ => match after_line(rest) {
                Some(tail) => {
                    rest = tail;
                    position.request_done(parsed);
                }
                None => rest = after(rest, rest.len()),
            },
        }
    }
    Ok(())
}

/// Whether the server sends unsolicited messages after this command.
fn makes_a_stream(name: u64) -> bool {
    [
        word(b"subscribe"),
        word(b"psubscribe"),
        word(b"ssubscribe"),
        word(b"monitor"),
        word(b"sync"),
        word(b"psync"),
    ]
    .contains(&name)
}
