use std::fmt;

use crate::Op;

/// Which operations a latency distribution covers: one kind, or any.
///
/// The client knows each request's kind. An unmodified server is observed as bytes only, so its
/// latencies cover any request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyScope {
    One(Op),
    Any,
}

impl LatencyScope {
    const ANY: &'static str = "any";

    /// The operation's name, or `any`, as in the column `operation`.
    pub const fn name(self) -> &'static str {
        match self {
            LatencyScope::One(op) => op.name(),
            LatencyScope::Any => LatencyScope::ANY,
        }
    }

    /// Reads what [`LatencyScope::name`] writes.
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
    fn names_round_trip() {
        for scope in Op::ALL.map(LatencyScope::One).into_iter().chain([LatencyScope::Any]) {
            assert_eq!(LatencyScope::from_name(scope.name()), Some(scope));
        }
        assert_eq!(LatencyScope::from_name("anything"), None);
    }
}
