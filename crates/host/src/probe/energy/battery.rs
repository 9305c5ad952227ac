//! Power drawn from batteries (`Documentation/ABI/testing/sysfs-class-power`).

use std::time::Duration;

use model::{Scope, Unavailable, Unit};

use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("battery", SIGNALS, "/sys/class/power_supply/*", init);

const SUPPLIES: &str = "/sys/class/power_supply";

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.battery", Unit::Watts, Scope::Node, SUPPLIES);
const ENERGY: Signal = Signal::new("energy.battery", Unit::Joules, Scope::Node, SUPPLIES);

const EVERY: Duration = Duration::from_secs(1);

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let none = || {
        Unavailable::new("this machine has no battery", "take another source of energy readings")
    };
    let names = root.list(SUPPLIES).map_err(|_| none())?;
    let is_battery = |name: &String| {
        let file = |rest: &str| root.value(&format!("{SUPPLIES}/{name}/{rest}"));
        // `Device` is the battery of a mouse.
        file("type").is_ok_and(|kind| kind == "Battery")
            && file("scope").map_or(true, |scope| scope == "System")
    };
    let batteries: Vec<String> = names.into_iter().filter(is_battery).collect();
    if batteries.is_empty() {
        return Err(none());
    }
    read_watts(root, &batteries)?;
    let which = batteries.join(", ");
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Level, every };
    let root = root.clone();
    let gauge = [sampled.gauge(sensor, move || read_watts(&root, &batteries))];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}

/// Watts out of all batteries.
fn read_watts(root: &Root, batteries: &[String]) -> Result<f64, Unavailable> {
    let mut watts = 0.0;
    let mut feeding = false;
    for battery in batteries {
        let file = |rest: &str| format!("{SUPPLIES}/{battery}/{rest}");
        match root.value(&file("status"))?.as_str() {
            "Discharging" => {
                feeding = true;
                watts += out_of(root, &file)?;
            }
            // One of two batteries rests while the other is drawn from.
            "Not charging" | "Full" => {}
            _ => {
                feeding = false;
                break;
            }
        }
    }
    if !feeding {
        return Err(Unavailable::new(
            "the machine runs from the mains, which its battery does not measure",
            "unplug it while it is measured, or put a meter in front of it",
        ));
    }
    Ok(watts)
}

fn out_of(root: &Root, file: &impl Fn(&str) -> String) -> Result<f64, Unavailable> {
    // Some drivers show what flows out as a negative number.
    let micro = |name: &str| root.number::<i64>(&file(name)).map(|value| value.abs() as f64 * 1e-6);
    match micro("power_now") {
        Ok(watts) => Ok(watts),
        Err(_) => Ok(micro("current_now")? * micro("voltage_now")?),
    }
}
