//! Checks and counts the answers of one thread.

use model::Op;
use store::StoreError;
use workload::ValueMismatch;

use crate::outcome::{AnswerFailure, DriveError, FailureKind};

/// Failures in a row after which a phase ends: more of them would not be a measurement.
pub(crate) const MAX_CONSECUTIVE_FAILURES: u64 = 1000;

/// Counts of one thread; merged when the phase ends.
#[derive(Debug, Default)]
pub(crate) struct AnswerCounts {
    pub(crate) verified: u64,
    /// Keys of reads that were found, those that were not where that is no failure, and those that
    /// were missing although they had to be there.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) missing: u64,
    pub(crate) bytes_read: u64,
    pub(crate) scanned: u64,
    pub(crate) failures: Vec<AnswerFailure>,
    consecutive_failures: u64,
}

/// What a window has counted until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunningCounts {
    /// Operations that failed, wrong answers included.
    pub failures: u64,
    /// Keys that reads found.
    pub hits: u64,
    /// Keys that reads did not find, whether or not that is a failure.
    pub misses: u64,
}

impl RunningCounts {
    /// The sum with another thread's or client's.
    pub fn plus(self, other: RunningCounts) -> RunningCounts {
        RunningCounts {
            failures: self.failures.saturating_add(other.failures),
            hits: self.hits.saturating_add(other.hits),
            misses: self.misses.saturating_add(other.misses),
        }
    }
}

impl AnswerCounts {
    /// What was counted until now.
    #[cold]
    pub(crate) fn running(&self) -> RunningCounts {
        RunningCounts {
            failures: self.failures.iter().map(|failure| failure.count).sum(),
            hits: self.hits,
            misses: self.misses + self.missing,
        }
    }

    /// Counts a value that the store returned for a key, and whether it is one that was written.
    #[inline]
    pub(crate) fn count_value(
        &mut self,
        key: &[u8],
        value: &[u8],
        verified: Result<(), ValueMismatch>,
    ) {
        self.bytes_read += (key.len() + value.len()) as u64;
        self.verified += u64::from(verified.is_ok());
        self.check(key, verified);
    }

    /// Notes a wrong value, also in an answer that does not count.
    #[inline]
    pub(crate) fn check(&mut self, key: &[u8], verified: Result<(), ValueMismatch>) {
        if let Err(wrong) = verified {
            self.fail(FailureKind::Wrong, || format!("{}: {wrong}", shown(key)));
        }
    }

    #[cold]
    pub(crate) fn fail(&mut self, kind: FailureKind, words: impl FnOnce() -> String) {
        match self.failures.iter_mut().find(|failure| failure.kind == kind) {
            Some(failure) => failure.count += 1,
            None => self.failures.push(AnswerFailure { kind, count: 1, first: words() }),
        }
    }

    /// Counts a store's error; a full disk, a broken plug-in or too many failures in a row end the
    /// phase.
    #[cold]
    pub(crate) fn store_failed(&mut self, op: Op, error: StoreError) -> Result<(), DriveError> {
        if matches!(error, StoreError::Full(_) | StoreError::Broken(_)) {
            return Err(error.into());
        }
        let kind = match error {
            StoreError::Unanswered(_) => FailureKind::Timeout,
            StoreError::Lost(_) => FailureKind::Lost,
            _ => FailureKind::Store,
        };
        self.refused(kind, format!("{op}: {error}"))
    }

    /// Counts a failed operation.
    #[cold]
    pub(crate) fn refused(&mut self, kind: FailureKind, words: String) -> Result<(), DriveError> {
        self.consecutive_failures += 1;
        if self.consecutive_failures >= MAX_CONSECUTIVE_FAILURES {
            return Err(DriveError::Failing { count: self.consecutive_failures, last: words });
        }
        self.fail(kind, || words);
        Ok(())
    }

    /// Counts a failure; returns how many there were in a row.
    #[cold]
    pub(crate) fn count_failure(&mut self) -> u64 {
        self.consecutive_failures += 1;
        self.consecutive_failures
    }

    /// Keeps the failures only.
    pub(crate) fn failures_only(self) -> AnswerCounts {
        AnswerCounts { failures: self.failures, ..AnswerCounts::default() }
    }

    /// Counts a value of a key that was never written.
    #[cold]
    pub(crate) fn count_unexpected(&mut self, key: &[u8]) {
        self.fail(FailureKind::Wrong, || format!("{} exists but was never written", shown(key)));
    }

    /// Counts a missing key that had to be there.
    #[cold]
    pub(crate) fn count_missing(&mut self, key: &[u8]) {
        self.fail(FailureKind::Missing, || format!("{} is missing", shown(key)));
    }

    #[inline(always)]
    pub(crate) fn answered(&mut self) {
        self.consecutive_failures = 0;
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

/// A key for messages.
pub(crate) fn shown(key: &[u8]) -> String {
    format!("key `{}`", key.escape_ascii())
}
