//! The keys of one multi-get.

/// Keys one after the other in one buffer, which is kept for the next multi-get.
#[derive(Debug, Default)]
pub struct KeyBatch {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl KeyBatch {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key at an index below [`KeyBatch::len`].
    pub fn key(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.key(index))
    }
}

#[cfg(test)]
mod tests {
    use super::KeyBatch;

    #[test]
    fn keys_come_back_in_their_order() {
        let mut keys = KeyBatch::default();
        for round in 0..2 {
            keys.clear();
            assert!(keys.is_empty() && keys.iter().next().is_none(), "{round}");
            for key in [b"a" as &[u8], b"", b"a", b"long key"] {
                keys.push(key);
            }
            let all: Vec<_> = keys.iter().collect();
            assert_eq!(all, [b"a" as &[u8], b"", b"a", b"long key"]);
            assert_eq!((keys.len(), keys.key(3)), (4, b"long key" as &[u8]));
        }
    }
}
