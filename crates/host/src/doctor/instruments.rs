//! Checks of energy sources and probes.

use std::time::Instant;

use super::CheckGroup;
use crate::format;
use crate::probe::{Context, PROBES};
use crate::root::Root;

const PMUS: &str = "/sys/bus/event_source/devices";
const POWERCAP: &str = "/sys/class/powercap";

pub(super) fn add(root: &Root, group: &mut CheckGroup) {
    energy(root, group);
}

fn energy(root: &Root, group: &mut CheckGroup) {
    let why = "joules an operation come from the CPU's energy counters (RAPL), unless a meter is \
               available";
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
        Ok(_) => group.ok("energy", format::count(zones.len(), "powercap zone"), why),
        Err(error) => group.unavailable(
            "energy",
            error,
            why,
            "run as root: since Linux 5.10 only root may read the energy counters",
        ),
    }
}

/// Each probe of a run: whether it is available, and the cost of reading it.
pub(super) fn add_probes(root: &Root, context: &Context, group: &mut CheckGroup) {
    for spec in PROBES {
        let names: Vec<&str> = spec.signals.iter().map(|signal| signal.name).collect();
        let why = format!("reads {}", names.join(", "));
        match (spec.init)(root, context) {
            Ok(mut probe) => {
                let before = Instant::now();
                probe.start();
                let cost = before.elapsed();
                let found = format!("{}; one reading took {cost:.1?}", spec.reads);
                group.ok(spec.name, found, &why);
            }
            Err(no) => group.unavailable(spec.name, no.reason, &why, &no.remedy),
        }
    }
}
