//! Parsers that the codecs share: whole lines and decimal numbers in bytes that may end anywhere.

use super::error::{WireError, excerpt};
use super::{Kind, Refusal, Response};

/// The longest line that is no value: far above what any server sends, error messages included.
pub(super) const LONGEST_LINE: usize = 16 << 10;

/// Why nothing was parsed.
#[derive(Debug)]
pub(super) enum ParseError {
    /// At least so many bytes are needed, counted from the start of the answer.
    Incomplete(usize),
    /// Boxed to keep the good path's results small.
    Invalid(Box<WireError>),
}

pub(super) type ParseResult<T> = Result<T, ParseError>;

impl From<WireError> for ParseError {
    fn from(error: WireError) -> Self {
        ParseError::Invalid(Box::new(error))
    }
}

#[cold]
pub(super) fn garbage(expected: &'static str, got: &[u8]) -> ParseError {
    WireError::Garbage { expected, got: excerpt(got) }.into()
}

#[cold]
pub(super) fn out_of_step(expected: impl Into<String>, got: &[u8]) -> ParseError {
    WireError::OutOfStep { expected: expected.into(), got: format!("`{}`", excerpt(got)) }.into()
}

#[cold]
pub(super) fn other_key(expected: &[u8], got: &[u8]) -> ParseError {
    WireError::OtherKey { expected: excerpt(expected), got: excerpt(got) }.into()
}

#[cold]
pub(super) fn too_long(what: &'static str, bytes: u64, limit: usize) -> ParseError {
    WireError::TooLong { what, bytes, limit }.into()
}

#[cold]
pub(super) fn refused(why: Refusal, words: &[u8]) -> Response {
    Response::Refused { why, words: excerpt(words) }
}

/// The expected answer, for a message.
#[cold]
pub(super) fn expected_answer(kind: Kind) -> String {
    format!("the answer to a {kind}")
}

/// The line that begins at `at`, without its end, and where the next one begins.
#[inline]
pub(super) fn line<'a>(
    bytes: &'a [u8],
    at: usize,
    expected: &'static str,
) -> ParseResult<(&'a [u8], usize)> {
    let rest = bytes.get(at..).unwrap_or_default();
    let window = &rest[..rest.len().min(LONGEST_LINE)];
    match memchr::memchr(b'\n', window) {
        Some(end) if end > 0 && window[end - 1] == b'\r' => Ok((&window[..end - 1], at + end + 1)),
        Some(end) => Err(garbage(expected, &window[..=end])),
        None if rest.len() >= LONGEST_LINE => {
            Err(too_long("a line", rest.len() as u64, LONGEST_LINE))
        }
        None => Err(ParseError::Incomplete(
            bytes.len().max(at) + 1 + usize::from(!rest.ends_with(b"\r")),
        )),
    }
}

/// An unsigned number at `at`, and the end of its digits; the byte after it has been received.
/// Twenty digits or more are an error.
#[inline]
pub(super) fn decimal(
    bytes: &[u8],
    at: usize,
    expected: &'static str,
) -> ParseResult<(u64, usize)> {
    let mut number: u64 = 0;
    let mut end = at;
    loop {
        let Some(&byte) = bytes.get(end) else {
            // The line's end follows at least.
            return Err(ParseError::Incomplete(bytes.len() + 1));
        };
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if end - at == 19 {
            return Err(garbage(expected, &bytes[at..=end]));
        }
        number = number * 10 + u64::from(digit);
        end += 1;
    }
    match end == at {
        true => Err(garbage(expected, &bytes[at..])),
        false => Ok((number, end)),
    }
}

/// The length of a value, checked against what any value may have.
#[inline]
pub(super) fn length(number: u64) -> ParseResult<usize> {
    match number <= super::LONGEST_VALUE as u64 {
        true => Ok(number as usize),
        false => Err(too_long("a value", number, super::LONGEST_VALUE)),
    }
}

/// Checks the two bytes that end a line or a value at `at`, if received. Returns the position after
/// them.
#[inline]
pub(super) fn line_end(bytes: &[u8], at: usize, expected: &'static str) -> ParseResult<usize> {
    match bytes.get(at..at + 2) {
        Some(b"\r\n") => Ok(at + 2),
        Some(other) => Err(garbage(expected, other)),
        None => match bytes.get(at) {
            None | Some(b'\r') => Err(ParseError::Incomplete(at + 2)),
            Some(other) => Err(garbage(expected, &[*other])),
        },
    }
}

/// A value of `length` bytes at `at` and its line end.
#[inline]
pub(super) fn value<'a>(
    bytes: &'a [u8],
    at: usize,
    length: usize,
    expected: &'static str,
) -> ParseResult<(&'a [u8], usize)> {
    let end = at + length;
    let next = line_end(bytes, end, expected)?;
    Ok((&bytes[at..end], next))
}

/// Appends a number in decimal digits.
#[inline]
pub(super) fn put_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_trip() {
        for number in [0, 7, 10, 99, 100, 65_535, 4_294_967_295, 9_999_999_999_999_999_999] {
            let mut text = Vec::new();
            put_decimal(number, &mut text);
            assert_eq!(text, number.to_string().as_bytes());
            text.push(b'\r');
            let (back, end) = decimal(&text, 0, "a number").expect("a number");
            assert_eq!((back, end), (number, text.len() - 1));
        }
    }

    #[test]
    fn number_length_is_limited() {
        assert!(matches!(decimal(b"12", 0, "a number"), Err(ParseError::Incomplete(3))));
        assert!(matches!(decimal(b"x", 0, "a number"), Err(ParseError::Invalid(_))));
        assert!(matches!(decimal(&[b'1'; 30], 0, "a number"), Err(ParseError::Invalid(_))));
    }

    #[test]
    fn line_length_is_limited() {
        assert!(matches!(line(b"ab", 0, "a line"), Err(ParseError::Incomplete(4))));
        assert!(matches!(line(b"ab\r", 0, "a line"), Err(ParseError::Incomplete(4))));
        assert!(matches!(line(b"ab\n", 0, "a line"), Err(ParseError::Invalid(_))));
        assert!(matches!(line(&[b'a'; LONGEST_LINE], 0, "a line"), Err(ParseError::Invalid(_))));
        let (text, next) = line(b"ab\r\ncd\r\n", 4, "a line").expect("a line");
        assert_eq!((text, next), (&b"cd"[..], 8));
    }
}
