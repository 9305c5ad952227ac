use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// An operation on a store. The names are those of YCSB's core workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Op {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
    Delete,
}

impl Op {
    pub const COUNT: usize = 6;
    pub const ALL: [Op; Op::COUNT] =
        [Op::Read, Op::Update, Op::Insert, Op::Scan, Op::ReadModifyWrite, Op::Delete];

    /// The name in files, in `--json` and on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Update => "update",
            Op::Insert => "insert",
            Op::Scan => "scan",
            Op::ReadModifyWrite => "read_modify_write",
            Op::Delete => "delete",
        }
    }

    /// Reads a name as `name()` writes it; `rmw` is accepted for its long form.
    pub fn from_name(name: &str) -> Option<Op> {
        if name == "rmw" {
            return Some(Op::ReadModifyWrite);
        }
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether the operation changes what the store holds.
    pub const fn writes(self) -> bool {
        !matches!(self, Op::Read | Op::Scan)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One `T` for each kind of operation, indexed by [`Op`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PerOp<T>(pub [T; Op::COUNT]);

impl<T> PerOp<T> {
    pub fn from_fn(mut make: impl FnMut(Op) -> T) -> Self {
        PerOp(Op::ALL.map(&mut make))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Op, &T)> {
        Op::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Op> for PerOp<T> {
    type Output = T;
    #[inline]
    fn index(&self, op: Op) -> &T {
        &self.0[op as usize]
    }
}

impl<T> IndexMut<Op> for PerOp<T> {
    #[inline]
    fn index_mut(&mut self, op: Op) -> &mut T {
        &mut self.0[op as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
            let json = serde_json::to_string(&op).unwrap();
            assert_eq!(json, format!("\"{}\"", op.name()));
        }
        assert_eq!(Op::from_name("rmw"), Some(Op::ReadModifyWrite));
        assert_eq!(Op::from_name("READ"), None);
    }

    #[test]
    fn index_follows_the_declaration_order() {
        let named = PerOp::from_fn(Op::name);
        for op in Op::ALL {
            assert_eq!(named[op], op.name());
        }
    }
}
