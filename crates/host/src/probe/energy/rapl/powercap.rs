//! RAPL as the kernel's powercap framework shows it: a folder a zone, in microjoules.

use std::collections::BTreeSet;

use model::Unavailable;

use super::{RaplCounter, RaplDomain, is_amd};
use crate::root::{Root, RootError};

const ZONES: &str = "/sys/class/powercap";

/// The same counters may be shown twice: through MSRs, and through memory-mapped
/// registers. The first that has one is taken.
const CONTROLS: [&str; 2] = ["intel-rapl", "intel-rapl-mmio"];

/// Microjoules.
const JOULES_PER_STEP: f64 = 1e-6;

pub(super) fn counters(root: &Root) -> Result<Vec<RaplCounter>, Unavailable> {
    let names = root.list(ZONES).map_err(|error| absent(&error.to_string()))?;
    let mut counters = Vec::new();
    let mut covered: BTreeSet<(RaplDomain, String)> = BTreeSet::new();
    for control in CONTROLS {
        let mut own = BTreeSet::new();
        for zone in names.iter().filter(|name| is_zone(name, control)) {
            let Some((domain, part)) = covers(root, zone)? else { continue };
            // An AMD `core` zone is the counter of one core.
            if covered.contains(&(domain, part.clone()))
                || (domain == RaplDomain::Core && is_amd(root))
            {
                continue;
            }
            counters.push(counter(root, zone, domain, part.clone())?);
            own.insert((domain, part));
        }
        covered.extend(own);
    }
    if counters.is_empty() {
        return Err(absent(&format!("{ZONES} holds no zone of intel-rapl")));
    }
    Ok(counters)
}

fn absent(reason: &str) -> Unavailable {
    Unavailable::new(
        reason,
        "use bare metal with the kernel's intel_rapl_msr module; a virtual machine does not see \
         its host's energy: give it a model (`--probes model=IDLE:FULL`)",
    )
}

/// `intel-rapl:0` and `intel-rapl:0:1`, not the control type itself.
fn is_zone(name: &str, control: &str) -> bool {
    name.strip_prefix(control).is_some_and(|rest| rest.starts_with(':'))
}

/// What a zone covers and of which package; none for a domain that is part of another
/// and is not read (the integrated GPU).
fn covers(root: &Root, zone: &str) -> Result<Option<(RaplDomain, String)>, RootError> {
    let name = |zone: &str| root.value(&format!("{ZONES}/{zone}/name"));
    let own = name(zone)?;
    if let Some(package) = own.strip_prefix("package-") {
        return Ok(Some((RaplDomain::Package, package.to_owned())));
    }
    let domain = match own.as_str() {
        "dram" => RaplDomain::Dram,
        "core" => RaplDomain::Core,
        // Where there are several, each stands for itself.
        "psys" => {
            return Ok(Some((RaplDomain::Psys, zone.rsplit(':').next().unwrap_or(zone).into())));
        }
        _ => return Ok(None),
    };
    // A subzone is of its parent's package.
    let parent = zone.rsplit_once(':').map_or(zone, |(parent, _)| parent);
    let package = name(parent)?;
    let package = package.strip_prefix("package-").unwrap_or(&package);
    Ok(Some((domain, package.to_owned())))
}

fn counter(
    root: &Root,
    zone: &str,
    domain: RaplDomain,
    part: String,
) -> Result<RaplCounter, Unavailable> {
    let path = format!("{ZONES}/{zone}/energy_uj");
    let range = root.number::<u64>(&format!("{ZONES}/{zone}/max_energy_range_uj"))?;
    let read = {
        let (root, path) = (root.clone(), path.clone());
        move || {
            root.number::<u64>(&path).map_err(|error| match &error {
                RootError::Denied { .. } => Unavailable::new(
                    error.to_string(),
                    "run as root: since Linux 5.10 only root may read the energy counters; or \
                     use perf with CAP_PERFMON",
                ),
                _ => error.into(),
            })
        }
    };
    read()?;
    Ok(RaplCounter {
        domain,
        part,
        source: path,
        joules_per_step: JOULES_PER_STEP,
        range: Some(range),
        read: Box::new(read),
    })
}
