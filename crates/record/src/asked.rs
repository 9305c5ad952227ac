use std::fmt;

use model::Op;

/// What was asked where a latency was taken: one kind of operation, or whatever came.
///
/// The client knows each request's kind. Inside an unmodified server only bytes go by, so its
/// latencies are of any request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyScope {
    One(Op),
    Any,
}

impl LatencyScope {
    const ANY: &'static str = "any";

    /// The operation's name, or `any`: what stands in the column `operation`.
    pub const fn name(self) -> &'static str {
        match self {
            LatencyScope::One(op) => op.name(),
            LatencyScope::Any => LatencyScope::ANY,
        }
    }

    /// Reads what [`Asked::name`] writes.
    pub fn from_name(name: &str) -> Option<LatencyScope> {
        if name == LatencyScope::ANY {
            Some(LatencyScope::Any)
        } else {
            Op::from_name(name).map(LatencyScope::One)
        }
    }

    /// The kind of operation, where it is known.
    pub const fn op(self) -> Option<Op> {
        match self {
            LatencyScope::One(op) => Some(op),
            LatencyScope::Any => None,
        }
    }
}

impl From<Op> for LatencyScope {
    fn from(op: Op) -> LatencyScope {
        LatencyScope::One(op)
    }
}

impl fmt::Display for LatencyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for asked in Op::ALL.map(LatencyScope::One).into_iter().chain([LatencyScope::Any]) {
            assert_eq!(LatencyScope::from_name(asked.name()), Some(asked));
        }
        assert_eq!(LatencyScope::from_name("anything"), None);
    }
}
