//! The operation of a line of a trace.

use std::fmt;

use model::Op;

/// A request of memcached's protocol, as the trace names it.
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
}

impl TraceOp {
    pub const ALL: [TraceOp; 11] = [
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
        }
    }

    pub fn from_name(name: &[u8]) -> Option<TraceOp> {
        TraceOp::ALL.into_iter().find(|operation| operation.name().as_bytes() == name)
    }

    /// The operation on a store: a read, a delete, or a write of the whole value for everything
    /// that changes one. (A value to which something was appended could not be verified.)
    pub const fn op(self) -> Op {
        match self {
            TraceOp::Get | TraceOp::Gets => Op::Read,
            TraceOp::Delete => Op::Delete,
            _ => Op::Update,
        }
    }
}

impl fmt::Display for TraceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
