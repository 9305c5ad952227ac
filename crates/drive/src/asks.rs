use workload::{Ask, Stream, Workload};

use model::Op;

/// A source of operations in blocks that threads claim in ascending order.
pub(crate) trait Asks {
    fn seek(&mut self, block: u64);
    /// Number of the first record that this source would insert from here on.
    fn next_insert(&self) -> u64;
    /// Whether it asks for records that are inserted meanwhile, so that `next` must know which.
    fn asks_for_inserted(&self) -> bool;
    fn next(&mut self, acknowledged: u64) -> Option<Ask>;
    fn fingerprint(&self) -> u64;
    fn redirected(&self) -> u64;
}

impl Asks for Stream<'_> {
    fn seek(&mut self, block: u64) {
        Stream::seek(self, block);
    }
    fn next_insert(&self) -> u64 {
        Stream::next_insert(self)
    }
    fn asks_for_inserted(&self) -> bool {
        Stream::asks_for_inserted(self)
    }
    #[inline]
    fn next(&mut self, acknowledged: u64) -> Option<Ask> {
        Stream::next(self, acknowledged)
    }
    fn fingerprint(&self) -> u64 {
        Stream::fingerprint(self)
    }
    fn redirected(&self) -> u64 {
        Stream::redirected(self)
    }
}

/// The load phase: record `i` is operation `i`.
pub(crate) struct Fill<'w> {
    workload: &'w Workload,
    next: u64,
    end: u64,
}

impl<'w> Fill<'w> {
    pub(crate) fn new(workload: &'w Workload) -> Self {
        Fill { workload, next: 0, end: 0 }
    }
}

impl Asks for Fill<'_> {
    fn seek(&mut self, block: u64) {
        self.next = block * workload::BLOCK;
        self.end = self.next + workload::BLOCK;
    }
    fn next_insert(&self) -> u64 {
        self.next
    }
    fn asks_for_inserted(&self) -> bool {
        false
    }
    #[inline]
    fn next(&mut self, _acknowledged: u64) -> Option<Ask> {
        if self.next >= self.end {
            return None;
        }
        let record = self.next;
        self.next += 1;
        let salt = self.workload.load_salt(record);
        Some(Ask { op: Op::Insert, record, salt, scan: 0, keys: 1 })
    }
    fn fingerprint(&self) -> u64 {
        0
    }
    fn redirected(&self) -> u64 {
        0
    }
}
