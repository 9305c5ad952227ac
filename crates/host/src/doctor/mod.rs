//! Checks for what makes a measurement on this machine doubtful or impossible.
//! Data only: rendering is done elsewhere.

mod counters;
mod cpu;
mod instruments;
mod isolation;
mod knobs;
mod memory;
mod storage;

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::probe::Context;
use crate::root::Root;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorState {
    /// In order for a measurement.
    Ok,
    /// It affects measurements; keep it in mind when reading results.
    Note,
    /// It cannot be measured or found out here.
    Unavailable,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorCheck {
    /// Unique within its group: `governor`.
    pub name: String,
    /// `cpu`, `isolation`, `memory`, `storage`, `instruments`, `signals` or `knobs`.
    pub group: String,
    pub state: DoctorState,
    /// The state of this machine, or why it is not known.
    pub found: String,
    /// Why it matters to a measurement.
    pub why: String,
    /// A way to mend it, unless it is in order.
    pub remedy: Option<String>,
}

/// Every check, group by group.
pub fn doctor(root: &Root, context: &Context) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    cpu::add(root, &mut CheckGroup::new("cpu", &mut checks));
    isolation::add(root, &mut CheckGroup::new("isolation", &mut checks));
    memory::add(root, &mut CheckGroup::new("memory", &mut checks));
    storage::add(root, context, &mut CheckGroup::new("storage", &mut checks));
    counters::add(root, context, &mut CheckGroup::new("instruments", &mut checks));
    instruments::add(root, &mut CheckGroup::new("instruments", &mut checks));
    instruments::add_probes(root, context, &mut CheckGroup::new("signals", &mut checks));
    knobs::add(root, &mut CheckGroup::new("knobs", &mut checks));
    checks
}

/// The checks of one group, as they are added.
struct CheckGroup<'a> {
    name: &'static str,
    checks: &'a mut Vec<DoctorCheck>,
}

impl<'a> CheckGroup<'a> {
    fn new(name: &'static str, checks: &'a mut Vec<DoctorCheck>) -> Self {
        CheckGroup { name, checks }
    }

    fn ok(&mut self, name: &str, found: impl Into<String>, why: &str) {
        self.push(name, DoctorState::Ok, found.into(), why, None);
    }

    fn note(&mut self, name: &str, found: impl Into<String>, why: &str, remedy: &str) {
        self.push(name, DoctorState::Note, found.into(), why, Some(remedy));
    }

    fn unavailable(&mut self, name: &str, reason: impl Display, why: &str, remedy: &str) {
        self.push(name, DoctorState::Unavailable, reason.to_string(), why, Some(remedy));
    }

    /// In order if `good`, else a note.
    fn judge(&mut self, name: &str, good: bool, found: impl Into<String>, why: &str, remedy: &str) {
        if good { self.ok(name, found, why) } else { self.note(name, found, why, remedy) }
    }

    fn push(
        &mut self,
        name: &str,
        state: DoctorState,
        found: String,
        why: &str,
        remedy: Option<&str>,
    ) {
        self.checks.push(DoctorCheck {
            name: name.to_owned(),
            group: self.name.to_owned(),
            state,
            found,
            why: why.to_owned(),
            remedy: remedy.map(str::to_owned),
        });
    }
}
