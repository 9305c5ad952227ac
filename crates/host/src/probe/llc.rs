//! Occupancy of the last level and traffic between it and memory, from resctrl
//! (`Documentation/filesystems/resctrl.rst`). Of the default group: tasks in
//! another group are not counted.

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::facts::cpu;
use crate::root::{Root, RootError};

const RESCTRL: &str = "/sys/fs/resctrl";
const DATA: &str = "/sys/fs/resctrl/mon_data";

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("resctrl", SIGNALS, "/sys/fs/resctrl/mon_data", init);

const SIGNALS: &[Signal] = &[
    resctrl("llc.occupancy", "/sys/fs/resctrl/mon_data/mon_L3_*/llc_occupancy")
        .at_end()
        .never_zero(),
    resctrl("dram.traffic", "/sys/fs/resctrl/mon_data/mon_L3_*/mbm_total_bytes").never_zero(),
    resctrl("dram.traffic.local", "/sys/fs/resctrl/mon_data/mon_L3_*/mbm_local_bytes"),
];

const FILES: [&str; 3] = ["llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"];

/// The CPU's flags that announce the monitors.
const FLAGS: [&str; 3] = ["cqm_occup_llc", "cqm_mbm_total", "cqm_mbm_local"];

const fn resctrl(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Bytes, Scope::Machine, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let domains = domains(root);
    if domains.is_empty() {
        let flags = cpu::flags(root).unwrap_or_default();
        let able = FLAGS.iter().any(|flag| flags.iter().any(|known| known == flag));
        return Err(match able {
            true => Unavailable::new(
                format!("{RESCTRL} is not mounted, or its monitors are off"),
                "mount -t resctrl resctrl /sys/fs/resctrl, as root",
            ),
            false => Unavailable::new(
                "this CPU or hypervisor offers no monitoring of the last level",
                "measure on a server CPU with Intel RDT or AMD QoS, not in a virtual machine",
            ),
        });
    }
    let root = root.clone();
    Ok(Box::new(Counters::plain(SIGNALS, move || read_counters(&root, &domains))))
}

/// The folders of the last-level caches.
fn domains(root: &Root) -> Vec<String> {
    let names = root.list(DATA).unwrap_or_default();
    names.into_iter().filter(|name| name.starts_with("mon_L3_")).collect()
}

fn read_counters(root: &Root, domains: &[String]) -> CounterValues {
    let sum = |file: &&str| {
        let each = domains.iter().map(|domain| {
            let path = format!("{DATA}/{domain}/{file}");
            root.number::<u64>(&path).map_err(|error| match error {
                RootError::Missing { .. } => Unavailable::new(
                    format!("this CPU does not monitor {file}"),
                    "see /sys/fs/resctrl/info/L3_MON/mon_features for what it does",
                ),
                // The kernel writes `Unavailable` or `Error` where the hardware has no number.
                other => other.into(),
            })
        });
        each.sum()
    };
    Ok(FILES.iter().map(sum).collect())
}
