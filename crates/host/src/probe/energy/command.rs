//! Any program that prints power or energy as one number.

use std::time::Duration;

use model::{Scope, Unavailable, Unit};

use super::program;
use super::settings::{CommandSettings, Quantity};
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec { name: "command", signals: SIGNALS, reads: "a program of the user's", init };

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.command", Unit::Watts, Scope::External, "program");
const ENERGY: Signal = Signal::new("energy.command", Unit::Joules, Scope::External, "program");

const EVERY: Duration = Duration::from_secs(1);

fn init(_: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let settings = context.energy.command.clone().ok_or_else(|| {
        Unavailable::new(
            "no program that prints watts was named",
            "name one: `--probes 'command=PROGRAM ARGUMENTS'`",
        )
    })?;
    read_value(&settings)?;
    let kind = match settings.answers {
        Quantity::Watts => Kind::Level,
        Quantity::Joules => Kind::Counter,
    };
    let which = format!("`{}`", settings.run.join(" "));
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind, every };
    let gauge = [sampled.gauge(sensor, move || read_value(&settings))];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}

fn read_value(settings: &CommandSettings) -> Result<f64, Unavailable> {
    let text = program::run(&settings.run, Duration::from_secs_f64(settings.limit_s))?;
    let number = text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    number.ok_or_else(|| {
        let text: String = text.trim().chars().take(60).collect();
        Unavailable::new(
            format!("`{}` printed `{text}`, which is no power or energy", settings.run.join(" ")),
            "let it print one number and nothing else",
        )
    })
}
