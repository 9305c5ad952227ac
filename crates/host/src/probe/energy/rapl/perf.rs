//! RAPL as the perf PMU `power` counts it: one event a domain, opened on one CPU of each
//! package, system-wide. The kernel reads the hardware often enough to see its wraps.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::libc;

use super::{Counter, Domain};
use crate::parse::cpu_list;
use crate::root::{Root, RootError};
use crate::unavailable::Unavailable;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// PMU, event and what it covers. AMD's cores are a PMU of their own since Linux 6.14.
const EVENTS: [(&str, &str, Domain); 5] = [
    ("power", "energy-pkg", Domain::Package),
    ("power", "energy-ram", Domain::Dram),
    ("power", "energy-cores", Domain::Core),
    ("power", "energy-psys", Domain::Psys),
    ("power_core", "energy-core", Domain::Core),
];

pub(super) fn counters(root: &Root) -> Result<Vec<Counter>, Unavailable> {
    let mut counters = Vec::new();
    for (pmu, event, domain) in EVENTS {
        if root.exists(&format!("{DEVICES}/{pmu}/events/{event}")) {
            counters.extend(of_event(&Event::read(root, pmu, event)?, root, domain)?);
        }
    }
    if counters.is_empty() {
        return Err(Unavailable::new(
            format!("{DEVICES}/power has no energy event"),
            "use bare metal with the kernel's module `rapl`",
        ));
    }
    Ok(counters)
}

fn of_event(event: &Event, root: &Root, domain: Domain) -> Result<Vec<Counter>, Unavailable> {
    if !root.is_live() {
        return Err(Unavailable::recorded("perf_event_open"));
    }
    let counter = |cpu: &u32| {
        let mut file =
            open(event.kind, event.config, *cpu).map_err(|error| refused(event, &error))?;
        // Not every machine has the files, and the number of the CPU stands for its package.
        let package = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        let part = root.value(&package).unwrap_or_else(|_| format!("cpu{cpu}"));
        let source = format!("perf {}/{}/ on CPU {cpu}", event.pmu, event.name);
        let lost = source.clone();
        Ok(Counter {
            domain,
            part,
            source,
            joules_per_step: event.scale,
            range: None,
            read: Box::new(move || {
                count(&mut file).map_err(|error| {
                    Unavailable::new(
                        format!("{lost} could not be read: {error}"),
                        "keep the CPU online while it is measured",
                    )
                })
            }),
        })
    };
    event.cpus.iter().map(counter).collect()
}

fn refused(event: &Event, error: &io::Error) -> Unavailable {
    let remedy = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "run as root or with CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0"
        }
        _ => "find out why perf refuses this event (`perf stat -a -e power/energy-pkg/ true`)",
    };
    Unavailable::new(format!("perf refused {}/{}/: {error}", event.pmu, event.name), remedy)
}

/// An event as its PMU describes it (`Documentation/ABI/testing/sysfs-bus-event_source-devices-events`).
#[derive(Debug, Clone, PartialEq)]
struct Event {
    pmu: &'static str,
    name: &'static str,
    kind: u32,
    config: u64,
    /// Joules of one count: 2^-32 on every kernel so far.
    scale: f64,
    /// One CPU for each package, or for each core of `power_core`.
    cpus: Vec<u32>,
}

impl Event {
    fn read(root: &Root, pmu: &'static str, name: &'static str) -> Result<Event, Unavailable> {
        let file = |rest: &str| format!("{DEVICES}/{pmu}/{rest}");
        let path = file(&format!("events/{name}"));
        let text = root.value(&path)?;
        let config = text
            .strip_prefix("event=0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| RootError::malformed(&path, &text, "an event such as event=0x02"))?;
        let unit_path = file(&format!("events/{name}.unit"));
        let unit = root.value(&unit_path)?;
        if unit != "Joules" {
            return Err(RootError::malformed(&unit_path, &unit, "Joules").into());
        }
        let mask = file("cpumask");
        let text = root.value(&mask)?;
        let cpus = cpu_list(&text)
            .filter(|cpus| !cpus.is_empty())
            .ok_or_else(|| RootError::malformed(&mask, &text, "a list of CPUs"))?;
        Ok(Event {
            pmu,
            name,
            kind: root.number(&file("type"))?,
            config,
            scale: root.number(&file(&format!("events/{name}.scale")))?,
            cpus,
        })
    }
}

/// `struct perf_event_attr` of `linux/perf_event.h` in its first version (64 bytes), which
/// every kernel takes; a plain counter needs no more.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Opens a counter of everything that happens on a CPU.
fn open(kind: u32, config: u64, cpu: u32) -> io::Result<File> {
    let attributes =
        Attributes { kind, size: size_of::<Attributes>() as u32, config, ..Attributes::default() };
    let (every_process, no_group) = (-1 as libc::pid_t, -1 as libc::c_int);
    // SAFETY: `attributes` is as large as it says and lives through the call; the kernel only
    // reads it. The other arguments are plain numbers of the types that the call takes.
    #[allow(unsafe_code, reason = "no safe wrapper of perf_event_open is at hand")]
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_process,
            cpu as libc::c_int,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made this descriptor, and nothing else owns it.
    #[allow(unsafe_code, reason = "takes ownership of a fresh descriptor")]
    let owned = unsafe { OwnedFd::from_raw_fd(opened as RawFd) };
    Ok(File::from(owned))
}

/// What it counted so far.
fn count(file: &mut File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;
    use std::time::Duration;

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
        write("events/energy-pkg", "event=0x02\n");
        write("events/energy-pkg.unit", "Joules\n");
        write("events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
        let root = Root::at(dir.path());
        let event = Event::read(&root, "power", "energy-pkg").unwrap();
        assert_eq!((event.kind, event.config, event.scale), (21, 2, 2f64.powi(-32)));
        assert_eq!(event.cpus, [0, 10]);
        // A recorded tree has no counters to open.
        assert!(counters(&root).is_err_and(|why| why.reason.contains("perf_event_open")));
        write("events/energy-pkg.unit", "Btu\n");
        assert!(Event::read(&root, "power", "energy-pkg").unwrap_err().reason.contains("Btu"));
    }

    /// The call is the same for every PMU: the kernel's own clock is there everywhere.
    #[test]
    fn a_counter_of_a_cpu_counts() {
        const SOFTWARE: u32 = 1;
        const CPU_CLOCK: u64 = 0;
        let mut file = match open(SOFTWARE, CPU_CLOCK, 0) {
            Ok(file) => file,
            // A sandbox may keep perf from its users.
            Err(error) => {
                assert!(matches!(
                    error.raw_os_error(),
                    Some(libc::EACCES | libc::EPERM | libc::ENOSYS)
                ));
                return;
            }
        };
        let before = count(&mut file).unwrap();
        thread::sleep(Duration::from_millis(20));
        assert!(count(&mut file).unwrap() > before);
        assert_eq!(open(SOFTWARE, u64::MAX, 0).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
