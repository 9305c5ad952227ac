//! The cpufreq policies: groups of CPUs that share a frequency.

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use crate::root::Root;

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";

pub(super) struct Policy {
    pub path: String,
    pub cpus: Vec<u32>,
}

impl Policy {
    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

/// Every policy of the machine.
pub(super) fn all(root: &Root) -> Result<Vec<Policy>, Unavailable> {
    let numbers = root.numbered(POLICIES, "policy").unwrap_or_default();
    if numbers.is_empty() {
        return Err(Unavailable::new(
            format!("{POLICIES} has no policy: the firmware or the hypervisor sets the frequency"),
            "let the operating system control the frequency in the firmware, or use bare metal",
        ));
    }
    let policy = |number: u32| {
        let path = format!("{POLICIES}/policy{number}");
        // Without the file, a policy is that of the CPU it is named after.
        let cpus = root.text(&format!("{path}/affected_cpus")).ok();
        let cpus = cpus.and_then(|text| cpu_list::parse(&text.trim().replace(' ', ",")));
        Policy { path, cpus: cpus.unwrap_or_else(|| vec![number]) }
    };
    Ok(numbers.into_iter().map(policy).collect())
}

/// The policies of some CPUs. A policy is turned as a whole, so all its CPUs must be named.
pub(super) fn of(root: &Root, cpus: Option<&[u32]>) -> Result<Vec<Policy>, KnobRefusal> {
    let mut policies = all(root)?;
    let Some(cpus) = cpus else { return Ok(policies) };
    for policy in &policies {
        let named = policy.cpus.iter().filter(|cpu| cpus.contains(cpu)).count();
        if named != 0 && named != policy.cpus.len() {
            let list = cpu_list::show(&policy.cpus);
            return Err(KnobRefusal::Level(format!(
                "CPUs {list} have one frequency; name all of them"
            )));
        }
    }
    policies.retain(|policy| policy.cpus.iter().any(|cpu| cpus.contains(cpu)));
    if policies.is_empty() {
        return Err(KnobRefusal::Level("no policy is of these CPUs".to_owned()));
    }
    Ok(policies)
}
