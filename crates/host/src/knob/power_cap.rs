//! The power limit of each package: RAPL's long-term limit by the kernel's powercap framework
//! (`Documentation/power/powercap/powercap.rst`; Intel SDM volume 3B, "RAPL interfaces").

use std::time::{Duration, Instant};

use model::{Unavailable, cpu_list};

use super::error::KnobRefusal;
use super::level::tally;
use super::load;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::KnobWrite;
use super::{Knob, KnobInfo};
use crate::facts::topology;
use crate::format;
use crate::root::{Root, RootError};

const ZONES: &str = "/sys/class/powercap";
const CONTROL: &str = "intel-rapl:";
const LIMIT: &str = "constraint_0_power_limit_uw";
const MOST: &str = "constraint_0_max_power_uw";
const WINDOW: &str = "constraint_0_time_window_us";
const ENABLED: &str = "enabled";
/// Microwatts of RAPL's default unit, 1/8 W: the kernel rounds other limits, and they would not read
/// back.
const STEP: u64 = 125_000;
const MICROWATTS: f64 = 1e6;

pub struct PowerCap;

/// The zone of one package.
#[derive(Debug, Clone)]
struct Package {
    /// `0`, or `0-die-1`.
    name: String,
    folder: String,
    /// Microwatts.
    limit: u64,
    /// The thermal design power in microwatts, where the processor has it.
    most: Option<u64>,
}

