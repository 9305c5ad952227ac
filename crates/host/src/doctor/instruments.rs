//! What the machine offers to measure with.

use std::time::Instant;

use super::Group;
use crate::human;
use crate::parse::field;
use crate::probe::{Context, PROBES};
use crate::root::Root;

const PMUS: &str = "/sys/bus/event_source/devices";
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const POWERCAP: &str = "/sys/class/powercap";
const STATUS: &str = "/proc/self/status";

/// The names under which CPUs offer their counters; the rest of an Arm name
/// is the core's.
const CPU_PMUS: &[&str] = &["cpu", "cpu_core", "cpu_atom", "armv8_", "armv9_"];

pub(super) fn add(root: &Root, group: &mut Group) {
    counters(root, group);
    energy(root, group);
}

fn counters(root: &Root, group: &mut Group) {
    let why = "cycles, instructions and misses an operation come from the CPU's counters; \
               kvmeter reads none of them so far";
    let devices = match root.list(PMUS) {
        Ok(devices) => devices,
        Err(error) => {
            let remedy = "use a kernel with CONFIG_PERF_EVENTS, and mount /sys";
            return group.unavailable("counters", error, why, remedy);
        }
    };
    let pmu = devices.iter().find(|name| {
        CPU_PMUS.iter().any(|known| match known.strip_suffix('_') {
            Some(_) => name.starts_with(known),
            None => name == known,
        })
    });
    let Some(pmu) = pmu else {
        return group.unavailable(
            "counters",
            format!("{PMUS} has no CPU: the hypervisor does not pass the counters on"),
            why,
            "use bare metal or an instance type that offers a virtual PMU; CPU time and context \
             switches are measured without it",
        );
    };
    let paranoid = root.number::<i32>(PARANOID);
    match paranoid {
        // Levels that the kernel documents; 3 and 4 are distributions' own.
        Ok(level) if level > 2 && !may_see_all(root) => group.unavailable(
            "counters",
            format!("{pmu} is there, and {PARANOID} is {level}: only root may use it"),
            why,
            "sysctl kernel.perf_event_paranoid=1",
        ),
        Ok(level) => {
            let found = format!("{pmu}; {PARANOID} is {level}");
            let enough = level < 2 || may_see_all(root);
            let remedy = "sysctl kernel.perf_event_paranoid=1, to see the kernel's part too";
            group.judge("counters", enough, found, why, remedy);
        }
        Err(error) => group.unavailable("counters", error, why, "mount /proc"),
    }
}

/// Whether this process has CAP_PERFMON or CAP_SYS_ADMIN.
fn may_see_all(root: &Root) -> bool {
    let capabilities = root.text(STATUS).ok().and_then(|text| {
        let mask = field(&text, "CapEff")?;
        u64::from_str_radix(mask, 16).ok()
    });
    capabilities.is_some_and(|mask| mask & (1 << 38 | 1 << 21) != 0)
}

fn energy(root: &Root, group: &mut Group) {
    let why = "joules an operation come from the CPU's energy counters (RAPL), unless a meter \
               is at hand";
    let zones: Vec<String> = root
        .list(POWERCAP)
        .unwrap_or_default()
        .into_iter()
        .filter(|zone| root.exists(&format!("{POWERCAP}/{zone}/energy_uj")))
        .collect();
    let perf = root.exists(&format!("{PMUS}/power"));
    let Some(zone) = zones.first() else {
        if perf {
            return group.ok("energy", format!("{PMUS}/power"), why);
        }
        return group.unavailable(
            "energy",
            format!("neither {POWERCAP} nor {PMUS}/power has energy counters"),
            why,
            "use bare metal, where the kernel offers RAPL or a power sensor; a virtual machine \
             does not show the energy of its host",
        );
    };
    let path = format!("{POWERCAP}/{zone}/energy_uj");
    match root.number::<u64>(&path) {
        Ok(_) => group.ok("energy", human::count(zones.len(), "powercap zone"), why),
        Err(error) => group.unavailable(
            "energy",
            error,
            why,
            "run as root: since Linux 5.10 only root may read the energy counters",
        ),
    }
}

/// Each probe of a run: is it available, and what does one look cost here?
pub(super) fn add_probes(root: &Root, context: &Context, group: &mut Group) {
    for spec in PROBES {
        let names: Vec<&str> = spec.signals.iter().map(|signal| signal.name).collect();
        let why = format!("reads {}", names.join(", "));
        match (spec.init)(root, context) {
            Ok(mut probe) => {
                let before = Instant::now();
                probe.start();
                let cost = before.elapsed();
                let found = format!("{}; one look took {cost:.1?}", spec.looks_at);
                group.ok(spec.name, found, &why);
            }
            Err(no) => group.unavailable(spec.name, no.reason, &why, &no.remedy),
        }
    }
}
