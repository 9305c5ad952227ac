use serde::{Deserialize, Serialize};

/// A fact about a machine, or why it is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Dotted name whose first part is the group: `cpu.model`, `memory.total`.
    pub name: String,
    /// The fact as text, or the reason why it is unknown.
    pub value: Result<String, String>,
    /// The source file.
    pub source: String,
}

/// The machine that a run was measured on: a flat list, so that a new fact is one line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Stable across boots of the same machine, different between machines.
    pub id: String,
    pub facts: Vec<Fact>,
}

impl Machine {
    /// The value of a fact, where it is known.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|fact| fact.name == name)?;
        fact.value.as_deref().ok()
    }
}
