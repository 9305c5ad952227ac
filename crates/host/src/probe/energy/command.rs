//! Any program that prints power or energy as one number.

use std::time::Duration;

use model::{Scope, Unavailable, Unit};
use serde::{Deserialize, Serialize};

use super::settings::{ReadFlag, SettingError, SourceSettings, one};
use super::{program, settings};
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("command", SIGNALS, "a program of the user's", init).may_be_elsewhere();

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.command", Unit::Watts, Scope::External, "program");
const ENERGY: Signal = Signal::new("energy.command", Unit::Joules, Scope::External, "program");

const EVERY: Duration = Duration::from_secs(1);

/// A program that prints one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSettings {
    /// The program and its arguments; no shell is in between.
    pub run: Vec<String>,
    #[serde(default)]
    pub answers: Quantity,
    /// It is killed when it takes longer.
    #[serde(default = "one")]
    pub limit_s: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Power now.
    #[default]
    Watts,
    /// Energy since some time in the past; never goes down.
    Joules,
}

impl SourceSettings for CommandSettings {
    /// `PROGRAM ARGUMENTS`, which prints watts.
    const FLAG: Option<ReadFlag<Self>> = Some(|value| {
        let run = value.split_whitespace().map(str::to_owned).collect();
        Ok(CommandSettings { run, answers: Quantity::default(), limit_s: one() })
    });
    const TAKES_REST: bool = true;

    fn check(&self) -> Result<(), SettingError> {
        settings::program("command.run", &self.run)?;
        match self.limit_s > 0.0 && self.limit_s <= 10.0 {
            true => Ok(()),
            false => {
                let expected = "between 0 and 10 seconds";
                Err(SettingError::new("command.limit_s", self.limit_s, expected))
            }
        }
    }
}

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
            format!(
                "`{}` printed `{text}`, which is not a power or energy",
                settings.run.join(" ")
            ),
            "let it print one number and nothing else",
        )
    })
}
