//! The CPU's own energy counters (RAPL: running average power limit). Intel SDM
//! volume 3B, "RAPL interfaces"; kernel: `Documentation/power/powercap`, `arch/x86/events/rapl.c`.

mod perf;
mod powercap;
mod unwrap;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use model::{Scope, Unavailable, Unit};

use self::unwrap::Unwrapped;
use crate::facts::topology::threads;
use crate::parse::field;
use crate::probe::sampler::{Handle, Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal, units};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec = ProbeSpec::new(
    "rapl",
    SIGNALS,
    "the perf PMU `power`, or /sys/class/powercap/intel-rapl*/energy_uj",
    init,
)
.with_parts(&[PACKAGE.of_parts("energy.package.PART"), DRAM.of_parts("energy.dram.PART")]);

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
enum RaplDomain {
    Package,
    Dram,
    Core,
    /// The whole platform, as its maker wired it.
    Psys,
}

impl RaplDomain {
    /// The series of a domain.
    const fn power(self) -> Signal {
        let (name, scope) = match self {
            RaplDomain::Package => ("power.package", Scope::Package),
            RaplDomain::Dram => ("power.dram", Scope::Memory),
            RaplDomain::Core => ("power.core", Scope::Package),
            RaplDomain::Psys => ("power.psys", Scope::Node),
        };
        Signal::new(name, Unit::Watts, scope, "RAPL")
    }
}

/// One counter of one domain of one package.
struct RaplCounter {
    domain: RaplDomain,
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
    // Where the kernel does not say which sockets there are, the counters are taken for all.
    let threads = threads(root).unwrap_or_default();
    let sockets = threads.iter().map(|thread| thread.socket.to_string()).collect();
    Ok(Box::new(sampled(counters, &sockets, is_amd(root), context.every(EVERY))))
}

/// Whether the CPU is AMD's or Hygon's, whose RAPL has other domains.
fn is_amd(root: &Root) -> bool {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    matches!(field(&text, "vendor_id"), Some("AuthenticAMD" | "HygonGenuine"))
}

fn sampled(
    counters: Vec<RaplCounter>,
    sockets: &BTreeSet<String>,
    amd: bool,
    every: Duration,
) -> Sampled {
    let mut sampled = Sampled::over_at_least(SHORTEST_WINDOW, "RAPL");
    let mut gauges: Vec<(RaplDomain, String, Handle)> = Vec::new();
    for counter in counters {
        let (domain, part) = (counter.domain, counter.part.clone());
        let which = counter.source.clone();
        let mut unwrapped = Unwrapped::new(counter.joules_per_step, counter.range);
        // Often enough to see every wrap.
        let every = every.min(unwrapped.read_within());
        let mut read = counter.read;
        let sensor = Sensor {
            signal: domain.power(),
            part: &part,
            which: &which,
            kind: Kind::Counter,
            every,
        };
        let gauge = move || unwrapped.joules(read()?, Instant::now());
        gauges.push((domain, part.clone(), sampled.gauge(sensor, gauge)));
    }
    let parts = |domain: RaplDomain| -> Vec<&str> {
        let of = gauges.iter().filter(|(of, ..)| *of == domain);
        of.map(|(_, part, _)| part.as_str()).collect()
    };
    let of = |domain: RaplDomain, name: &str| -> Result<Vec<Handle>, Unavailable> {
        let of = gauges.iter().filter(|(of, ..)| *of == domain);
        let handles: Vec<Handle> = of.map(|(_, _, handle)| *handle).collect();
        if handles.is_empty() {
            return Err(no_domain(name, amd));
        }
        // Each package has memory of its own; its cores may be one zone or one counter each.
        let packages =
            if domain == RaplDomain::Dram { parts(RaplDomain::Package) } else { Vec::new() };
        match lacking(&parts(domain), &packages, sockets) {
            lacks if domain == RaplDomain::Psys || lacks.is_empty() => Ok(handles),
            lacks => Err(counted_in_part(name, &parts(domain), &lacks)),
        }
    };
    let (package, dram) = (of(RaplDomain::Package, "package"), of(RaplDomain::Dram, "DRAM"));
    let total = match (&package, &dram) {
        (Err(why), _) => Err(why.clone()),
        (Ok(packages), Ok(dram)) => Ok((TOTAL, packages.iter().chain(dram).copied().collect())),
        // The boundary is the package's then, and says so.
        (Ok(packages), Err(_)) => Ok((Signal { scope: Scope::Package, ..TOTAL }, packages.clone())),
    };
    let total: Result<(Signal, Vec<Handle>), Unavailable> = total;
    match total {
        Ok((signal, handles)) => sampled.reading(signal, &handles, Take::Joules),
        Err(why) => sampled.absent(TOTAL, why),
    }
    for (signal, handles) in [
        (PACKAGE, package),
        (DRAM, dram),
        (CORE, of(RaplDomain::Core, "core")),
        (PSYS, of(RaplDomain::Psys, "psys")),
    ] {
        match handles {
            Ok(handles) => sampled.reading(signal, &handles, Take::Joules),
            Err(why) => sampled.absent(signal, why),
        }
    }
    for (domain, signal) in [(RaplDomain::Package, PACKAGE), (RaplDomain::Dram, DRAM)] {
        let parts: Vec<_> = gauges.iter().filter(|(of, ..)| *of == domain).collect();
        // A part that is not the whole domain is named in the signal, too.
        let several = parts.len() > 1 || sockets.len() > 1;
        for (_, part, handle) in parts.iter().filter(|_| several) {
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

/// The packages and sockets of which a domain has no counter: part of a sum is not the sum.
fn lacking(parts: &[&str], packages: &[&str], sockets: &BTreeSet<String>) -> Vec<String> {
    let socket = |part: &str| part.split('-').next().unwrap_or(part).to_owned();
    // Without files of the topology a part is named by a CPU, which says nothing of its socket.
    if parts.iter().any(|part| part.starts_with("cpu")) {
        return Vec::new();
    }
    let counted: BTreeSet<String> = parts.iter().map(|part| socket(part)).collect();
    let packages = packages.iter().filter(|package| !parts.contains(package));
    let sockets = sockets.iter().filter(|socket| !counted.contains(*socket)).cloned();
    packages
        .map(|package| (*package).to_owned())
        .chain(sockets)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn counted_in_part(name: &str, parts: &[&str], lacks: &[String]) -> Unavailable {
    Unavailable::new(
        format!(
            "RAPL counts the {name} domain of package {} only, not of {}",
            parts.join(", "),
            lacks.join(", ")
        ),
        "take a sensor of the whole machine (DCMI, a meter)",
    )
}
