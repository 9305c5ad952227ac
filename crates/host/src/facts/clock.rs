use super::{Facts, cpu};
use crate::root::Root;

pub(crate) const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

pub(super) fn add(root: &Root, facts: &mut Facts) {
    facts.file(root, "clock.source", CURRENT);
    facts.file(root, "clock.available", AVAILABLE);
    let flags = cpu::flags(root).and_then(|flags| {
        if cpu::is_arm(root) {
            return Err("an Arm CPU has its architected timer, and no time stamp counter".into());
        }
        let tsc: Vec<&str> = flags
            .iter()
            .map(String::as_str)
            .filter(|flag| flag.contains("tsc") || *flag == "rdtscp")
            .collect();
        if tsc.is_empty() { Err("no flag names the counter".to_owned()) } else { Ok(tsc.join(" ")) }
    });
    facts.add("clock.tsc", cpu::CPUINFO, flags);
}
