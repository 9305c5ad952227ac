//! Looking for a word among the words of a set, several at a time.

use wide::u32x8;

/// Words that one comparison of vectors looks at.
pub(super) const LANES: usize = 8;

/// A bit for each word that is `tag`; there are a multiple of [`LANES`] of them, at most 40.
#[inline(always)]
pub(super) fn equal(words: &[u32], tag: u32) -> u64 {
    let mut all = 0;
    // Numbers that the compiler knows become a few instructions without a loop.
    match words.len() {
        8 => all = chunks::<1>(words, tag),
        16 => all = chunks::<2>(words, tag),
        24 => all = chunks::<3>(words, tag),
        _ => {
            for (at, chunk) in words.as_chunks::<LANES>().0.iter().enumerate() {
                all |= u64::from(eight(chunk, tag)) << (at * LANES);
            }
        }
    }
    all
}

#[inline(always)]
fn chunks<const N: usize>(words: &[u32], tag: u32) -> u64 {
    let Some(chunks) = words.as_chunks::<LANES>().0.first_chunk::<N>() else { return 0 };
    let mut all = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        all |= u64::from(eight(chunk, tag)) << (at * LANES);
    }
    all
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
