//! Numbers in the text of a trace.

use model::Expiry;

use super::error::{RecordProblem, excerpt};

#[inline]
pub(super) fn number(field: &'static str, text: &[u8]) -> Result<u64, RecordProblem> {
    let wrong = || RecordProblem::Number { field, text: excerpt(text) };
    if text.is_empty() {
        return Err(wrong());
    }
    // Nineteen digits cannot overflow.
    let (safe, rest) = text.split_at(text.len().min(19));
    let mut number = 0u64;
    for byte in safe {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(wrong());
        }
        number = number * 10 + u64::from(digit);
    }
    rest.iter()
        .try_fold(number, |number, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then_some(())?;
            number.checked_mul(10)?.checked_add(u64::from(digit))
        })
        .ok_or_else(wrong)
}

#[inline]
pub(super) fn small(field: &'static str, text: &[u8], most: u64) -> Result<u32, RecordProblem> {
    within(field, number(field, text)?, most)
}

/// A number within a limit, which is below 2^32.
#[inline]
pub(super) fn within(field: &'static str, number: u64, most: u64) -> Result<u32, RecordProblem> {
    match u32::try_from(number) {
        Ok(small) if number <= most => Ok(small),
        _ => Err(RecordProblem::TooLarge { field, number, most }),
    }
}

/// A TTL: 0 is never, and below 0 is at once, as in memcached.
#[inline]
pub(super) fn expiry(text: &[u8]) -> Result<Expiry, RecordProblem> {
    const FIELD: &str = "TTL";
    match text.strip_prefix(b"-") {
        None => small(FIELD, text, u64::from(u32::MAX)).map(Expiry::after),
        Some(digits) => match number(FIELD, digits) {
            Ok(1..) => Ok(Expiry::AtOnce),
            _ => Err(RecordProblem::Number { field: FIELD, text: excerpt(text) }),
        },
    }
}

/// Seconds as nanoseconds.
#[inline]
pub(super) fn seconds(field: &'static str, text: &[u8]) -> Result<u64, RecordProblem> {
    let seconds = number(field, text)?;
    let most = u64::MAX / super::record::SECOND;
    seconds.checked_mul(super::record::SECOND).ok_or(RecordProblem::TooLarge {
        field,
        number: seconds,
        most,
    })
}
