//! The CPU's own energy counters (RAPL: running average power limit). Intel SDM
//! volume 3B, "RAPL interfaces"; kernel: `Documentation/power/powercap`, `arch/x86/events/rapl.c`.

mod perf;
mod powercap;
mod unwrap;

use std::time::{Duration, Instant};

use model::{Reading, Scope, Series, Unit};

use self::unwrap::Unwrapped;
use crate::parse::field;
use crate::probe::sampler::{Handle, Kind, Sampled, Sensor, Take, Task};
use crate::probe::{Context, Probe, ProbeSpec, Signal, units};
use crate::root::Root;
use crate::unavailable::Unavailable;

pub(super) const SPEC: ProbeSpec = ProbeSpec {
    name: "rapl",
    signals: SIGNALS,
    looks_at: "the perf PMU `power`, or /sys/class/powercap/intel-rapl*/energy_uj",
    init,
};

const SIGNALS: &[Signal] = &[TOTAL, PACKAGE, DRAM, CORE, PSYS];
const TOTAL: Signal = joules("energy.total", Scope::PackageAndMemory);
const PACKAGE: Signal = joules("energy.package", Scope::Package);
const DRAM: Signal = joules("energy.dram", Scope::Memory);
const CORE: Signal = joules("energy.core", Scope::Package);
const PSYS: Signal = joules("energy.psys", Scope::Node);

const fn joules(name: &'static str, scope: Scope) -> Signal {
    Signal::new(name, Unit::Joules, scope, "RAPL")
}

/// The hardware moves the counters about every millisecond: over less than this
/// they are mostly rounding.
const SHORTEST_WINDOW: Duration = Duration::from_millis(50);

const EVERY: Duration = Duration::from_secs(1);

/// What a counter covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Domain {
    Package,
    Dram,
    Core,
    /// The whole platform, as its maker wired it.
    Psys,
}

impl Domain {
    /// The series of a domain.
    const fn power(self) -> Signal {
        let (name, scope) = match self {
            Domain::Package => ("power.package", Scope::Package),
            Domain::Dram => ("power.dram", Scope::Memory),
            Domain::Core => ("power.core", Scope::Package),
            Domain::Psys => ("power.psys", Scope::Node),
        };
        Signal::new(name, Unit::Watts, scope, "RAPL")
    }
}

/// One counter of one domain of one package.
struct Counter {
    domain: Domain,
    /// Which package, die or platform it is of: `0`, `1-die-0`.
    part: String,
    source: String,
    joules_per_step: f64,
    /// Steps at which it starts again from 0; `None` where the kernel has unwrapped it.
    range: Option<u64>,
    read: Box<dyn FnMut() -> Result<u64, Unavailable> + Send>,
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    units::live(root, context, over)
}

/// The probe over a kernel, the running one or a stand-in.
pub(in crate::probe) fn over(
    root: &Root,
    context: &Context,
    kernel: units::NewKernel,
) -> Result<Box<dyn Probe>, Unavailable> {
    // perf first: there the kernel takes care of the wraps.
    let counters = perf::counters(root, kernel).or_else(|perf| {
        powercap::counters(root).map_err(|powercap| Unavailable {
            reason: format!("{}; {}", powercap.reason, perf.reason),
            remedy: powercap.remedy,
        })
    })?;
    let amd = is_amd(root);
    let every = context.every(EVERY);
    Ok(Box::new(Rapl(sampled(counters, amd, every))))
}

/// Whether the CPU is AMD's or Hygon's, whose RAPL has other domains.
fn is_amd(root: &Root) -> bool {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    matches!(field(&text, "vendor_id"), Some("AuthenticAMD" | "HygonGenuine"))
}

