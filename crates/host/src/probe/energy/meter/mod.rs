//! A power meter of the MCP39F511 family between the machine and the socket.

mod frame;
mod line;

use std::time::Duration;

use model::{Scope, Unavailable, Unit};

use self::frame::Registers;
use self::line::SerialLine;
use super::settings::MeterSettings;
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec { name: "meter", signals: SIGNALS, reads: "a serial port of the user's", init };

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.meter", Unit::Watts, Scope::Wall, "MCP39F511");
const ENERGY: Signal = Signal::new("energy.meter", Unit::Joules, Scope::Wall, "MCP39F511");

/// A question and its answer take 5 ms of the line at its usual rate.
const EVERY: Duration = Duration::from_millis(200);

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
