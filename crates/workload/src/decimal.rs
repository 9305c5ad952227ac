//! Decimal digits of a `u64` without a loop of divisions.

/// Digits that [`digits`] writes: more than the 20 of the largest `u64`, for an even split.
pub const WIDTH: usize = 24;

/// Eight digits, the first in the lowest byte, of a number below 10^8.
///
/// The number is halved three times (4 + 4, 2 + 2, 1 + 1 digits) and each step treats all lanes
/// of the word at once; the divisions are multiplications by a rounded reciprocal that is exact
/// in the range of the lane.
#[inline(always)]
const fn eight(x: u64) -> u64 {
    let fours = (x / 10_000) | ((x % 10_000) << 32);
    // floor(v / 100) = v * 10486 >> 20 for v < 10^4.
    let high = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = high | ((fours - high * 100) << 16);
    // floor(v / 10) = v * 103 >> 10 for v < 100.
    let high = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    high | ((twos - high * 10) << 8)
}

/// The number in [`WIDTH`] zero-padded ASCII digits, and how many of them it needs.
#[inline(always)]
pub fn digits(x: u64) -> ([u8; WIDTH], usize) {
    const E8: u64 = 100_000_000;
    let words = [eight(x / (E8 * E8)), eight(x / E8 % E8), eight(x % E8)];
    let mut text = [0; WIDTH];
    for (slot, word) in text.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *slot = (word | 0x3030_3030_3030_3030).to_le_bytes();
    }
    let zeros = |word: u64| (word.trailing_zeros() / 8) as usize;
    let leading = match words {
        [0, 0, low] => 16 + zeros(low).min(7),
        [0, middle, _] => 8 + zeros(middle),
        [high, _, _] => zeros(high),
    };
    (text, WIDTH - leading)
}

/// How many digits a number has; zero has one.
pub const fn width(x: u64) -> u32 {
    match x.checked_ilog10() {
        Some(log) => log + 1,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_the_standard_library_writes() {
        let mut numbers: Vec<u64> = (0..20_000).chain([u64::MAX, u64::MAX - 1]).collect();
        for power in 1..20 {
            let base = 10u64.pow(power);
            numbers.extend([base - 1, base, base + 1, base / 3, base.wrapping_mul(7)]);
        }
        numbers.extend((0..20_000).map(|i| model::random::mix(i) >> (i % 64)));
        for x in numbers {
            let (text, count) = digits(x);
            assert_eq!(text.as_slice(), format!("{x:024}").as_bytes());
            assert_eq!(&text[WIDTH - count..], x.to_string().as_bytes());
            assert_eq!(count, width(x) as usize);
        }
    }
}
