//! What one thread makes of the answers.

use model::Op;
use store::StoreError;

use crate::asks::OperationSource;
use crate::outcome::{AnswerFailure, DriveError, FailureKind};

/// Failures in a row after which going on would measure nothing but the failing.
pub(crate) const MOST_IN_A_ROW: u64 = 1000;

/// Counts of one thread; merged when the phase ends.
#[derive(Debug, Default)]
pub(crate) struct AnswerCounts {
    pub(crate) verified: u64,
    /// Keys of reads that were there, those that were not where that is no failure, and those
    /// that were not although they had to be.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) missing: u64,
    pub(crate) bytes_read: u64,
    pub(crate) scanned: u64,
    pub(crate) failures: Vec<AnswerFailure>,
    in_a_row: u64,
}

impl AnswerCounts {
    /// Checks a value that the store gave for a key.
    #[inline]
    pub(crate) fn check(&mut self, asks: &impl OperationSource, key: &[u8], value: &[u8]) {
        self.bytes_read += (key.len() + value.len()) as u64;
        self.verified += u64::from(self.verify(asks, key, value));
    }

    /// The same for an answer that does not count: it must be right all the same.
    #[inline]
    pub(crate) fn verify(&mut self, asks: &impl OperationSource, key: &[u8], value: &[u8]) -> bool {
        let verified = asks.verify(key, value);
        if let Err(wrong) = &verified {
            self.fail(FailureKind::Wrong, || format!("{}: {wrong}", shown(key)));
        }
        verified.is_ok()
    }

    #[cold]
    pub(crate) fn fail(&mut self, kind: FailureKind, words: impl FnOnce() -> String) {
        match self.failures.iter_mut().find(|failure| failure.kind == kind) {
            Some(failure) => failure.count += 1,
            None => self.failures.push(AnswerFailure { kind, count: 1, first: words() }),
        }
    }

    /// A store's error counts as a failure of the run; a full disk or an unbroken row of
    /// failures ends it.
    #[cold]
    pub(crate) fn store_failed(&mut self, op: Op, error: StoreError) -> Result<(), DriveError> {
        if matches!(error, StoreError::Full(_)) {
            return Err(error.into());
        }
        self.refused(FailureKind::Store, format!("{op}: {error}"))
    }

    /// An operation that came to nothing.
    #[cold]
    pub(crate) fn refused(&mut self, kind: FailureKind, words: String) -> Result<(), DriveError> {
        self.in_a_row += 1;
        if self.in_a_row >= MOST_IN_A_ROW {
            return Err(DriveError::Failing { count: self.in_a_row, last: words });
        }
        self.fail(kind, || words);
        Ok(())
    }

    /// One more time that something failed where an answer was due: how often in a row.
    #[cold]
    pub(crate) fn failed_again(&mut self) -> u64 {
        self.in_a_row += 1;
        self.in_a_row
    }

    /// The same failures, and nothing else.
    pub(crate) fn failures_only(self) -> AnswerCounts {
        AnswerCounts { failures: self.failures, ..AnswerCounts::default() }
    }

    /// A key that was never written has a value.
    #[cold]
    pub(crate) fn invented(&mut self, key: &[u8]) {
        self.fail(FailureKind::Wrong, || format!("{} is there and was never written", shown(key)));
    }

    /// A key that had to be there was not.
    #[cold]
    pub(crate) fn not_there(&mut self, key: &[u8]) {
        self.fail(FailureKind::Missing, || format!("{} is not there", shown(key)));
    }

    #[inline(always)]
    pub(crate) fn answered(&mut self) {
        self.in_a_row = 0;
    }

    pub(crate) fn merge(&mut self, other: AnswerCounts) {
        self.verified += other.verified;
        self.hits += other.hits;
        self.misses += other.misses;
        self.missing += other.missing;
        self.bytes_read += other.bytes_read;
        self.scanned += other.scanned;
        for failure in other.failures {
            match self.failures.iter_mut().find(|mine| mine.kind == failure.kind) {
                Some(mine) => mine.count += failure.count,
                None => self.failures.push(failure),
            }
        }
    }
}

/// A key as a person reads it.
pub(crate) fn shown(key: &[u8]) -> String {
    format!("key `{}`", key.escape_ascii())
}