impl Package {
    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

/// Whether a path is one that this knob writes.
pub(super) fn is_file(path: &str) -> bool {
    let rest = path.strip_prefix(ZONES).and_then(|rest| rest.strip_prefix('/'));
    rest.and_then(|rest| rest.strip_prefix(CONTROL)?.split_once('/'))
        .is_some_and(|(zone, file)| zone.parse::<u32>().is_ok() && [LIMIT, ENABLED].contains(&file))
}

fn packages(root: &Root) -> Result<Vec<Package>, Unavailable> {
    let absent = |reason: String| {
        let remedy = "use bare metal with the kernel's intel_rapl_msr module; a virtual machine \
                      does not limit its host's power";
        Unavailable::new(reason, remedy)
    };
    let zones = root.list(ZONES).map_err(|error| absent(error.to_string()))?;
    let (mut found, mut only_counted) = (Vec::new(), false);
    for zone in zones {
        let number = zone.strip_prefix(CONTROL).and_then(|number| number.parse::<u32>().ok());
        let folder = format!("{ZONES}/{zone}");
        let name = root.value(&format!("{folder}/name")).unwrap_or_default();
        let (Some(_), Some(name)) = (number, name.strip_prefix("package-")) else { continue };
        let limit = match root.number(&format!("{folder}/{LIMIT}")) {
            Ok(limit) => limit,
            Err(RootError::Missing { .. }) => {
                only_counted = true;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // A processor that does not say so shows 0, or nothing.
        let most = root.number(&format!("{folder}/{MOST}")).ok().filter(|most| *most > 0);
        found.push(Package { name: name.to_owned(), folder, limit, most });
    }
    match (found.is_empty(), only_counted) {
        (false, _) => Ok(found),
        (true, false) => Err(absent(format!("{ZONES} has no package of intel-rapl"))),
        (true, true) => Err(Unavailable::new(
            format!("the packages in {ZONES} have no {LIMIT}: this processor only counts energy"),
            "set a limit in the firmware; AMD's limits are not among the kernel's files",
        )),
    }
}

/// `70.125W`.
fn watts(microwatts: u64) -> String {
    format!("{}W", microwatts as f64 / MICROWATTS)
}

impl Knob for PowerCap {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "power_cap",
            what: "the power that a package may draw on average over RAPL's time window",
            mechanism: "/sys/class/powercap/intel-rapl:*/constraint_0_power_limit_uw",
            scope: "every package",
            proof: "the power by energy_uj under load reaches the limit and does not exceed it",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        let packages = packages(root)?;
        let most: Option<Vec<(String, Vec<u32>)>> = packages
            .iter()
            .zip(0..)
            .map(|(package, n)| Some((watts(package.most?), vec![n])))
            .collect();
        let form = format!("WATTS such as 80W, in steps of {}", watts(STEP));
        Ok(match most {
            Some(most) => vec!["max".to_owned(), format!("{form} up to {}", tally(most))],
            None => vec![form],
        })
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        let values = packages(root)?.into_iter().zip(0..);
        Ok(tally(values.map(|(package, n)| (watts(package.limit), vec![n])).collect()))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        let mut writes = Vec::new();
        let mut caps = Vec::new();
        for package in packages(root)? {
            let cap = cap(&package, level)?;
            let place = KnobTarget::file(package.file(LIMIT));
            writes.extend(KnobWrite::turn(root, place, cap.to_string())?);
            let enabled = package.file(ENABLED);
            if root.exists(&enabled) {
                writes.extend(KnobWrite::turn(root, KnobTarget::file(enabled), "1")?);
            }
            caps.push((package, cap));
        }
        Ok(KnobChange { writes, prove: prove(caps) })
    }
}

/// The microwatts of a level.
fn cap(package: &Package, level: &str) -> Result<u64, KnobRefusal> {
    let refuse = |why: String| Err(KnobRefusal::Level(why));
    if level == "max" {
        return match package.most {
            Some(most) => Ok(most),
            None => refuse(format!("package {} does not say its most", package.name)),
        };
    }
    let number = level.strip_suffix(['W', 'w']).and_then(|text| text.trim().parse::<f64>().ok());
    let Some(number) = number.filter(|number| (0.0..1e6).contains(number) && *number > 0.0) else {
        return refuse(format!("`{level}` is not a power such as 80W"));
    };
    let cap = (number * MICROWATTS).round() as u64;
    if cap == 0 || !cap.is_multiple_of(STEP) {
        return refuse(format!("limits have steps of {} W", STEP as f64 / MICROWATTS));
    }
    match package.most {
        Some(most) if cap > most => {
            refuse(format!("package {} is made for {}", package.name, watts(most)))
        }
        _ => Ok(cap),
    }
}

/// Longest window for which the machine is kept busy: twice as long in all.
const LONGEST: Duration = Duration::from_millis(2500);
/// The counters move about every millisecond.
const SHORTEST: Duration = Duration::from_millis(100);
/// The processor steers its average to the limit by frequencies of 100 MHz, and power follows the
/// frequency by some percent a step.
const ABOVE: f64 = 1.05;
/// A load that draws less than this of the limit does not show it.
const BELOW: f64 = 0.9;

fn prove(caps: Vec<(Package, u64)>) -> Prove {
    Box::new(move |root| {
        let (mut proven, mut unverified) = (Vec::new(), Vec::new());
        let drawn = match drawn(root, &caps) {
            Ok(drawn) => drawn,
            Err(why) => return ProofOutcome::Unverified(why),
        };
        for ((package, cap), drawn) in caps.iter().zip(drawn) {
            match judge(&package.name, *cap as f64 / MICROWATTS, drawn) {
                ProofOutcome::Proven(text) => proven.push(text),
                ProofOutcome::Unverified(text) => unverified.push(text),
                refuted @ ProofOutcome::Refuted(_) => return refuted,
            }
        }
        match unverified.is_empty() {
            true => ProofOutcome::Proven(proven.join(", ")),
            false => ProofOutcome::Unverified(unverified.join(", ")),
        }
    })
}

/// The outcome for a package with this limit and mean power under load, in watts.
fn judge(package: &str, cap: f64, drawn: f64) -> ProofOutcome {
    let text =
        format!("package {package} drew {} W under load, limit {cap} W", format::short(drawn));
    if drawn > cap * ABOVE {
        ProofOutcome::Refuted(text)
    } else if drawn < cap * BELOW {
        ProofOutcome::Unverified(format!("{text}: too little to show it"))
    } else {
        ProofOutcome::Proven(text)
    }
}

/// The mean power of each package in watts over one window, after another of the same load.
fn drawn(root: &Root, caps: &[(Package, u64)]) -> Result<Vec<f64>, String> {
    let mut window = SHORTEST;
    for (package, _) in caps {
        let own = root.number(&package.file(WINDOW)).map_err(|error| error.to_string())?;
        window = window.max(Duration::from_micros(own));
    }
    if window > LONGEST {
        return Err(format!(
            "the limit holds on average over {} s, longer than a proof may load the machine; \
             compare power.package in a run",
            format::short(window.as_secs_f64())
        ));
    }
    let cpus = match root.is_live() {
        true => topology::online(root).map_err(|error| error.to_string())?,
        false => Vec::new(),
    };
    let energy = || -> Result<Vec<(u64, Instant)>, RootError> {
        let of = |(package, _): &(Package, u64)| {
            Ok((root.number(&package.file("energy_uj"))?, Instant::now()))
        };
        caps.iter().map(of).collect()
    };
    let measured = load::while_busy(&cpus, || {
        std::thread::sleep(window);
        let before = energy()?;
        std::thread::sleep(window);
        Ok((before, energy()?))
    });
    let (before, after) = measured.map_err(|error: RootError| {
        format!("{error}; cannot load CPUs {} and see their energy", cpu_list::show(&cpus))
    })?;
    let mut drawn = Vec::new();
    for ((package, _), (before, after)) in caps.iter().zip(before.iter().zip(&after)) {
        let mut microjoules = after.0.wrapping_sub(before.0);
        if after.0 < before.0 {
            let range: u64 = root
                .number(&package.file("max_energy_range_uj"))
                .map_err(|error| error.to_string())?;
            microjoules = range.saturating_sub(before.0).saturating_add(after.0);
        }
        drawn.push(microjoules as f64 / MICROWATTS / (after.1 - before.1).as_secs_f64());
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_shown_only_by_a_load_that_reaches_it() {
        for (drawn, proven, refuted) in
            [(84.0, true, false), (89.2, true, false), (89.3, false, true), (76.0, false, false)]
        {
            let outcome = judge("0", 85.0, drawn);
            assert_eq!(matches!(outcome, ProofOutcome::Proven(_)), proven, "{outcome:?}");
            assert_eq!(matches!(outcome, ProofOutcome::Refuted(_)), refuted, "{outcome:?}");
        }
    }

    #[test]
    fn only_limits_of_packages_are_its_files() {
        assert!(is_file("/sys/class/powercap/intel-rapl:1/constraint_0_power_limit_uw"));
        assert!(is_file("/sys/class/powercap/intel-rapl:0/enabled"));
        for path in [
            "/sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw",
            "/sys/class/powercap/intel-rapl:0:0/constraint_0_power_limit_uw",
            "/sys/class/powercap/intel-rapl/enabled",
            "/sys/class/powercap/intel-rapl:0/uevent",
        ] {
            assert!(!is_file(path), "{path}");
        }
    }
}
