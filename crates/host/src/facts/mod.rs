//! Facts about the machine: one file per subject, each adds its facts to one
//! list. A fact that is not known has a reason instead of a value.

mod arm;
mod block;
pub(crate) mod cache;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod cpu;
pub(crate) mod frequency;
pub(crate) mod identity;
pub(crate) mod idle;
mod kernel;
pub(crate) mod memory;
pub(crate) mod mitigations;
pub(crate) mod numa;
mod toolchain;
pub(crate) mod topology;
pub(crate) mod virtualisation;

use std::fmt::Display;

use model::{Fact, Machine};

use crate::root::{Root, RootError};

/// Every subject, in the order in which facts are shown.
const SUBJECTS: &[fn(&Root, &mut Facts)] = &[
    cpu::add,
    topology::add,
    cache::add,
    frequency::add,
    idle::add,
    memory::add,
    numa::add,
    kernel::add,
    mitigations::add,
    clock::add,
    virtualisation::add,
    cgroup::add,
    block::add,
    toolchain::add,
];

/// The machine under `root`: its id, and every fact with its source.
pub fn facts(root: &Root) -> Machine {
    let mut list = Facts::default();
    let id = identity::add(root, &mut list);
    for add in SUBJECTS {
        add(root, &mut list);
    }
    Machine { id, facts: list.0 }
}

/// The list that the subjects fill.
#[derive(Default)]
pub(crate) struct Facts(pub Vec<Fact>);

impl Facts {
    pub fn add(
        &mut self,
        name: impl Into<String>,
        source: impl Into<String>,
        value: Result<impl Into<String>, impl Display>,
    ) {
        // An empty value counts as not known.
        let value = match value {
            Ok(text) => match text.into() {
                text if text.trim().is_empty() => Err("it is written as empty text".to_owned()),
                text => Ok(text),
            },
            Err(reason) => Err(reason.to_string()),
        };
        self.0.push(Fact { name: name.into(), value, source: source.into() });
    }

    pub fn known(
        &mut self,
        name: impl Into<String>,
        source: impl Into<String>,
        value: impl Into<String>,
    ) {
        self.add(name, source, Ok::<_, RootError>(value));
    }

    pub fn unknown(
        &mut self,
        name: impl Into<String>,
        source: impl Into<String>,
        reason: impl Display,
    ) {
        self.add(name, source, Err::<String, _>(reason));
    }

    /// A fact that is a whole file.
    pub fn file(&mut self, root: &Root, name: &str, path: &str) {
        self.add(name, path, root.value(path));
    }

    /// A fact that is the selected word, in brackets, of a file.
    pub fn selected(&mut self, root: &Root, name: &str, path: &str) {
        self.add(name, path, root.selected(path));
    }
}

/// Distinct values in order, each with its count: `a (12), b (4)`; a single
/// value stands alone.
pub(crate) fn tally(values: impl IntoIterator<Item = String>) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, times)) => *times += 1,
            None => counts.push((value, 1)),
        }
    }
    match counts.as_slice() {
        [(only, _)] => only.clone(),
        many => {
            let parts: Vec<String> = many.iter().map(|(v, n)| format!("{v} ({n})")).collect();
            parts.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies() {
        let of = |values: &[&str]| tally(values.iter().map(|v| (*v).to_owned()));
        assert_eq!(of(&["a", "a"]), "a");
        assert_eq!(of(&["a", "b", "a"]), "a (2), b (1)");
    }

    #[test]
    fn empty_text_is_no_fact() {
        let mut list = Facts::default();
        list.known("a.b", "/x", " \n");
        assert!(list.0[0].value.is_err());
    }
}
