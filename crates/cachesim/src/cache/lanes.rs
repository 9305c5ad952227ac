//! Vectorised search for a tag among the words of a set.

use wide::{i8x16, i16x8, i16x16, i32x8};

/// Words that one vector comparison covers.
pub(super) const LANES: usize = 8;

/// A bit for each word that is `tag`; there are a multiple of [`LANES`] of them, at most 40.
#[inline(always)]
pub(super) fn equal(words: &[u32], tag: u32) -> u64 {
    // Constant lengths compile to a few instructions without a loop.
    match words.as_chunks::<LANES>().0 {
        [a] => eight(a, tag),
        [a, b] => sixteen(a, b, tag),
        [a, b, c] => sixteen(a, b, tag) | eight(c, tag) << 16,
        more => {
            let (pairs, rest) = more.as_chunks::<2>();
            let one = |(at, [a, b]): (usize, &[_; 2])| sixteen(a, b, tag) << (at * 2 * LANES);
            let last = rest.first().map_or(0, |last| eight(last, tag));
            let all = pairs.iter().enumerate().map(one).fold(0, |all, bits| all | bits);
            all | last << (pairs.len() * 2 * LANES)
        }
    }
}

#[inline(always)]
fn eight(words: &[u32; LANES], tag: u32) -> u64 {
    u64::from(same(words, tag).to_bitmask())
}

/// Narrowed to bytes, so that one instruction gathers sixteen bits.
#[inline(always)]
fn sixteen(a: &[u32; LANES], b: &[u32; LANES], tag: u32) -> u64 {
    let (a, b) = (same(a, tag).to_array(), same(b, tag).to_array());
    let both = i16x16::new(std::array::from_fn(|at| if at < 8 { a[at] } else { b[at - 8] }));
    u64::from(i8x16::from_i16x16_saturate(both).to_bitmask())
}

/// Ones where a word is `tag`.
#[inline(always)]
fn same(words: &[u32; LANES], tag: u32) -> i16x8 {
    let words = i32x8::new(words.map(u32::cast_signed));
    i16x8::from_i32x8_saturate(words.simd_eq(i32x8::splat(tag.cast_signed())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_bit() {
        for lanes in [8, 16, 24, 32, 40] {
            let mut words: Vec<u32> = (0..lanes).collect();
            for at in 0..lanes {
                assert_eq!(equal(&words, at), 1 << at);
            }
            assert_eq!(equal(&words, u32::MAX), 0);
            words[1] = 5;
            words[lanes as usize - 1] = 5;
            assert_eq!(equal(&words, 5), 1 << 1 | 1 << 5 | 1 << (lanes - 1));
        }
    }
}
