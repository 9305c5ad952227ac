//! Keys spread over several databases or tables.

/// Which of `many` databases or tables a key lies in: eight bytes a step, each folded into the
/// high and low half of a 128-bit product. It decides where data lies, so it must never change.
#[inline]
pub(super) fn spread(key: &[u8], many: usize) -> usize {
    if many == 1 {
        return 0;
    }
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let fold = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(ODD);
        (product as u64) ^ (product >> 64) as u64
    };
    let mut hash = fold(ODD, key.len() as u64);
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        hash = fold(hash, word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    let rest = words.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    hash = fold(fold(hash, rest), ODD);
    ((u128::from(hash) * many as u128) >> 64) as usize
}
