//! Power of the whole machine from its management controller: IPMI's Data Center Manageability
//! Interface 1.5, "Get Power Reading", through `ipmitool`.

use std::time::Duration;

use model::{Scope, Unavailable, Unit};
use serde::{Deserialize, Serialize};

use super::settings::{SettingError, SourceSettings};
use super::{program, settings};
use crate::parse::field;
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;
use crate::unavailable::live_only;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("dcmi", SIGNALS, "ipmitool dcmi power reading", init).may_be_elsewhere();

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.dcmi", Unit::Watts, Scope::Node, "DCMI power reading");
const ENERGY: Signal = Signal::new("energy.dcmi", Unit::Joules, Scope::Node, "DCMI power reading");

/// Device files of the local controller.
const DEVICES: [&str; 3] = ["/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"];

/// Controllers refresh their reading about every second.
const EVERY: Duration = Duration::from_secs(1);

const LIMIT: Duration = Duration::from_secs(2);

/// How the machine's management controller is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DcmiSettings {
    /// A program that prints what `ipmitool dcmi power reading` prints; may ask a
    /// remote controller (`ipmitool -I lanplus -H bmc.lan ...`).
    pub run: Vec<String>,
}

impl SourceSettings for DcmiSettings {
    fn check(&self) -> Result<(), SettingError> {
        settings::program("dcmi.run", &self.run)
    }
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let run = match &context.energy.dcmi {
        Some(settings) => settings.run.clone(),
        None => local(root)?,
    };
    read_watts(&run)?;
    let which = format!("by `{}`", run.join(" "));
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Level, every };
    let gauge = [sampled.gauge(sensor, move || read_watts(&run))];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}

fn local(root: &Root) -> Result<Vec<String>, Unavailable> {
    if !DEVICES.iter().any(|device| root.exists(device)) {
        return Err(Unavailable::new(
            format!("there is no {}: no management controller, or no driver for it", DEVICES[0]),
            "modprobe ipmi_si ipmi_devintf, or ask the controller over the network (`dcmi.run` of \
             the energy probes)",
        ));
    }
    if !root.is_live() {
        return Err(live_only("ipmitool"));
    }
    Ok(["ipmitool", "dcmi", "power", "reading"].map(str::to_owned).to_vec())
}

fn read_watts(run: &[String]) -> Result<f64, Unavailable> {
    watts(&program::run(run, LIMIT)?)
}

/// The present power in what `ipmitool dcmi power reading` prints.
fn watts(text: &str) -> Result<f64, Unavailable> {
    // Every line is indented.
    let text: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
    if field(&text, "Power reading state is").is_some_and(|state| state != "activated") {
        return Err(Unavailable::new(
            "the management controller has its power reading switched off",
            "ipmitool dcmi power activate",
        ));
    }
    let watts = field(&text, "Instantaneous power reading")
        .and_then(|reading| reading.strip_suffix("Watts")?.trim().parse::<f64>().ok());
    match watts {
        // Controllers without a sensor answer 0.
        Some(watts) if watts > 0.0 => Ok(watts),
        _ => Err(Unavailable::new(
            "the management controller reported no power",
            "see what `ipmitool dcmi power reading` prints; not every controller has the sensor",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
    Instantaneous power reading:                   216 Watts
    Minimum during sampling period:                 18 Watts
    Power reading state is:                   activated
";

    #[test]
    fn finds_the_present_power_in_the_output() {
        assert_eq!(watts(PRINTED), Ok(216.0));
        let off = PRINTED.replace("  activated", "  deactivated");
        assert!(watts(&off).unwrap_err().remedy.contains("activate"));
        let none = PRINTED.replace("216", "0");
        assert!(watts(&none).unwrap_err().reason.contains("no power"));
        assert!(watts("").is_err());
    }
}
