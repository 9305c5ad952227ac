use super::Facts;
use crate::format;
use crate::root::Root;

const CMDLINE: &str = "/proc/cmdline";
const OS_RELEASE: &str = "/etc/os-release";

/// Boot parameters that affect measurements. Others are not recorded, as a
/// command line also holds addresses, identifiers and secrets.
const RECORDED_PARAMETERS: &[&str] = &[
    "amd_pstate",
    "audit",
    "clocksource",
    "cpufreq.",
    "cpuidle.",
    "cpuidle_haltpoll.",
    "default_hugepagesz",
    "deferred_init",
    "elevator",
    "haltpoll.",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "maxcpus",
    "mem",
    "mitigations",
    "nohz",
    "nohz_full",
    "nopti",
    "nosmt",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "nvme_core.",
    "preempt",
    "processor.",
    "psi",
    "pti",
    "rcu_nocbs",
    "skew_tick",
    "spec_store_bypass_disable",
    "spectre_v2",
    "swiotlb",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "tsx",
];

pub(super) fn add(root: &Root, facts: &mut Facts) {
    facts.file(root, "kernel.release", "/proc/sys/kernel/osrelease");
    facts.file(root, "kernel.version", "/proc/sys/kernel/version");
    facts.add("kernel.parameters", CMDLINE, root.text(CMDLINE).map(|text| parameters(&text)));
    let distribution = root.text(OS_RELEASE).map_err(|error| error.to_string());
    let distribution = distribution.and_then(|text| {
        let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let name = name.ok_or_else(|| format!("{OS_RELEASE} has no PRETTY_NAME"))?;
        Ok(name.trim().trim_matches(['"', '\'']).to_owned())
    });
    facts.add("os.distribution", OS_RELEASE, distribution);
}

/// The recorded parameters in order, and the number of others.
fn parameters(cmdline: &str) -> String {
    // What follows `--` is for init, not for the kernel.
    let words: Vec<&str> = cmdline.split_whitespace().take_while(|word| *word != "--").collect();
    let (telling, others): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| is_recorded(word));
    let mut text = if telling.is_empty() { "none of note".to_owned() } else { telling.join(" ") };
    if !others.is_empty() {
        text += &format!(" ({} not shown)", format::count(others.len(), "other"));
    }
    text
}

fn is_recorded(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or_default();
    RECORDED_PARAMETERS.iter().any(|name| match name.strip_suffix('.') {
        Some(_) => key.starts_with(name),
        None => key == *name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_on_the_command_line_are_not_recorded() {
        let line = "root=UUID=0a1b mitigations=off isolcpus=2-3 quiet \
                    processor.max_cstate=1 token=secret -- --addr 10.0.0.1\n";
        assert_eq!(
            parameters(line),
            "mitigations=off isolcpus=2-3 processor.max_cstate=1 (3 others not shown)"
        );
        assert_eq!(parameters("quiet"), "none of note (1 other not shown)");
    }
}
