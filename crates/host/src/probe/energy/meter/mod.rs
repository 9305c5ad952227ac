//! A power meter of the MCP39F511 family between the machine and the socket.

mod frame;
mod line;

use std::time::Duration;

use model::{Scope, Unavailable, Unit};
use serde::{Deserialize, Serialize};

use self::frame::Registers;
use self::line::SerialLine;
use super::settings::{ReadFlag, SettingError, SourceSettings, positive};
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("meter", SIGNALS, "a serial port of the user's", init)
        .may_be_elsewhere()
        .with_stated_error(ERROR);

/// The larger one of both variants: 0.5 % of the MCP39F511N (Microchip, DS20005473B), 0.1 % of the
/// MCP39F511A (DS20006044A), each over a range of 4000:1.
const ERROR: f64 = 0.005;

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.meter", Unit::Watts, Scope::Wall, "MCP39F511");
const ENERGY: Signal = Signal::new("energy.meter", Unit::Joules, Scope::Wall, "MCP39F511");

/// A question and its answer take 5 ms of the line at its usual rate.
const EVERY: Duration = Duration::from_millis(200);

/// A meter of the MCP39F511 family on a serial port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterSettings {
    /// e.g. `/dev/ttyUSB0`
    pub port: String,
    #[serde(default)]
    pub variant: MeterVariant,
    /// Which outlets of a two-channel meter (511N) the machine hangs on.
    #[serde(default)]
    pub channels: Channels,
    /// Steps of the power register in a watt, which the board's calibration sets.
    #[serde(default = "steps_per_watt")]
    pub watts_divisor: f64,
    #[serde(default = "baud")]
    pub baud: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeterVariant {
    /// MCP39F511A: one channel.
    #[default]
    #[serde(rename = "511a")]
    Mcp39f511a,
    /// MCP39F511N: two channels.
    #[serde(rename = "511n")]
    Mcp39f511n,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// All that the meter has, added.
    #[default]
    All,
    First,
    Second,
}

impl MeterSettings {
    /// A single-channel meter as its maker ships it.
    pub fn at(port: impl Into<String>) -> Self {
        MeterSettings {
            port: port.into(),
            variant: MeterVariant::default(),
            channels: Channels::default(),
            watts_divisor: steps_per_watt(),
            baud: baud(),
        }
    }
}

impl SourceSettings for MeterSettings {
    /// `PORT` or `PORT@511n`.
    const FLAG: Option<ReadFlag<Self>> = Some(|value| {
        let (port, variant) = match value.rsplit_once('@') {
            Some((port, "511a")) => (port, MeterVariant::Mcp39f511a),
            Some((port, "511n")) => (port, MeterVariant::Mcp39f511n),
            Some(_) => return Err(SettingError::new("meter", value, "PORT@511a or PORT@511n")),
            None => (value, MeterVariant::default()),
        };
        Ok(MeterSettings { variant, ..MeterSettings::at(port) })
    });

    fn check(&self) -> Result<(), SettingError> {
        if self.port.is_empty() {
            return Err(SettingError::new("meter.port", "", "a serial port such as /dev/ttyUSB0"));
        }
        positive("meter.watts_divisor", self.watts_divisor)?;
        if self.baud == 0 {
            return Err(SettingError::new("meter.baud", 0, "a rate such as 115200"));
        }
        if self.channels == Channels::Second && self.variant == MeterVariant::Mcp39f511a {
            let expected = "there on a 511a: it has one channel";
            return Err(SettingError::new("meter.channels", "second", expected));
        }
        Ok(())
    }
}

fn steps_per_watt() -> f64 {
    100.0
}

fn baud() -> u32 {
    115_200
}

fn init(root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let settings = context.energy.meter.clone().ok_or_else(|| {
        Unavailable::new(
            "no power meter was named",
            "name its serial port: `--probes meter=/dev/ttyUSB0`",
        )
    })?;
    let mut meter = Meter { line: SerialLine::open(root, &settings)?, settings };
    meter.watts()?;
    let which = format!("on {}", meter.settings.port);
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Level, every };
    let gauge = [sampled.gauge(sensor, move || meter.watts())];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}

struct Meter {
    line: SerialLine,
    settings: MeterSettings,
}

impl Meter {
    fn watts(&mut self) -> Result<f64, Unavailable> {
        let MeterSettings { variant, channels, watts_divisor, .. } = self.settings;
        let registers = Registers(self.line.registers()?);
        Ok(registers.power_steps(variant, channels) as f64 / watts_divisor)
    }
}
