//! Simultaneous multithreading: the second thread of each core.

use model::Unavailable;

use super::error::KnobRefusal;
use super::hotplug::{CPUS, lost_with, online_file};
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo, word_file};
use crate::facts::topology;
use crate::root::Root;

const CONTROL: &str = "/sys/devices/system/cpu/smt/control";

pub struct Smt;

enum Switch {
    /// The kernel's own.
    Control,
    /// On older kernels the other threads of each core are taken offline.
    Siblings(Vec<u32>),
}

fn switch(root: &Root) -> Result<Switch, Unavailable> {
    let state = root.value(CONTROL);
    match state.as_deref() {
        Ok("on" | "off") => return Ok(Switch::Control),
        Ok("forceoff") => {
            let reason = format!("{CONTROL} is forceoff: SMT is off until the next boot");
            return Err(Unavailable::new(reason, "boot without nosmt=force"));
        }
        Ok(state @ "notsupported") => {
            let reason = format!("{CONTROL} is {state}: a core has one thread here");
            return Err(Unavailable::new(reason, "switch it on in the firmware, if it can"));
        }
        // notimplemented, or no such file.
        _ => {}
    }
    let threads = topology::threads(root)?;
    let others: Vec<u32> = threads
        .iter()
        .filter(|thread| thread.siblings.first().is_some_and(|first| *first != thread.cpu))
        .map(|thread| thread.cpu)
        .collect();
    if others.is_empty() {
        return Err(Unavailable::new(
            "the topology shows one thread a core, and the kernel has no switch for SMT",
            "switch it on in the firmware, if it can",
        ));
    }
    Ok(Switch::Siblings(others))
}

/// Every online thread that is not the first of its core.
fn second_threads(root: &Root) -> Vec<u32> {
    let threads = topology::threads(root).unwrap_or_default();
    let is_second =
        |thread: &&topology::HardwareThread| thread.siblings.first() != Some(&thread.cpu);
    threads.iter().filter(is_second).map(|thread| thread.cpu).collect()
}

impl Knob for Smt {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "smt",
            what: "the second thread of each core",
            mechanism: "/sys/devices/system/cpu/smt/control, or the siblings' online files",
            scope: "the machine",
            proof: "the topology shows no sibling when off, and siblings when on",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        switch(root)?;
        Ok(vec!["on".to_owned(), "off".to_owned()])
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        Ok(match switch(root)? {
            Switch::Control => root.value(CONTROL)?,
            Switch::Siblings(_) => "on".to_owned(),
        })
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        word_file::check(level, &self.levels(root)?)?;
        let off = level == "off";
        let mut writes = Vec::new();
        if off {
            writes.extend(lost_with(root, &second_threads(root)));
        }
        match switch(root)? {
            Switch::Control => {
                writes.extend(KnobWrite::turn(root, KnobTarget::file(CONTROL), level)?)
            }
            Switch::Siblings(others) if off => {
                for cpu in others {
                    writes.extend(KnobWrite::turn(root, KnobTarget::file(online_file(cpu)), "0")?);
                }
            }
            Switch::Siblings(_) => {}
        }
        if writes.iter().all(|write| write.after == super::RestoreAction::Kept) {
            writes.clear();
        }
        Ok(KnobChange { writes, prove: prove(off) })
    }
}

fn prove(off: bool) -> Prove {
    Box::new(move |root| {
        let threads = match topology::threads(root) {
            Ok(threads) => threads,
            Err(error) => return ProofOutcome::Unverified(error.to_string()),
        };
        let shared = threads.iter().filter(|thread| thread.siblings.len() > 1).count();
        let observed = format!(
            "{} CPUs are online, {shared} of them share a core ({CPUS}/cpu*/topology)",
            threads.len()
        );
        match (off, shared == 0) {
            (true, true) | (false, false) => ProofOutcome::Proven(observed),
            _ => ProofOutcome::Refuted(observed),
        }
    })
}
