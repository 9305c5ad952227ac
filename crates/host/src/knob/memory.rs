//! The nodes from which kvmeter and what it starts get memory.

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::numa as policy;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::{KnobTarget, TargetPart};
use super::write::{KnobWrite, RestoreAction};
use super::{Knob, KnobInfo};
use crate::facts::numa;
use crate::root::Root;
use crate::unavailable::live_only;

pub struct Memory;

fn place(root: &Root) -> Result<KnobTarget, Unavailable> {
    match root.is_live() {
        true => Ok(KnobTarget::of(policy::CALL, TargetPart::MemoryPolicy)),
        false => Err(live_only("set_mempolicy")),
    }
}

/// The nodes that have memory.
fn nodes(root: &Root) -> Result<Vec<u32>, Unavailable> {
    let nodes = numa::nodes(root)?;
    Ok(nodes.iter().filter(|node| node.memory > 0).map(|node| node.number).collect())
}

impl Knob for Memory {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "memory",
            what: "the nodes from which this process and what it starts get memory",
            mechanism: "set_mempolicy(2)",
            scope: "this process and its children, for memory that is touched from then on",
            proof: "the nodes of pages that are touched (get_mempolicy(2))",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        place(root)?.read(root)?;
        let mut levels = vec!["default".to_owned(), "interleave".to_owned()];
        levels.extend(nodes(root)?.iter().map(|node| format!("node{node}")));
        Ok(levels)
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        Ok(place(root)?.read(root)?)
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let place = place(root)?;
        super::word_file::check(level, &self.levels(root)?)?;
        let all = nodes(root)?;
        let number = level.strip_prefix("node").and_then(|number| number.parse().ok());
        let (new, allowed) = match (level, number) {
            ("interleave", _) => (format!("interleave:{}", cpu_list::show(&all)), all),
            (_, Some(node)) => (format!("bind:{node}"), vec![node]),
            _ => (policy::DEFAULT.to_owned(), all),
        };
        let old = place.read(root)?;
        let write =
            KnobWrite { place, old: Some(old.clone()), new, after: RestoreAction::Released };
        let writes = if old == write.new { Vec::new() } else { vec![write] };
        Ok(KnobChange { writes, prove: prove(allowed) })
    }
}

fn prove(allowed: Vec<u32>) -> Prove {
    Box::new(move |_| match policy::nodes_of_new_memory() {
        Ok(seen) => {
            let text = format!("touched pages lie on nodes {}", cpu_list::show(&seen));
            match seen.iter().all(|node| allowed.contains(node)) {
                true => ProofOutcome::Proven(text),
                false => ProofOutcome::Refuted(text),
            }
        }
        Err(error) => ProofOutcome::Unverified(error.to_string()),
    })
}
