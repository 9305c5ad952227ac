//! The CPUs that are online.

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::hotplug::{CPUS, lost_with, online_file};
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo};
use crate::facts::topology;
use crate::root::{Root, RootError};

pub struct Online;

fn present(root: &Root) -> Result<Vec<u32>, RootError> {
    let path = format!("{CPUS}/present");
    let text = root.value(&path)?;
    cpu_list::parse(&text).ok_or_else(|| RootError::malformed(&path, &text, "a list of CPUs"))
}

/// The CPUs that can be taken offline, often all but the boot CPU.
fn pluggable(root: &Root) -> Result<Vec<u32>, Unavailable> {
    let mut cpus = present(root)?;
    cpus.retain(|cpu| root.exists(&online_file(*cpu)));
    if cpus.is_empty() {
        return Err(Unavailable::new(
            format!("no CPU has a file {CPUS}/cpu*/online"),
            "use a kernel with CONFIG_HOTPLUG_CPU; a container may hide the files",
        ));
    }
    Ok(cpus)
}

impl Knob for Online {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "online",
            what: "the CPUs that the machine uses; all others are taken offline",
            mechanism: "/sys/devices/system/cpu/cpu*/online",
            scope: "the machine",
            proof: "the kernel's list of online CPUs, and /proc/stat",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let pluggable = cpu_list::show(&pluggable(root)?);
        let form = format!("CPUS such as 0-3; {pluggable} can be taken offline");
        Ok(vec!["all".to_owned(), form])
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        Ok(cpu_list::show(&topology::online(root)?))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let (pluggable, present) = (pluggable(root)?, present(root)?);
        let online = match level {
            "all" => present.clone(),
            list => cpu_list::parse(list)
                .filter(|cpus| !cpus.is_empty())
                .ok_or_else(|| KnobRefusal::Level("it is not a list of CPUs".to_owned()))?,
        };
        if let Some(cpu) = online.iter().find(|cpu| !present.contains(cpu)) {
            return Err(KnobRefusal::Level(format!("there is no CPU {cpu}")));
        }
        let fixed = |cpu: &&u32| !online.contains(cpu) && !pluggable.contains(cpu);
        if let Some(cpu) = present.iter().find(fixed) {
            return Err(KnobRefusal::Level(format!("CPU {cpu} cannot be taken offline; add it")));
        }
        let mut turns = Vec::new();
        let mut leaving = Vec::new();
        for &cpu in &pluggable {
            let stays = online.contains(&cpu);
            let new = if stays { "1" } else { "0" };
            if let Some(write) = KnobWrite::turn(root, KnobTarget::file(online_file(cpu)), new)? {
                turns.push(write);
                if !stays {
                    leaving.push(cpu);
                }
            }
        }
        let mut writes = lost_with(root, &leaving);
        writes.extend(turns);
        Ok(KnobChange { writes, prove: prove(online) })
    }
}

fn prove(expected: Vec<u32>) -> Prove {
    Box::new(move |root| {
        let online = match topology::online(root) {
            Ok(online) => online,
            Err(error) => return ProofOutcome::Unverified(error.to_string()),
        };
        // A CPU with its own line in /proc/stat is online, whatever the list says.
        let ticking: Vec<u32> = root
            .text("/proc/stat")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.strip_prefix("cpu")?.parse().ok())
            .collect();
        let observed = format!(
            "online: {}; in /proc/stat: {}",
            cpu_list::show(&online),
            if ticking.is_empty() { "none".to_owned() } else { cpu_list::show(&ticking) }
        );
        match online == expected && (ticking.is_empty() || ticking == expected) {
            true if ticking.is_empty() => ProofOutcome::Unverified(observed),
            true => ProofOutcome::Proven(observed),
            false => ProofOutcome::Refuted(observed),
        }
    })
}
