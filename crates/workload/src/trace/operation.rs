//! The operation of a request of a trace.

use std::fmt;

use model::Op;

/// What a request does, in the words of memcached's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceOp {
    Get,
    Gets,
    Set,
    Add,
    Replace,
    Cas,
    Append,
    Prepend,
    Delete,
    Incr,
    Decr,
    /// Not of memcached: an iterator is moved to a key.
    Seek,
}

impl TraceOp {
    /// Those of memcached's protocol.
    pub const MEMCACHED: [TraceOp; 11] = [
        TraceOp::Get,
        TraceOp::Gets,
        TraceOp::Set,
        TraceOp::Add,
        TraceOp::Replace,
        TraceOp::Cas,
        TraceOp::Append,
        TraceOp::Prepend,
        TraceOp::Delete,
        TraceOp::Incr,
        TraceOp::Decr,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            TraceOp::Get => "get",
            TraceOp::Gets => "gets",
            TraceOp::Set => "set",
            TraceOp::Add => "add",
            TraceOp::Replace => "replace",
            TraceOp::Cas => "cas",
            TraceOp::Append => "append",
            TraceOp::Prepend => "prepend",
            TraceOp::Delete => "delete",
            TraceOp::Incr => "incr",
            TraceOp::Decr => "decr",
            TraceOp::Seek => "seek",
        }
    }

    /// An operation of memcached's protocol.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<TraceOp> {
        if name == b"get" {
            return Some(TraceOp::Get);
        }
        TraceOp::MEMCACHED.into_iter().find(|operation| operation.name().as_bytes() == name)
    }

    /// The operation on a store: a read, a delete, a scan, or a write of the whole value for everything
    /// that changes one. (A value to which something was appended could not be verified.)
    pub const fn op(self) -> Op {
        match self {
            TraceOp::Get | TraceOp::Gets => Op::Read,
            TraceOp::Delete => Op::Delete,
            TraceOp::Seek => Op::Scan,
            _ => Op::Update,
        }
    }
}

impl fmt::Display for TraceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
