//! What was seen of a knob's effect. That a file reads back as it was written is no proof.

use std::fmt;

use serde::Serialize;

use crate::root::Root;

/// What the machine showed after a knob was turned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofOutcome {
    /// The effect was observed: what was seen.
    Proven(String),
    /// The write was taken, and its effect cannot be seen here: why.
    Unverified(String),
    /// The write was taken and read back, and the machine does otherwise: what was seen.
    Refuted(String),
}

/// The outcome of one knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    pub knob: String,
    pub level: String,
    pub outcome: ProofOutcome,
}

/// Looks for the effect of a plan's writes. It may load the machine for a fraction of a second.
pub type Prove = Box<dyn Fn(&Root) -> ProofOutcome + Send>;

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, seen) = match &self.outcome {
            ProofOutcome::Proven(seen) => ("proven", seen),
            ProofOutcome::Unverified(why) => ("unverified", why),
            ProofOutcome::Refuted(seen) => ("without effect", seen),
        };
        write!(f, "{}={}: {word}: {seen}", self.knob, self.level)
    }
}
