//! What an index knows of a key without reading the log: all of it (L0), or its begin (a page).

use std::cmp::Ordering;

use super::page::LONGEST_SKIP;
use crate::bytes::head_at;

/// The most bytes that a page knows of a key.
pub(crate) const MOST: usize = LONGEST_SKIP + 8;

/// The begin of a key: zeros may stand for bytes beyond its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Known<'a> {
    Whole(&'a [u8]),
    /// The prefix of a page and eight bytes behind it.
    Begin {
        prefix: &'a [u8],
        head: u64,
    },
}

impl Known<'_> {
    /// How many bytes are known; a whole key counts as longer than any.
    pub(crate) fn len(&self) -> usize {
        match self {
            Known::Whole(_) => usize::MAX,
            Known::Begin { prefix, .. } => prefix.len() + 8,
        }
    }

    /// Eight bytes from `skip` on, which are known.
    #[inline]
    pub(crate) fn head_at(&self, skip: usize) -> u64 {
        match *self {
            Known::Whole(key) => head_at(key, skip),
            Known::Begin { prefix, head } => {
                let before = prefix.len().saturating_sub(skip);
                match before {
                    0 => head,
                    1..8 => {
                        let shift = 8 * before as u32;
                        head_at(&prefix[skip..], 0) | head >> shift
                    }
                    _ => head_at(prefix, skip),
                }
            }
        }
    }

    /// The known bytes, [`MOST`] at most, without zeros at the end: a key that is not above this
    /// one.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.untrimmed();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }

    /// The known bytes, [`MOST`] at most; the last of them may be zeros beyond the key's end.
    pub(crate) fn untrimmed(&self) -> Vec<u8> {
        match *self {
            Known::Whole(key) => key[..key.len().min(MOST)].to_vec(),
            Known::Begin { prefix, head } => [prefix, &head.to_be_bytes()].concat(),
        }
    }

    /// The order of two keys as far as it is known; `Equal` if it is not.
    pub(crate) fn compare(&self, other: &Known<'_>) -> Ordering {
        if let (Known::Whole(one), Known::Whole(other)) = (self, other) {
            return one.cmp(other);
        }
        let len = self.len().min(other.len());
        let mut skip = 0;
        // The last step looks at bytes again rather than at unknown ones.
        loop {
            let at = skip.min(len - 8);
            let order = self.head_at(at).cmp(&other.head_at(at));
            if order != Ordering::Equal || skip + 8 >= len {
                return order;
            }
            skip += 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn begin(key: &[u8], skip: usize) -> Known<'_> {
        Known::Begin { prefix: &key[..skip], head: head_at(key, skip) }
    }

    proptest! {
        #[test]
        fn what_is_known_is_right(
            one in prop::collection::vec(0_u8..3, 0..40),
            other in prop::collection::vec(0_u8..3, 0..40),
            skip in 0_usize..30,
            other_skip in 0_usize..30,
            at in 0_usize..30,
        ) {
            let (skip, other_skip) = (skip.min(one.len()), other_skip.min(other.len()));
            let (a, b) = (begin(&one, skip), begin(&other, other_skip));
            for (a, b) in [(a, b), (Known::Whole(&one), b), (a, Known::Whole(&other))] {
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
            let at = at.min(skip);
            prop_assert_eq!(a.head_at(at), head_at(&one, at));
            prop_assert!(a.bytes() <= one);
        }
    }
}
