//! The record of an execution, which begins a results file.

use std::collections::BTreeSet;
use std::path::Path;

use model::{Execution, Machine};
use study::Plan;

use crate::knobs::KnobEffects;

/// Now, as it is written in results files.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The execution record that begins a results file, with the current state of the machine and the
/// effects of its knobs.
pub fn execution(plan: &Plan, command: Vec<String>, knobs: &KnobEffects) -> Execution {
    let command = command.iter().map(|word| model::masked(word).into_owned()).collect();
    let root = &plan.probes.root;
    let mut machine: Machine = host::facts(root);
    machine.facts.extend(knobs.facts());
    let mut paths = BTreeSet::new();
    for segment in plan.segments.iter().filter(|s| !s.store.path.as_os_str().is_empty()) {
        if paths.insert(segment.store.path.clone()) {
            machine.facts.extend(host::storage(root, existing(&segment.store.path)));
        }
    }
    Execution {
        id: uuid::Uuid::new_v4().to_string(),
        study: plan.name.clone(),
        question: plan.question.clone(),
        spec: plan.text.clone(),
        seed: plan.seed,
        command,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: now(),
        finished_at: None,
        machine,
        plan: plan.steps().map(|(_, step)| step.planned()).collect(),
        design: plan.design.clone(),
        notes: Vec::new(),
    }
}

/// The longest prefix of a path that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|part| part.exists()).unwrap_or(Path::new("."))
}
