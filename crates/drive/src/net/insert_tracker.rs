//! Tracks acknowledged inserts that are answered out of order.

use std::collections::VecDeque;

/// Records in ascending order, as drawn, and whether each has been inserted.
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

    /// This thread has inserted all of its records below this number; `next` is the first that it
    /// has not drawn.
    pub(super) fn floor(&self, next: u64) -> u64 {
        self.0.front().map_or(next, |(record, _)| *record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_oldest_insert_in_flight() {
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
