//! Looking for a word among the words of a set, several at a time.

use wide::u32x8;

/// Words that one comparison of vectors looks at.
pub(super) const LANES: usize = 8;

/// A bit for each word that is `tag`; there are a multiple of [`LANES`] of them, at most 40.
#[inline(always)]
pub(super) fn equal(words: &[u32], tag: u32) -> u64 {
    // Numbers that the compiler knows become a few instructions without a loop.
    match words.as_chunks::<LANES>().0 {
        [a] => in_all([a], tag),
        [a, b] => in_all([a, b], tag),
        [a, b, c] => in_all([a, b, c], tag),
        more => in_all(more, tag),
    }
}

#[inline(always)]
fn in_all<'a>(chunks: impl IntoIterator<Item = &'a [u32; LANES]>, tag: u32) -> u64 {
    let bits = chunks
        .into_iter()
        .zip(0..)
        .map(|(chunk, at): (_, usize)| u64::from(eight(chunk, tag)) << (at * LANES));
    bits.fold(0, |all, bits| all | bits)
}

/// A bit for each of eight words that is `tag`.
#[inline(always)]
fn eight(words: &[u32; LANES], tag: u32) -> u32 {
    u32x8::new(*words).simd_eq(u32x8::splat(tag)).to_bitmask()
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
