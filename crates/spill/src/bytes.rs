//! Keys as integers, eight bytes at a time.

/// Eight bytes of a key from `offset` as a big-endian number, zero-padded beyond its end. The
/// numbers order like the keys as far as these bytes tell.
#[inline]
pub(crate) fn head_at(key: &[u8], offset: usize) -> u64 {
    if let Some(eight) = key.get(offset..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_be_bytes(*eight);
    }
    let rest = key.get(offset..).unwrap_or_default();
    let mut eight = [0; 8];
    eight[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(eight)
}

/// Length of the common prefix of two keys.
#[inline]
pub(crate) fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_order_like_keys() {
        assert_eq!(head_at(b"abcdefghij", 2), u64::from_be_bytes(*b"cdefghij"));
        assert_eq!(head_at(b"abc", 1), u64::from_be_bytes(*b"bc\0\0\0\0\0\0"));
        assert_eq!(head_at(b"abc", 9), 0);
        assert_eq!(common_prefix(b"abcd", b"abx"), 2);
        assert_eq!(common_prefix(b"ab", b"abx"), 2);
    }
}
