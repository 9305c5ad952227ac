//! Use of CPU time, memory and network links as shares of their limits, with the kernel's work for
//! this process. At 1 a limit is reached. CPU time of other programs is not included: that is
//! `machine.neighbours`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::usage::usage;
use super::{Context, Probe, ProbeSpec, Signal};
use crate::capacity::{Capacity, capacity};
use crate::cpu_order::{self, CpuOrderError};
use crate::facts::cgroup;
use crate::facts::memory::{available_bytes, total_bytes};
use crate::root::Root;
use crate::stat::{CpuTicks, cpu_ticks, share};

pub(super) const SPEC: ProbeSpec = ProbeSpec::new(
    "limits",
    SIGNALS,
    "getrusage, /proc/*/stat, /proc/self/cgroup, /proc/meminfo, /sys/class/net/*",
    init,
);

const SIGNALS: &[Signal] = &[CPU, MEMORY, NETWORK];
const CPU: Signal = Signal::new(
    "limit.cpu",
    Unit::Ratio,
    Scope::Process,
    "getrusage(RUSAGE_SELF), kernel threads and interrupts / what mask and control groups allow",
);
const MEMORY: Signal = Signal::new(
    "limit.memory",
    Unit::Ratio,
    Scope::Machine,
    "1 - MemAvailable / MemTotal, or the tightest control group if that is more",
)
.at_end();
const NETWORK: Signal = Signal::new(
    "limit.network",
    Unit::Ratio,
    Scope::Machine,
    "/sys/class/net/*: bits of the busiest direction / speed",
);

const NET: &str = "/sys/class/net";

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    usage(root)?;
    let (threads, ticks) = (BTreeMap::new(), None);
    Ok(Box::new(Limits { root: root.clone(), used_s: None, ticks, threads, links: Vec::new() }))
}

struct Limits {
    root: Root,
    used_s: Option<f64>,
    ticks: Option<CpuTicks>,
    /// Ticks of each kernel thread.
    threads: BTreeMap<u32, u64>,
    /// Links whose speed is known: name, bits per second, bytes received and sent.
    links: Vec<(String, f64, [u64; 2])>,
}

impl Probe for Limits {
    fn start(&mut self) {
        self.used_s = usage(&self.root).ok().map(|usage| usage.cpu_seconds());
        self.ticks = cpu_ticks(&self.root).ok();
        self.threads = kernel_threads(&self.root);
        self.links = links(&self.root);
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let (cpu, allowed) = match self.cpu(window) {
            Ok((share, allowed)) => (Ok(share), format!(": {allowed}")),
            Err(why) => (Err(why), String::new()),
        };
        let mut readings = vec![
            CPU.reading(cpu, window),
            MEMORY.reading(memory(&self.root), window),
            NETWORK.reading(self.network(window), window),
        ];
        readings[0].source.push_str(&allowed);
        readings
    }
}

impl Limits {
    /// The share, and its limit in words.
    fn cpu(&self, window: Duration) -> Result<(f64, String), Unavailable> {
        let not_started = || Unavailable::new("the probe was not started", "start it first");
        let used_s = usage(&self.root)?.cpu_seconds() - self.used_s.ok_or_else(not_started)?;
        let unreadable = |error: CpuOrderError| {
            Unavailable::new(error.to_string(), "allow sched_getaffinity in the sandbox")
        };
        let mask = cpu_order::cpus(&self.root).map_err(unreadable)?.cpus.len() as f64;
        let Capacity { cpus: allowed, words } = capacity(&self.root, &[]).map_err(unreadable)?;
        let own = used_s / (allowed * window.as_secs_f64()).max(1e-9);
        // Kernel threads are under no quota but use the same CPUs.
        let with_kernel = used_s / (mask * window.as_secs_f64()).max(1e-9) + self.kernel();
        // A quota is refilled in periods, so a window may contain a little more than its share.
        Ok((own.max(with_kernel).min(1.0), words))
    }

    /// The share of the machine's CPU time that kernel threads (of file systems, loop devices,
    /// block queues) and interrupts took; 0 where the kernel does not show them.
    fn kernel(&self) -> f64 {
        let (Some(before), Ok(after)) = (self.ticks.as_ref(), cpu_ticks(&self.root)) else {
            return 0.0;
        };
        let interrupts = share(before, &after, |ticks| ticks.interrupts).unwrap_or(0.0);
        let all = after.total().saturating_sub(before.total()) as f64;
        let threads = kernel_threads(&self.root);
        let gained = threads.iter().map(|(thread, now)| {
            now.saturating_sub(self.threads.get(thread).copied().unwrap_or(0))
        });
        let gained: u64 = gained.sum();
        interrupts + if all > 0.0 { gained as f64 / all } else { 0.0 }
    }

    fn network(&self, window: Duration) -> Result<f64, Unavailable> {
        let after = links(&self.root);
        let mut most: Option<f64> = None;
        for (name, speed, before) in &self.links {
            let Some((.., now)) = after.iter().find(|(other, ..)| other == name) else { continue };
            for (before, now) in before.iter().zip(now) {
                let bits = now.saturating_sub(*before) as f64 * 8.0;
                let share = bits / (speed * window.as_secs_f64()).max(1e-9);
                most = Some(most.unwrap_or(0.0).max(share));
            }
        }
        most.ok_or_else(|| {
            Unavailable::new(
                format!("no interface under {NET} says its speed"),
                "virtual links have none; compare nic.received and nic.sent with what was bought",
            )
        })
    }
}

/// User and system ticks of the children of `kthreadd`, by their number.
fn kernel_threads(root: &Root) -> BTreeMap<u32, u64> {
    /// `kthreadd` is the second process that every kernel starts.
    const KTHREADD: &str = "2";
    let numbers = root.list("/proc").unwrap_or_default();
    let ticks = |name: String| {
        let number: u32 = name.parse().ok()?;
        let text = root.text(&format!("/proc/{number}/stat")).ok()?;
        // Behind the name, which may hold anything: state, parent, ... utime and stime 12 and 13.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 =
            fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        (fields.get(1) == Some(&KTHREADD)).then_some((number, ticks))
    };
    numbers.into_iter().filter_map(ticks).collect()
}

fn links(root: &Root) -> Vec<(String, f64, [u64; 2])> {
    let names = root.list(NET).unwrap_or_default();
    let link = |name: String| {
        let number = |file: &str| root.number::<i64>(&format!("{NET}/{name}/{file}")).ok();
        // In megabits per second; -1 where there is none.
        let speed = number("speed").filter(|speed| *speed > 0)? as f64 * 1e6;
        let bytes = |file| number(file).and_then(|bytes| u64::try_from(bytes).ok());
        let both = [bytes("statistics/rx_bytes")?, bytes("statistics/tx_bytes")?];
        Some((name, speed, both))
    };
    names.into_iter().filter_map(link).collect()
}

/// Memory that cannot be reclaimed, as a share of the machine's or the tightest group's limit.
fn memory(root: &Root) -> Result<f64, Unavailable> {
    let of_machine = || -> Result<f64, Unavailable> {
        let (available, total) = (available_bytes(root)?, total_bytes(root)?);
        Ok(1.0 - available as f64 / (total as f64).max(1.0))
    };
    let of_machine = of_machine()?;
    let of_group = cgroup::memory_use(root).unwrap_or(0.0);
    Ok(of_machine.max(of_group).clamp(0.0, 1.0))
}
