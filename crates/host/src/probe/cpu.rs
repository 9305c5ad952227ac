//! CPU time, context switches, faults and threads of this process.

use model::{Scope, Unavailable, Unit};

use super::counters::{CounterValues, Counters, Scale};
use super::usage::usage;
use super::{Context, Probe, ProbeSpec, Signal};
use crate::parse::field;
use crate::root::{Root, RootError};

const STATUS: &str = "/proc/self/status";

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("cpu", SIGNALS, "getrusage, /proc/self/status", init);

const SIGNALS: &[Signal] = &[
    process("cpu.user", Unit::Seconds, "getrusage(RUSAGE_SELF): ru_utime"),
    process("cpu.system", Unit::Seconds, "getrusage(RUSAGE_SELF): ru_stime"),
    process("cpu.context_switches.voluntary", Unit::Count, "getrusage(RUSAGE_SELF): ru_nvcsw"),
    process("cpu.context_switches.involuntary", Unit::Count, "getrusage(RUSAGE_SELF): ru_nivcsw"),
    process("memory.faults.minor", Unit::Count, "getrusage(RUSAGE_SELF): ru_minflt"),
    process("memory.faults.major", Unit::Count, "getrusage(RUSAGE_SELF): ru_majflt"),
    process("cpu.threads", Unit::Count, "/proc/self/status: Threads").at_end(),
];

const fn process(name: &'static str, unit: Unit, source: &'static str) -> Signal {
    Signal::new(name, unit, Scope::Process, source)
}

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    usage(root)?;
    let root = root.clone();
    let scales = [1e-6, 1e-6, 1.0, 1.0, 1.0, 1.0, 1.0].map(Scale).to_vec();
    Ok(Box::new(Counters::new(SIGNALS, scales, move || read_counters(&root))))
}

fn read_counters(root: &Root) -> CounterValues {
    let threads = threads(root).map_err(Unavailable::from);
    let usage = usage(root)?;
    Ok(vec![
        Ok(usage.user_us),
        Ok(usage.system_us),
        Ok(usage.voluntary_switches),
        Ok(usage.involuntary_switches),
        Ok(usage.minor_faults),
        Ok(usage.major_faults),
        threads,
    ])
}

fn threads(root: &Root) -> Result<u64, RootError> {
    let text = root.text(STATUS)?;
    field(&text, "Threads")
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| RootError::malformed(STATUS, &text, "a status with Threads"))
}
