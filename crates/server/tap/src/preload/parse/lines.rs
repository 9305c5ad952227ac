//! Reading a line of tokens or a number, a byte at a time.

use super::{ParseLost, Position, after};

/// An invalid number.
pub const NOT_A_NUMBER: u64 = u64::MAX;

/// The longest length of the protocols: 4 GiB.
const LARGEST: u64 = u32::MAX as u64 - 2;

/// The longest command or first word of an answer.
const LONGEST_WORD: u8 = 64;

/// How the first word of a line ended.
pub enum Word {
    /// The piece ended before it did.
    Unfinished,
    /// A blank follows it.
    Blank,
    /// The line ended with it.
    Line,
}

/// Reads the first word of a line into `position.word`.
pub fn first_word(position: &mut Position, rest: &mut &[u8]) -> Result<Word, ParseLost> {
    while let Some((&byte, tail)) = rest.split_first() {
        *rest = tail;
        match byte {
            b' ' => return Ok(Word::Blank),
            b'\n' => return Ok(Word::Line),
            b'\r' => {}
            0x21..=0x7e if position.token < LONGEST_WORD => {
                position.word = position.word << 8 | u64::from(byte);
                position.token += 1;
            }
            _ => return Err(ParseLost),
        }
    }
    Ok(Word::Unfinished)
}

/// Prepares `position` for the tokens after the first word.
pub fn begin_fields(position: &mut Position) {
    position.token = 1;
    begin_token(position);
}

fn begin_token(position: &mut Position) {
    position.word = 0;
    position.number = 0;
}

/// Reads the tokens of a line, calling `on_token` at the end of each with `position.token`, `word`
/// and `number` set; whether the line ended. With `key_first` the first token is a key, and only
/// passed over.
#[inline]
pub fn fields(
    position: &mut Position,
    rest: &mut &[u8],
    key_first: bool,
    mut on_token: impl FnMut(&mut Position),
) -> bool {
    loop {
        if key_first && position.token == 1 {
            let length = graphic_prefix(rest);
            if length > 0 {
                position.word = 1;
                *rest = after(rest, length);
            }
        }
        let Some((&byte, tail)) = rest.split_first() else { return false };
        *rest = tail;
        match byte {
            b' ' | b'\n' => {
                if position.word != 0 {
                    on_token(position);
                    position.token = position.token.saturating_add(1);
                    begin_token(position);
                }
                if byte == b'\n' {
                    return true;
                }
            }
            b'\r' => {}
            _ => {
                position.word = position.word << 8 | u64::from(byte);
                position.number = add_digit(position.number, byte);
            }
        }
    }
}

/// How many bytes come before the first blank or control character, eight at
/// a time.
#[inline]
fn graphic_prefix(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let mut length = 0;
    let mut rest = bytes;
    while let Some((eight, tail)) = rest.split_first_chunk::<8>() {
        let eight = u64::from_le_bytes(*eight);
        // The top bit of each byte below 0x21; exact up to the first of them.
        let blanks = eight.wrapping_sub(ONES * 0x21) & !eight & (ONES * 0x80);
        if blanks != 0 {
            return length + blanks.trailing_zeros() as usize / 8;
        }
        length += 8;
        rest = tail;
    }
    length + rest.iter().take_while(|byte| **byte > b' ').count()
}

/// The number with one digit more; an invalid one stays invalid.
#[inline]
fn add_digit(number: u64, byte: u8) -> u64 {
    match byte {
        b'0'..=b'9' if number <= LARGEST => {
            let grown = number * 10 + u64::from(byte - b'0');
            if grown <= LARGEST { grown } else { NOT_A_NUMBER }
        }
        b'\r' => number,
        _ => NOT_A_NUMBER,
    }
}

/// Reads a decimal number up to the end of its line: `None` while it has not
/// ended, [`NOT_A_NUMBER`] when it is negative or none.
#[inline]
pub fn number(position: &mut Position, rest: &mut &[u8]) -> Option<u64> {
    while let Some((&byte, tail)) = rest.split_first() {
        *rest = tail;
        if byte == b'\n' {
            return Some(std::mem::take(&mut position.number));
        }
        position.number = add_digit(position.number, byte);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::graphic_prefix;

    #[test]
    fn key_ends_at_the_first_blank() {
        for length in 0..40 {
            for end in [b' ', b'\r', b'\n', 0] {
                for fill in [b'!', b'k', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![fill; length];
                    assert_eq!(graphic_prefix(&bytes), length);
                    bytes.push(end);
                    bytes.extend(b" \x21\x20kkkkkkkkkk");
                    assert_eq!(graphic_prefix(&bytes), length, "{bytes:?}");
                }
            }
        }
    }
}
