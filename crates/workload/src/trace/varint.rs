//! Numbers in as few bytes as they need: seven bits each, the low ones first (LEB128).

/// Appends a number.
pub(super) fn append(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The number at the beginning and what follows it; `None` where the bytes end before it does, or
/// it is none of 64 bits.
#[inline]
pub(super) fn take(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let fits = at < 9 || *byte <= 1;
            return fits.then(|| (number, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_as_it_was_written() {
        for number in (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            append(number, &mut bytes);
            assert_eq!(take(&bytes), Some((number, &[][..])));
            assert_eq!(take(&bytes[..bytes.len() - 1]), None, "{number}");
        }
        assert_eq!(take(&[0xff; 20]), None);
        assert_eq!(take(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
    }
}
