use std::fmt;

use model::Op;

/// What was asked where a latency was taken: one kind of operation, or whatever came.
///
/// The client knows each request's kind. Inside an unmodified server only bytes go by, so its
/// latencies are of any request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    One(Op),
    Any,
}

impl Asked {
    const ANY: &'static str = "any";

    /// The operation's name, or `any`: what stands in the column `operation`.
    pub const fn name(self) -> &'static str {
        match self {
            Asked::One(op) => op.name(),
            Asked::Any => Asked::ANY,
        }
    }

    /// Reads what [`Asked::name`] writes.
    pub fn from_name(name: &str) -> Option<Asked> {
        if name == Asked::ANY { Some(Asked::Any) } else { Op::from_name(name).map(Asked::One) }
    }

    /// The kind of operation, where it is known.
    pub const fn op(self) -> Option<Op> {
        match self {
            Asked::One(op) => Some(op),
            Asked::Any => None,
        }
    }
}

impl From<Op> for Asked {
    fn from(op: Op) -> Asked {
        Asked::One(op)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for asked in Op::ALL.map(Asked::One).into_iter().chain([Asked::Any]) {
            assert_eq!(Asked::from_name(asked.name()), Some(asked));
        }
        assert_eq!(Asked::from_name("anything"), None);
    }
}