fn sampled(counters: Vec<Counter>, amd: bool, every: Duration) -> Sampled {
    let mut sampled = Sampled::default();
    let mut found: Vec<(Domain, String, Handle)> = Vec::new();
    for counter in counters {
        let (domain, part) = (counter.domain, counter.part.clone());
        let which = counter.source.clone();
        let mut unwrapped = Unwrapped::new(counter.joules_per_step, counter.range);
        // Often enough to see every wrap.
        let every = every.min(unwrapped.look_within());
        let mut read = counter.read;
        let sensor = Sensor {
            signal: domain.power(),
            part: &part,
            which: &which,
            kind: Kind::Counter,
            every,
        };
        let gauge = move || unwrapped.joules(read()?, Instant::now());
        found.push((domain, part.clone(), sampled.gauge(sensor, gauge)));
    }
    let of = |domain: Domain| -> Vec<Handle> {
        let of = found.iter().filter(|(of, ..)| *of == domain);
        of.map(|(_, _, handle)| *handle).collect()
    };
    let (packages, dram) = (of(Domain::Package), of(Domain::Dram));
    match (packages.is_empty(), dram.is_empty()) {
        (true, _) => sampled.absent(TOTAL, no_domain("package", amd)),
        (false, false) => {
            let both: Vec<Handle> = packages.iter().chain(&dram).copied().collect();
            sampled.reading(TOTAL, &both, Take::Joules);
        }
        // The boundary is the package's then, and says so.
        (false, true) => {
            let alone = Signal { scope: Scope::Package, ..TOTAL };
            sampled.reading(alone, &packages, Take::Joules);
        }
    }
    for (signal, handles, name) in [
        (PACKAGE, packages, "package"),
        (DRAM, dram, "DRAM"),
        (CORE, of(Domain::Core), "core"),
        (PSYS, of(Domain::Psys), "psys"),
    ] {
        match handles.is_empty() {
            true => sampled.absent(signal, no_domain(name, amd)),
            false => sampled.reading(signal, &handles, Take::Joules),
        }
    }
    for (domain, signal) in [(Domain::Package, PACKAGE), (Domain::Dram, DRAM)] {
        let parts: Vec<_> = found.iter().filter(|(of, ..)| *of == domain).collect();
        for (_, part, handle) in parts.iter().filter(|_| parts.len() > 1) {
            sampled.part(signal, part, &[*handle], Take::Joules);
        }
    }
    sampled
}

fn no_domain(name: &str, amd: bool) -> Unavailable {
    match (name, amd) {
        ("DRAM", true) => Unavailable::new(
            "RAPL of AMD CPUs has no DRAM domain",
            "take a sensor of the whole machine for the memory's share (DCMI, a meter)",
        ),
        ("core", true) => Unavailable::new(
            "AMD counts each core apart, and the powercap zone `core` shows a single one",
            "use Linux 6.14 or later, whose perf PMU `power_core` has all cores",
        ),
        ("psys", _) => Unavailable::new(
            "RAPL has no psys domain here: the machine's maker must wire it",
            "take another sensor of the whole machine (DCMI, a meter)",
        ),
        _ => Unavailable::new(
            format!("RAPL of this CPU has no {name} domain"),
            "take another sensor (DCMI, hwmon, a meter)",
        ),
    }
}

/// No hardware uses nothing: some hypervisors show a counter that counts nothing.
fn standing(window: Duration) -> Unavailable {
    Unavailable::new(
        format!("the RAPL counter stood still for {window:.1?}, which is no machine's use"),
        "take another sensor (DCMI, hwmon, a meter), or a power model",
    )
}

/// The counters, over windows that are long enough for them.
struct Rapl(Sampled);

impl Probe for Rapl {
    fn start(&mut self) {
        self.0.start();
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let mut readings = self.0.stop(window);
        if window < SHORTEST_WINDOW {
            let why = Unavailable::new(
                format!("the window of {window:.0?} is too short for RAPL"),
                format!("measure for {SHORTEST_WINDOW:.0?} or longer"),
            );
            for reading in readings.iter_mut().filter(|reading| reading.value().is_some()) {
                reading.answer = why.clone().into();
            }
        }
        let stands = |reading: &Reading| reading.value() == Some(0.0);
        let of_total = [PACKAGE, DRAM].map(|signal| signal.name);
        let total_lacks =
            readings.iter().any(|one| stands(one) && of_total.contains(&one.signal.as_str()));
        for reading in readings.iter_mut().filter(|reading| reading.value().is_some()) {
            if stands(reading) || reading.signal == TOTAL.name && total_lacks {
                reading.answer = standing(window).into();
            }
        }
        readings
    }

    fn narrow(&mut self, opened: Instant, closed: Instant) {
        self.0.narrow(opened, closed);
    }

    fn tasks(&mut self) -> Vec<Task> {
        self.0.tasks()
    }

    fn series(&self, opened: Instant) -> Vec<Series> {
        let mut series = self.0.series(opened);
        series.retain(|one| one.values.iter().any(|&watts| watts > 0.0));
        series
    }
}
