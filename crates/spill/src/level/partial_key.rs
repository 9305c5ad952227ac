//! What an index knows of a key without reading the log: all of it (memtable) or its first bytes
//! (page).

use std::cmp::Ordering;

use super::page::MAX_PREFIX_LEN;
use crate::bytes::head_at;

/// The most bytes of a key that a page knows.
pub(crate) const MAX_KNOWN_LEN: usize = MAX_PREFIX_LEN + 8;

/// The start of a key; zeros may stand for bytes beyond its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PartialKey<'a> {
    Whole(&'a [u8]),
    /// The prefix of a page and the eight bytes after it.
    KeyPrefix {
        prefix: &'a [u8],
        head: u64,
    },
}

impl PartialKey<'_> {
    /// Number of known bytes; a whole key counts as longer than any.
    pub(crate) fn len(&self) -> usize {
        match self {
            PartialKey::Whole(_) => usize::MAX,
            PartialKey::KeyPrefix { prefix, .. } => prefix.len() + 8,
        }
    }

    /// Eight known bytes from `offset` on.
    #[inline]
    pub(crate) fn head_at(&self, offset: usize) -> u64 {
        match *self {
            PartialKey::Whole(key) => head_at(key, offset),
            PartialKey::KeyPrefix { prefix, head } => {
                let before = prefix.len().saturating_sub(offset);
                match before {
                    0 => head,
                    1..8 => {
                        let shift = 8 * before as u32;
                        head_at(&prefix[offset..], 0) | head >> shift
                    }
                    _ => head_at(prefix, offset),
                }
            }
        }
    }

    /// The known bytes, at most [`MAX_KNOWN_LEN`], without trailing zeros: a lower bound of the
    /// key.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.untrimmed();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }

    /// The known bytes, at most [`MAX_KNOWN_LEN`]; trailing zeros may lie beyond the key's end.
    pub(crate) fn untrimmed(&self) -> Vec<u8> {
        match *self {
            PartialKey::Whole(key) => key[..key.len().min(MAX_KNOWN_LEN)].to_vec(),
            PartialKey::KeyPrefix { prefix, head } => [prefix, &head.to_be_bytes()].concat(),
        }
    }

    /// Compares two keys as far as they are known; `Equal` if that does not decide.
    pub(crate) fn compare(&self, other: &PartialKey<'_>) -> Ordering {
        if let (PartialKey::Whole(one), PartialKey::Whole(other)) = (self, other) {
            return one.cmp(other);
        }
        let len = self.len().min(other.len());
        let mut offset = 0;
        // The last step compares some bytes again rather than unknown ones.
        loop {
            let at = offset.min(len - 8);
            let order = self.head_at(at).cmp(&other.head_at(at));
            if order != Ordering::Equal || offset + 8 >= len {
                return order;
            }
            offset += 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix_of(key: &[u8], offset: usize) -> PartialKey<'_> {
        PartialKey::KeyPrefix { prefix: &key[..offset], head: head_at(key, offset) }
    }

    proptest! {
        #[test]
        fn partial_keys_compare_like_whole_keys(
            one in prop::collection::vec(0_u8..3, 0..40),
            other in prop::collection::vec(0_u8..3, 0..40),
            offset in 0_usize..30,
            other_skip in 0_usize..30,
            at in 0_usize..30,
        ) {
            let (offset, other_skip) = (offset.min(one.len()), other_skip.min(other.len()));
            let (a, b) = (prefix_of(&one, offset), prefix_of(&other, other_skip));
            for (a, b) in [(a, b), (PartialKey::Whole(&one), b), (a, PartialKey::Whole(&other))] {
                let order = a.compare(&b);
                if order != Ordering::Equal {
                    prop_assert_eq!(order, one.cmp(&other));
                } else {
                    let len = a.len().min(b.len());
                    let padded = |key: &[u8]| {
                        let mut key = key.to_vec();
                        key.resize(100, 0);
                        key[..len].to_vec()
                    };
                    prop_assert_eq!(padded(&one), padded(&other));
                }
            }
            let at = at.min(offset);
            prop_assert_eq!(a.head_at(at), head_at(&one, at));
            prop_assert!(a.bytes() <= one);
        }
    }
}
