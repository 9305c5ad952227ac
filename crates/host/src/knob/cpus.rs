//! The CPUs on which kvmeter and what it starts may run.

use std::time::Duration;

use model::{Unavailable, cpu_list};

use super::affinity;
use super::error::KnobRefusal;
use super::load;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::{KnobTarget, TargetPart};
use super::write::{KnobWrite, RestoreAction};
use super::{Knob, KnobInfo};
use crate::facts::{numa, topology};
use crate::root::Root;
use crate::unavailable::live_only;

pub struct Cpus;

fn place(root: &Root) -> Result<KnobTarget, Unavailable> {
    match root.is_live() {
        true => Ok(KnobTarget::of(affinity::CALL, TargetPart::Affinity)),
        false => Err(live_only("sched_setaffinity")),
    }
}

impl Knob for Cpus {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "cpus",
            what: "the CPUs of this process and of what it starts: load, server, command",
            mechanism: "sched_setaffinity(2)",
            scope: "this process and its children",
            proof: "a busy thread runs on these CPUs only (getcpu(2))",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        place(root)?;
        let mut levels = vec!["all".to_owned()];
        let nodes = numa::nodes(root).unwrap_or_default();
        let with_cpus = nodes.iter().filter(|node| node.cpus > 0);
        levels.extend(with_cpus.map(|node| format!("node{}", node.number)));
        levels.push(format!("CPUS within {}", cpu_list::show(&topology::online(root)?)));
        Ok(levels)
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        Ok(place(root)?.read(root)?)
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let place = place(root)?;
        let online = topology::online(root)?;
        let cpus = match level {
            "all" => allowed(&online),
            level if level.starts_with("node") => {
                let nodes = numa::nodes(root)?;
                let node = nodes.iter().find(|node| level == format!("node{}", node.number));
                let cpus = node.and_then(|node| cpu_list::parse(&node.cpu_list));
                cpus.ok_or_else(|| KnobRefusal::Level("there is no such node".to_owned()))?
            }
            list => cpu_list::parse(list)
                .ok_or_else(|| KnobRefusal::Level("it is not a list of CPUs".to_owned()))?,
        };
        if cpus.is_empty() {
            return Err(KnobRefusal::Level("no CPU is left".to_owned()));
        }
        if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
            return Err(KnobRefusal::Level(format!("CPU {cpu} is not online")));
        }
        let allowed = allowed(&online);
        if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            let allowed = cpu_list::show(&allowed);
            let text =
                format!("the cpuset of this process allows CPUs {allowed}, and not CPU {cpu}");
            return Err(KnobRefusal::Level(text));
        }
        let (old, new) = (place.read(root)?, cpu_list::show(&cpus));
        let write =
            KnobWrite { place, old: Some(old.clone()), new, after: RestoreAction::Released };
        let writes = if old == write.new { Vec::new() } else { vec![write] };
        Ok(KnobChange { writes, prove: prove(cpus) })
    }
}

/// Those that the control group's cpuset leaves: the kernel cuts a mask to them. A thread of its own
/// finds out, since this one's mask must stay.
fn allowed(online: &[u32]) -> Vec<u32> {
    let mask = online.to_vec();
    let find = move || ::affinity::restrict(&mask).and_then(|()| ::affinity::of_thread());
    match std::thread::spawn(find).join() {
        Ok(Ok(cpus)) => cpus,
        // Then the write itself will say why.
        _ => online.to_vec(),
    }
}

fn prove(cpus: Vec<u32>) -> Prove {
    Box::new(move |_| {
        let mut cpus_seen = Vec::new();
        for _ in 0..20 {
            load::spin(Duration::from_millis(1));
            match ::affinity::current_cpu() {
                Ok(cpu) => cpus_seen.push(cpu),
                Err(error) => return ProofOutcome::Unverified(error.to_string()),
            }
            std::thread::yield_now();
        }
        cpus_seen.sort_unstable();
        cpus_seen.dedup();
        let text = format!("a busy thread ran on {}", cpu_list::show(&cpus_seen));
        match cpus_seen.iter().all(|cpu| cpus.contains(cpu)) {
            true => ProofOutcome::Proven(text),
            false => ProofOutcome::Refuted(text),
        }
    })
}
