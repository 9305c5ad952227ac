//! Which inserts are acknowledged, where they are answered out of their order.

use std::collections::VecDeque;

/// Records in the order in which they were drawn, which is ascending, and whether each is in.
#[derive(Debug, Default)]
pub(super) struct InsertTracker(VecDeque<(u64, bool)>);

impl InsertTracker {
    pub(super) fn begin(&mut self, record: u64) {
        self.0.push_back((record, false));
    }

    pub(super) fn end(&mut self, record: u64) {
        if let Ok(at) = self.0.binary_search_by_key(&record, |(record, _)| *record) {
            self.0[at].1 = true;
        }
        while self.0.front().is_some_and(|(_, ended)| *ended) {
            self.0.pop_front();
        }
    }

    /// Every record below it that was this thread's to insert is in the store; `next` is the
    /// first that it has not drawn.
    pub(super) fn floor(&self, next: u64) -> u64 {
        self.0.front().map_or(next, |(record, _)| *record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_oldest_that_is_under_way() {
        let mut inserts = InsertTracker::default();
        assert_eq!(inserts.floor(5), 5);
        for record in [5, 8, 9] {
            inserts.begin(record);
        }
        inserts.end(8);
        assert_eq!(inserts.floor(10), 5);
        inserts.end(5);
        assert_eq!(inserts.floor(10), 9);
        inserts.end(9);
        assert_eq!(inserts.floor(10), 10);
    }
}
