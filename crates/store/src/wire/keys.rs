/// A flat list of keys in one allocation, which is reused after `clear`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct KeyList {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<usize>,
}

impl KeyList {
    pub fn new() -> KeyList {
        KeyList::default()
    }

    /// Removes all keys; the memory is reused.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Key `index`, counted from 0.
    ///
    /// # Panics
    /// If `index` is out of bounds.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.ends[index]]
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The length of all keys together, in bytes.
    #[inline]
    pub(super) fn total(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn start(&self, index: usize) -> usize {
        match index {
            0 => 0,
            _ => self.ends[index - 1],
        }
    }
}

/// Whether a key has neither spaces nor control bytes, as memcached's line protocols require.
#[inline]
pub(super) fn is_printable(key: &[u8]) -> bool {
    // No early exit, so that it is vectorised.
    key.iter().fold(true, |good, &byte| good & (byte > b' ') & (byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_keys_apart() {
        let mut keys = KeyList::new();
        keys.push(b"one");
        keys.push(b"");
        keys.push(b"three");
        assert_eq!(keys.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"three"]);
        assert_eq!((keys.len(), keys.total(), keys.is_empty()), (3, 8, false));
        keys.clear();
        assert!(keys.is_empty());
        keys.push(b"again");
        assert_eq!(keys.get(0), b"again");
    }

    #[test]
    fn recognises_printable_keys() {
        assert!(is_printable("schlüssel:1".as_bytes()));
        for bad in [0, b'\n', b' ', 0x1f, 0x7f] {
            assert!(!is_printable(&[b'k', bad, b'k']), "{bad}");
        }
    }
}
