//! What makes a measurement on this machine doubtful, and what cannot be
//! measured on it at all. Data only: rendering is done elsewhere.

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

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As a measurement wants it.
    Ok,
    /// It changes what is measured; results should be read with it in mind.
    Note,
    /// It cannot be measured, or found out, here.
    Unavailable,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Unique within its group: `governor`.
    pub name: String,
    /// `cpu`, `isolation`, `memory`, `storage`, `instruments`, `signals` or `knobs`.
    pub group: String,
    pub state: State,
    /// What is so on this machine, or why that is not known.
    pub found: String,
    /// Why it matters to a measurement.
    pub why: String,
    /// What to do about it, unless it is in order.
    pub remedy: Option<String>,
}

/// Every check, group by group.
pub fn doctor(root: &Root, context: &Context) -> Vec<Check> {
    let mut checks = Vec::new();
    cpu::add(root, &mut Group::new("cpu", &mut checks));
    isolation::add(root, &mut Group::new("isolation", &mut checks));
    memory::add(root, &mut Group::new("memory", &mut checks));
    storage::add(root, context, &mut Group::new("storage", &mut checks));
    counters::add(root, context, &mut Group::new("instruments", &mut checks));
    instruments::add(root, &mut Group::new("instruments", &mut checks));
    instruments::add_probes(root, context, &mut Group::new("signals", &mut checks));
    knobs::add(root, &mut Group::new("knobs", &mut checks));
    checks
}

/// The checks of one group, as they are added.
struct Group<'a> {
    name: &'static str,
    checks: &'a mut Vec<Check>,
}

impl<'a> Group<'a> {
    fn new(name: &'static str, checks: &'a mut Vec<Check>) -> Self {
        Group { name, checks }
    }

    fn ok(&mut self, name: &str, found: impl Into<String>, why: &str) {
        self.push(name, State::Ok, found.into(), why, None);
    }

    fn note(&mut self, name: &str, found: impl Into<String>, why: &str, remedy: &str) {
        self.push(name, State::Note, found.into(), why, Some(remedy));
    }

    fn unavailable(&mut self, name: &str, reason: impl Display, why: &str, remedy: &str) {
        self.push(name, State::Unavailable, reason.to_string(), why, Some(remedy));
    }

    /// In order where `good`, else worth a note.
    fn judge(&mut self, name: &str, good: bool, found: impl Into<String>, why: &str, remedy: &str) {
        if good { self.ok(name, found, why) } else { self.note(name, found, why, remedy) }
    }

    fn push(&mut self, name: &str, state: State, found: String, why: &str, remedy: Option<&str>) {
        self.checks.push(Check {
            name: name.to_owned(),
            group: self.name.to_owned(),
            state,
            found,
            why: why.to_owned(),
            remedy: remedy.map(str::to_owned),
        });
    }
}
