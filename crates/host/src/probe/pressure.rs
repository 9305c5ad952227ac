//! Pressure stall information (PSI): time in which work waited for CPU, memory or I/O.

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters, Scale};
use super::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("pressure", SIGNALS, "/proc/pressure/*", init);

const SIGNALS: &[Signal] = &[
    stall("psi.cpu.some", "/proc/pressure/cpu: some total"),
    stall("psi.io.some", "/proc/pressure/io: some total"),
    stall("psi.io.full", "/proc/pressure/io: full total"),
    stall("psi.memory.some", "/proc/pressure/memory: some total"),
    stall("psi.memory.full", "/proc/pressure/memory: full total"),
];

/// The file and line of each signal.
const LINES: [(&str, &str); 5] = [
    ("/proc/pressure/cpu", "some"),
    ("/proc/pressure/io", "some"),
    ("/proc/pressure/io", "full"),
    ("/proc/pressure/memory", "some"),
    ("/proc/pressure/memory", "full"),
];

const fn stall(name: &'static str, source: &'static str) -> Signal {
    Signal::new(name, Unit::Seconds, Scope::Machine, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let (path, line) = LINES[0];
    read(root, path, line).map_err(|why| {
        Unavailable::new(why.reason, "use a kernel with CONFIG_PSI and boot it with psi=1")
    })?;
    let root = root.clone();
    // Microseconds.
    let scales = vec![Scale(1e-6); SIGNALS.len()];
    Ok(Box::new(Counters::new(SIGNALS, scales, move || read_counters(&root))))
}

fn read_counters(root: &Root) -> CounterValues {
    Ok(LINES.iter().map(|(path, line)| read(root, path, line)).collect())
}

fn read(root: &Root, path: &str, line: &str) -> Result<u64, Unavailable> {
    let text = root.text(path)?;
    let total = text.lines().find(|text| text.starts_with(line)).and_then(|text| {
        let (_, total) = text.rsplit_once("total=")?;
        total.trim().parse().ok()
    });
    Ok(total.ok_or_else(|| RootError::malformed(path, &text, "a list of stall times"))?)
}
