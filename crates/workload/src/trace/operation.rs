//! What a line of a trace asks for.

use std::fmt;

use model::Op;

/// A request of memcached's protocol, as the trace names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
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

impl Operation {
    pub const ALL: [Operation; 11] = [
        Operation::Get,
        Operation::Gets,
        Operation::Set,
        Operation::Add,
        Operation::Replace,
        Operation::Cas,
        Operation::Append,
        Operation::Prepend,
        Operation::Delete,
        Operation::Incr,
        Operation::Decr,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::Gets => "gets",
            Operation::Set => "set",
            Operation::Add => "add",
            Operation::Replace => "replace",
            Operation::Cas => "cas",
            Operation::Append => "append",
            Operation::Prepend => "prepend",
            Operation::Delete => "delete",
            Operation::Incr => "incr",
            Operation::Decr => "decr",
        }
    }

    pub fn from_name(name: &[u8]) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name().as_bytes() == name)
    }

    /// What is asked of a store: a read, a delete, or a write of the whole value for everything
    /// that changes one. (A value to which something was appended could not be verified.)
    pub const fn op(self) -> Op {
        match self {
            Operation::Get | Operation::Gets => Op::Read,
            Operation::Delete => Op::Delete,
            _ => Op::Update,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
