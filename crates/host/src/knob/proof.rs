//! Observations of a knob's effect. That a file reads back as written is no proof.

use std::fmt;

use serde::Serialize;

use crate::root::Root;

/// The outcome of verifying a knob's effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofOutcome {
    /// The effect was observed; the observation.
    Proven(String),
    /// The write was accepted, and its effect cannot be observed here; the reason.
    Unverified(String),
    /// The write was accepted and read back, but has no effect; the observation.
    Refuted(String),
}

/// The outcome of one knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    pub knob: String,
    pub level: String,
    pub outcome: ProofOutcome,
}

/// Verifies the effect of a plan's writes. It may load the machine for a fraction of a second.
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
