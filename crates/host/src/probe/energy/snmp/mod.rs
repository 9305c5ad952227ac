//! Power at the wall from a PDU or another meter by SNMP.

mod agent;
mod settings;
mod value;

use std::time::Duration;

use model::{Scope, Unavailable, Unit};

use self::agent::Agent;
pub use self::settings::{SnmpSettings, SnmpVersion};
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("snmp", SIGNALS, "an SNMP agent of the user's", init).may_be_elsewhere();

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.snmp", Unit::Watts, Scope::Wall, "SNMP");
const ENERGY: Signal = Signal::new("energy.snmp", Unit::Joules, Scope::Wall, "SNMP");

/// PDUs refresh their reading about every second.
const EVERY: Duration = Duration::from_secs(1);

fn init(_: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let settings = context.energy.snmp.as_ref().ok_or_else(|| {
        Unavailable::new("no SNMP agent was named", "name one: `--probes snmp=ADDRESS/OID`")
    })?;
    let agent = Agent::open(settings)?;
    let which = agent.source();
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Level, every };
    let gauge = [sampled.gauge(sensor, move || agent.watts())];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}
