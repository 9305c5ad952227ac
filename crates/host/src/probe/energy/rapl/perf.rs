//! RAPL as the perf PMU `power` counts it: one event a domain, opened on one CPU of each
//! package, system-wide. The kernel reads the hardware often enough to see its wraps.

use std::sync::{Arc, Mutex, PoisonError};

use model::Unavailable;

use super::{RaplCounter, RaplDomain};
use crate::perf::{
    EncodedEvent, Errno, PMUS, PerfEvent, PerfKernel, PerfTarget, Privilege, cpumask, named,
};
use crate::probe::units::NewKernel;
use crate::root::{Root, RootError};

/// PMU, event and what it covers. AMD's cores are a PMU of their own since Linux 6.14.
const EVENTS: [(&str, &str, RaplDomain); 5] = [
    ("power", "energy-pkg", RaplDomain::Package),
    ("power", "energy-ram", RaplDomain::Dram),
    ("power", "energy-cores", RaplDomain::Core),
    ("power", "energy-psys", RaplDomain::Psys),
    ("power_core", "energy-core", RaplDomain::Core),
];

pub(super) fn counters(root: &Root, kernel: NewKernel) -> Result<Vec<RaplCounter>, Unavailable> {
    let mut sources = Vec::new();
    for (pmu, event, domain) in EVENTS {
        if root.exists(&format!("{PMUS}/{pmu}/events/{event}")) {
            sources.push((domain, PerfSource::read(root, pmu, event)?));
        }
    }
    if sources.is_empty() {
        return Err(Unavailable::new(
            format!("{PMUS}/power has no energy event"),
            "use bare metal with the kernel's module `rapl`",
        ));
    }
    Privilege::of(root)?.whole_cpus()?;
    let kernel = Arc::new(Mutex::new(kernel()?));
    let mut counters = Vec::new();
    for (domain, source) in sources {
        for cpu in source.cpus.clone() {
            counters.push(source.open(&kernel, root, domain, cpu)?);
        }
    }
    Ok(counters)
}

type Shared = Arc<Mutex<Box<dyn PerfKernel>>>;

/// An event as its PMU describes it (`Documentation/ABI/testing/sysfs-bus-event_source-devices-events`).
#[derive(Debug, Clone, PartialEq)]
struct PerfSource {
    event: EncodedEvent,
    name: String,
    /// Joules of one count: 2^-32 on every kernel so far.
    scale: f64,
    /// One CPU for each package, or for each core of `power_core`.
    cpus: Vec<u32>,
}

impl PerfSource {
    fn read(root: &Root, pmu: &str, name: &str) -> Result<PerfSource, Unavailable> {
        let unit_path = format!("{PMUS}/{pmu}/events/{name}.unit");
        let unit = root.value(&unit_path)?;
        if unit != "Joules" {
            return Err(RootError::malformed(&unit_path, &unit, "Joules").into());
        }
        Ok(PerfSource {
            event: named(root, pmu, name)?,
            name: format!("{pmu}/{name}/"),
            scale: root.number(&format!("{PMUS}/{pmu}/events/{name}.scale"))?,
            cpus: cpumask(root, pmu)?,
        })
    }

    /// Opens the event on a CPU, and lets it count from now on.
    fn open(
        &self,
        kernel: &Shared,
        root: &Root,
        domain: RaplDomain,
        cpu: u32,
    ) -> Result<RaplCounter, Unavailable> {
        // Not every machine has the files, and the number of the CPU stands for its package.
        let package = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        let part = root.value(&package).unwrap_or_else(|_| format!("cpu{cpu}"));
        let source = format!("perf {} on CPU {cpu}", self.name);
        let event = PerfEvent { encoded: self.event.clone(), inherit: false };
        let mut own = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = own
            .open(&event, PerfTarget::Cpu(cpu), None)
            .and_then(|handle| own.switch(handle, true).map(|()| handle))
            .map_err(|errno| self.refused(errno))?;
        drop(own);
        let (kernel, lost) = (Arc::clone(kernel), source.clone());
        let read = move || {
            let count = kernel.lock().unwrap_or_else(PoisonError::into_inner).read(handle);
            count.map(|count| count.value).map_err(|errno| {
                Unavailable::new(
                    format!("{lost} could not be read: {errno}"),
                    "keep the CPU online while it is measured",
                )
            })
        };
        let joules_per_step = self.scale;
        Ok(RaplCounter { domain, part, source, joules_per_step, range: None, read: Box::new(read) })
    }

    fn refused(&self, errno: Errno) -> Unavailable {
        Unavailable::new(
            format!("perf refused {}: {errno}", self.name),
            "find out why perf refuses this event (`perf stat -a -e power/energy-pkg/ true`)",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_pmu_is_read_as_the_kernel_describes_it() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join("sys/bus/event_source/devices/power").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("type", "21\n");
        write("cpumask", "0,10\n");
        write("format/event", "config:0-7\n");
        write("events/energy-pkg", "event=0x02\n");
        write("events/energy-pkg.unit", "Joules\n");
        write("events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
        let root = Root::at(dir.path());
        let source = PerfSource::read(&root, "power", "energy-pkg").unwrap();
        assert_eq!((source.event.kind, source.event.config[0]), (21, 2));
        assert_eq!((source.scale, source.cpus), (2f64.powi(-32), vec![0, 10]));
        write("events/energy-pkg.unit", "Btu\n");
        assert!(PerfSource::read(&root, "power", "energy-pkg").unwrap_err().reason.contains("Btu"));
    }
}
