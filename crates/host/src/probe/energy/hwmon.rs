//! Power and energy sensors of the kernel's hwmon drivers (`Documentation/hwmon/sysfs-interface.rst`):
//! the ACPI power meter, power supplies, current monitors on the board.

use std::time::Duration;

use model::{Scope, Unavailable, Unit};
use serde::{Deserialize, Serialize};

use super::amdgpu;
use super::settings::{ReadFlag, SettingError, SourceSettings};
use crate::probe::sampler::{Handle, Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::{Root, RootError};

const CHIPS: &str = "/sys/class/hwmon";

pub(super) const SPEC: ProbeSpec = ProbeSpec::new("hwmon", SIGNALS, "/sys/class/hwmon/*", init)
    .with_parts(&[POWER.of_parts("power.hwmon.SENSOR"), ENERGY.of_parts("energy.hwmon.SENSOR")]);

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.hwmon", Unit::Watts, Scope::Component, CHIPS);
const ENERGY: Signal = Signal::new("energy.hwmon", Unit::Joules, Scope::Component, CHIPS);

/// The driver of the platform's own power meter.
const PLATFORM: &str = "power_meter";

const EVERY: Duration = Duration::from_secs(1);

/// The sensor that stands for `power.hwmon`, e.g. `power_meter.power1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorName(String);

impl From<&str> for SensorName {
    fn from(name: &str) -> Self {
        SensorName(name.to_owned())
    }
}

impl SourceSettings for SensorName {
    const FLAG: Option<ReadFlag<Self>> = Some(|value| Ok(value.into()));

    /// Whether there is such a sensor is known when it is read.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }
}

/// One input of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HwmonInput {
    /// `CHIP.LABEL`, e.g. `power_meter.power1`.
    name: String,
    platform: bool,
    path: String,
    /// Whether it counts microjoules; else it shows microwatts.
    counts: bool,
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let inputs = inputs(root).unwrap_or_default();
    if inputs.is_empty() {
        return Err(Unavailable::new(
            format!("no chip under {CHIPS} has a power or energy sensor"),
            "load the driver of the board's sensors, or take another source",
        ));
    }
    let chosen =
        chosen(&inputs, context.energy.hwmon.as_ref().map(|SensorName(name)| name.as_str()));
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let handles: Vec<Handle> =
        inputs.iter().map(|input| add(&mut sampled, root, input, every)).collect();
    for (signal, take) in [(POWER, Take::Watts), (ENERGY, Take::Joules)] {
        match &chosen {
            Ok(at) => sampled.reading(signal, &[handles[*at]], take),
            Err(why) => sampled.absent(signal, why.clone()),
        }
    }
    for (input, handle) in inputs.iter().zip(&handles) {
        sampled.part(POWER, &input.name, &[*handle], Take::Watts);
        sampled.part(ENERGY, &input.name, &[*handle], Take::Joules);
    }
    Ok(Box::new(sampled))
}

/// The sensor that the probe reads. Sensors cover different parts, so they are not added.
fn chosen(inputs: &[HwmonInput], wanted: Option<&str>) -> Result<usize, Unavailable> {
    let at = match wanted {
        Some(wanted) => inputs.iter().position(|input| input.name == wanted),
        None if inputs.len() == 1 => Some(0),
        None => inputs.iter().position(|input| input.platform),
    };
    at.ok_or_else(|| {
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let reason = match wanted {
            Some(wanted) => format!("there is no sensor {wanted}"),
            None => "several sensors cover different parts of the machine".to_owned(),
        };
        Unavailable::new(reason, format!("choose one: `--probes hwmon={}`", names.join("|")))
    })
}

fn add(sampled: &mut Sampled, root: &Root, input: &HwmonInput, every: Duration) -> Handle {
    let which = format!("{} ({})", input.path.trim_start_matches(CHIPS), input.name);
    let kind = if input.counts { Kind::Counter } else { Kind::Level };
    let sensor = Sensor { signal: POWER, part: &input.name, which: &which, kind, every };
    let (root, path) = (root.clone(), input.path.clone());
    sampled.gauge(sensor, move || {
        let micro = root.number::<u64>(&path)?;
        Ok(micro as f64 * 1e-6)
    })
}

/// Every sensor that can be read, in the order of the chips.
fn inputs(root: &Root) -> Result<Vec<HwmonInput>, RootError> {
    let mut inputs: Vec<HwmonInput> = Vec::new();
    for number in root.numbered(CHIPS, "hwmon")? {
        let folder = format!("{CHIPS}/hwmon{number}");
        let chip = root.value(&format!("{folder}/name")).unwrap_or_else(|_| "chip".to_owned());
        if chip == amdgpu::DRIVER {
            // The probe of that name reads it, with its own boundary.
            continue;
        }
        for file in root.list(&folder)? {
            let Some(sensor) = sensor(&file) else { continue };
            let path = format!("{folder}/{file}");
            // The average is used where the chip has no present value.
            let doubled =
                file.ends_with("_average") && root.exists(&format!("{folder}/{sensor}_input"));
            if doubled || root.number::<u64>(&path).is_err() {
                continue;
            }
            let label = root.value(&format!("{folder}/{sensor}_label"));
            let label = label.unwrap_or_else(|_| sensor.to_owned());
            let mut name = format!("{}.{}", plain(&chip), plain(&label));
            if inputs.iter().any(|input| input.name == name) {
                name = format!("{name}.hwmon{number}");
            }
            let (platform, counts) = (chip == PLATFORM, sensor.starts_with("energy"));
            inputs.push(HwmonInput { name, platform, path, counts });
        }
    }
    Ok(inputs)
}

/// `power1` of `power1_input`; none for a file that is no value of power or energy.
fn sensor(file: &str) -> Option<&str> {
    let sensor = file.strip_suffix("_input").or_else(|| file.strip_suffix("_average"))?;
    let digits = sensor.strip_prefix("power").or_else(|| sensor.strip_prefix("energy"))?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(sensor)
}

/// Fit for a signal's name.
fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    text.trim().chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_of_power_and_energy_are_sensors() {
        assert_eq!(sensor("power1_input"), Some("power1"));
        assert_eq!(sensor("power12_average"), Some("power12"));
        assert_eq!(sensor("energy3_input"), Some("energy3"));
        for other in ["power1_cap", "power1_average_interval", "temp1_input", "power_input"] {
            assert_eq!(sensor(other), None, "{other}");
        }
    }
}
