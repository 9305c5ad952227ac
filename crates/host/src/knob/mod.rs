//! What of the machine can be turned, and how it always comes back. A knob is one file here and
//! one line in [`KNOBS`].
//!
//! A knob says which levels it has here, which one it is at, and which writes lead to another:
//! it writes nothing itself. [`Plan::apply`] notes every write in a [`Journal`] before it is
//! done, does it, reads it back, and answers a guard, [`Turned`]. The old values return when the
//! guard goes; when its process is killed, a [`supervisor`] writes them back; when that is
//! killed, too, the next [`Journal::open`] does.

mod affinity;
mod apply;
mod aslr;
mod cat;
mod word_file;
mod cpus;
mod ddio;
mod ddio_ways;
mod drop_caches;
mod error;
mod frequency;
mod hotplug;
mod idle;
mod journal;
mod level;
mod load;
mod mba;
mod memory;
mod models;
mod numa;
mod observed_frequency;
mod online;
mod target;
mod plan;
mod policy;
mod policy_word;
mod proof;
mod resctrl;
mod restore;
mod smt;
mod status;
pub mod supervisor;
mod thp;
mod turbo;
mod turned;
mod uncore;
mod command;
mod write;

use crate::root::Root;
use crate::unavailable::Unavailable;

pub use apply::KnobEvent;
pub use error::{KnobError, KnobRefusal};
pub use journal::{Journal, state_folder};
pub use target::{KnobTarget, TargetPart};
pub use plan::{Knobs, KnobPlan, KnobChange, parse_level};
pub use proof::{ProofOutcome, Proof, Prove};
pub use restore::RestoreOutcome;
pub use status::{KnobStatus, status};
pub use turned::TurnedKnobs;
pub use command::run_under;
pub use write::{RestoreAction, KnobWrite};

/// Every knob, in the order in which they are turned; they are put back in the other. What
/// takes CPUs away stands behind what is set for each CPU.
pub const KNOBS: &[&dyn Knob] = &[
    &thp::Thp,
    &aslr::Aslr,
    &policy_word::GOVERNOR,
    &policy_word::EPP,
    &frequency::Frequency,
    &turbo::Turbo,
    &uncore::Uncore,
    &ddio::Ddio,
    &ddio_ways::DdioWays,
    &idle::Idle,
    &smt::Smt,
    &online::Online,
    &cat::Cat,
    &mba::Mba,
    &cpus::Cpus,
    &memory::Memory,
    &drop_caches::DropCaches,
];

/// What is told of a knob.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct KnobInfo {
    pub name: &'static str,
    /// What it changes.
    pub what: &'static str,
    /// The files or registers that it writes.
    pub mechanism: &'static str,
    /// What a level holds for.
    pub scope: &'static str,
    /// What is looked at to see its effect.
    pub proof: &'static str,
}

/// Something of the machine that can be turned.
pub trait Knob: Sync {
    fn info(&self) -> &'static KnobInfo;

    /// The levels of this machine, as they are written; a form such as `CPUS` or `1GHz..2GHz`
    /// where there are too many to list.
    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable>;

    /// The present level.
    fn read(&self, root: &Root) -> Result<String, Unavailable>;

    /// The writes that lead to a level, and how their effect is seen. It writes nothing.
    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal>;
}
