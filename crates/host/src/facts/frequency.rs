use super::{Facts, cpu, tally};
use crate::format;
use crate::parse::field;
use crate::root::{Root, RootError};

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

const NO_CPUFREQ: &str = "the kernel has no cpufreq policy here: the firmware or the hypervisor \
                          sets the frequency";

pub(super) fn add(root: &Root, facts: &mut Facts) {
    let path = |file: &str| format!("{POLICIES}/policy*/{file}");
    let file = "scaling_driver";
    facts.add("frequency.driver", path(file), policies(root, file).map(tally));
    let file = "scaling_governor";
    facts.add("frequency.governor", path(file), governor(root));
    for (name, file) in [("min", "cpuinfo_min_freq"), ("max", "cpuinfo_max_freq")] {
        facts.add(format!("frequency.{name}"), path(file), kilohertz(root, file));
    }
    match kilohertz(root, "base_frequency") {
        Ok(base) => facts.known("frequency.base", path("base_frequency"), base),
        // Intel writes the nominal frequency into the name.
        Err(reason) => match cpu::model(root).ok().and_then(|name| {
            let (_, nominal) = name.rsplit_once('@')?;
            Some(nominal.trim().to_owned())
        }) {
            Some(nominal) => facts.known("frequency.base", cpu::CPUINFO, nominal),
            None => facts.unknown("frequency.base", path("base_frequency"), reason),
        },
    }
    let reported = root.text(cpu::CPUINFO).map_err(|error| error.to_string()).and_then(|text| {
        let megahertz = field(&text, "cpu MHz").and_then(|mhz| mhz.parse::<f64>().ok());
        megahertz
            .map(|mhz| format::kilohertz((mhz * 1000.0).round() as u64))
            .ok_or_else(|| format!("{} has no cpu MHz", cpu::CPUINFO))
    });
    facts.add("frequency.reported", cpu::CPUINFO, reported);
    let turbo = turbo(root);
    let source = if root.exists(NO_TURBO) { NO_TURBO } else { BOOST };
    facts.add("frequency.turbo", source, turbo.map(|on| if on { "on" } else { "off" }));
}

/// The governors in use, with how many policies use each.
pub(crate) fn governor(root: &Root) -> Result<String, String> {
    policies(root, "scaling_governor").map(tally)
}

/// Whether the CPUs may run above their base frequency.
pub(crate) fn turbo(root: &Root) -> Result<bool, RootError> {
    if root.exists(NO_TURBO) {
        return Ok(root.number::<u8>(NO_TURBO)? == 0);
    }
    Ok(root.number::<u8>(BOOST)? == 1)
}

/// One file of every policy.
fn policies(root: &Root, file: &str) -> Result<Vec<String>, String> {
    let numbers = root.numbered(POLICIES, "policy").unwrap_or_default();
    if numbers.is_empty() {
        return Err(NO_CPUFREQ.to_owned());
    }
    let read = |n: u32| root.value(&format!("{POLICIES}/policy{n}/{file}"));
    numbers.into_iter().map(|n| read(n).map_err(|error| error.to_string())).collect()
}

fn kilohertz(root: &Root, file: &str) -> Result<String, String> {
    let values = policies(root, file)?;
    let values: Option<Vec<u64>> = values.iter().map(|text| text.parse().ok()).collect();
    let values = values.ok_or_else(|| format!("{file} of a cpufreq policy is not a number"))?;
    Ok(tally(values.into_iter().map(format::kilohertz)))
}
