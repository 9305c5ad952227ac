//! Knobs: settings of the machine that are turned and always put back. A knob is one file here and
//! one line in [`KNOBS`].
//!
//! A knob gives its levels, its present level, and the writes that lead to another level; it writes
//! nothing itself. [`KnobPlan::apply`] notes every write in a [`Journal`] before it is made, reads
//! it back, and returns a guard, [`TurnedKnobs`]. The old values are written back when the guard is
//! dropped; when its process is killed, by a [`supervisor`]; when that is killed, too, by the next
//! [`Journal::open`].

mod affinity;
mod apply;
mod aslr;
mod cat;
mod command;
mod cpus;
mod ddio;
mod ddio_ways;
mod drop_caches;
mod error;
mod frequency;
mod hotplug;
mod idle;
mod interrupts;
mod irq_affinity;
mod journal;
mod journal_entry;
mod level;
mod load;
mod mba;
mod memory;
mod models;
mod numa;
mod observed_frequency;
mod online;
mod plan;
mod policy;
mod policy_word;
mod power_cap;
mod proof;
mod resctrl;
mod restore;
mod smt;
mod status;
pub mod supervisor;
mod target;
mod thp;
mod turbo;
mod turned;
mod uncore;
mod word_file;
mod write;

use model::Unavailable;

use crate::root::Root;

pub use apply::KnobEvent;
pub use command::run_under;
pub use error::{KnobError, KnobRefusal};
pub use journal::{Journal, state_folder};
pub use models::trust_register;
pub use plan::{KnobChange, KnobPlan, Knobs, parse_level};
pub use proof::{Proof, ProofOutcome, Prove};
pub use restore::RestoreOutcome;
pub use status::{KnobStatus, status};
pub use target::{KnobTarget, TargetPart};
pub use turned::TurnedKnobs;
pub use write::{KnobWrite, RestoreAction};

/// Every knob, in the order in which they are turned; they are put back in reverse. Knobs that take
/// CPUs offline follow those that are set for each CPU.
pub const KNOBS: &[&dyn Knob] = &[
    &thp::Thp,
    &aslr::Aslr,
    &policy_word::GOVERNOR,
    &policy_word::EPP,
    &frequency::Frequency,
    &turbo::Turbo,
    &uncore::Uncore,
    &power_cap::PowerCap,
    &ddio::Ddio,
    &ddio_ways::DdioWays,
    &idle::Idle,
    &irq_affinity::IrqAffinity,
    &smt::Smt,
    &online::Online,
    &cat::Cat,
    &mba::Mba,
    &cpus::Cpus,
    &memory::Memory,
    &drop_caches::DropCaches,
];

/// The description of a knob.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct KnobInfo {
    pub name: &'static str,
    /// What it changes.
    pub what: &'static str,
    /// The files or registers that it writes.
    pub mechanism: &'static str,
    /// What a level holds for.
    pub scope: &'static str,
    /// How its effect is verified.
    pub proof: &'static str,
}

/// A setting of the machine that can be turned.
pub trait Knob: Sync {
    fn info(&self) -> &'static KnobInfo;

    /// The levels on this machine; a form such as `CPUS` or `1GHz..2GHz` where there are too many to
    /// list.
    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable>;

    /// The present level.
    fn read(&self, root: &Root) -> Result<String, Unavailable>;

    /// The writes that lead to a level, and the proof of their effect. It writes nothing.
    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal>;
}
