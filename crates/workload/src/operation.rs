//! One operation, and the blocks in which threads take them.

use model::Op;

/// Operations of a block: enough to make taking one cheap, few enough that threads end together.
pub const BLOCK: u64 = 64;

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub op: Op,
    /// The record that is read, written or inserted, or the first of a scan.
    pub record: u64,
    /// The version of the value, where one is written. Different for every operation.
    pub salt: u64,
    /// Records of a scan, 0 for other operations.
    pub scan: u32,
    /// Keys of a read, 1 for other operations; see [`Workload::nth`](crate::Workload::nth).
    pub keys: u32,
}
