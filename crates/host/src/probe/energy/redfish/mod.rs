//! Power of the whole machine from its management controller by Redfish (DMTF DSP0266): HTTPS and
//! JSON. Read is `EnvironmentMetrics` of a chassis, or the older `Power`.

mod service;
mod settings;

use std::time::Duration;

use model::{Scope, Unavailable, Unit};

use self::service::{Failure, Service};
pub use self::settings::RedfishSettings;
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("redfish", SIGNALS, "a Redfish service of the user's", init).may_be_elsewhere();

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.redfish", Unit::Watts, Scope::Node, "Redfish");
const ENERGY: Signal = Signal::new("energy.redfish", Unit::Joules, Scope::Node, "Redfish");

/// Controllers refresh their reading about every second.
const EVERY: Duration = Duration::from_secs(1);

/// Limit of one request in a window, which the other sensors wait for.
const LIMIT: Duration = Duration::from_secs(2);
/// Limit of each request before the first window: controllers take long for a first handshake.
const FIRST_LIMIT: Duration = Duration::from_secs(10);

const CHASSIS: &str = "/redfish/v1/Chassis";

/// The resources of a chassis that hold its watts, the newer one first, and the JSON pointer to them.
const RESOURCES: [(&str, &str); 2] = [
    ("EnvironmentMetrics", "/PowerWatts/Reading"),
    ("Power", "/PowerControl/0/PowerConsumedWatts"),
];

fn init(_: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let settings = context.energy.redfish.as_ref().ok_or_else(|| {
        Unavailable::new(
            "no Redfish service was named",
            "name one: `--probes 'redfish=https://ADDRESS?user=NAME&password_file=FILE'`",
        )
    })?;
    let service = Service::new(settings)?;
    let chassis = match settings.chassis() {
        Some(path) => path.to_owned(),
        None => only_chassis(&service)?,
    };
    let (path, pointer) = resource(&service, &chassis)?;
    let which = format!("{}{path} at {pointer}", service.origin());
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Level, every };
    let gauge = [sampled.gauge(sensor, move || watts(&service, &path, pointer, LIMIT))];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}

/// The chassis of a service that has no other.
fn only_chassis(service: &Service) -> Result<String, Unavailable> {
    let answer = service.get(CHASSIS, FIRST_LIMIT)?;
    let members = answer.pointer("/Members").and_then(|members| members.as_array());
    let paths: Vec<&str> = members
        .into_iter()
        .flatten()
        .filter_map(|member| member.pointer("/@odata.id")?.as_str())
        .collect();
    match paths.as_slice() {
        [one] => Ok((*one).trim_end_matches('/').to_owned()),
        [] => Err(Unavailable::new(
            format!("{}{CHASSIS} lists no chassis", service.origin()),
            "name one: `--probes redfish=https://ADDRESS/redfish/v1/Chassis/ID`",
        )),
        several => Err(Unavailable::new(
            format!("{} has {} chassis", service.origin(), several.len()),
            format!("choose one: `--probes redfish={}{}`", service.origin(), several.join("|")),
        )),
    }
}

/// The resource of a chassis that has its watts, and where they are in it.
fn resource(service: &Service, chassis: &str) -> Result<(String, &'static str), Unavailable> {
    for (name, pointer) in RESOURCES {
        let path = format!("{chassis}/{name}");
        match service.get(&path, FIRST_LIMIT) {
            Ok(answer) if number(&answer, pointer).is_some() => return Ok((path, pointer)),
            Ok(_) | Err(Failure::Status(404 | 405 | 501, _)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Unavailable::new(
        format!(
            "{}{chassis} has neither PowerWatts in EnvironmentMetrics nor PowerConsumedWatts in Power",
            service.origin()
        ),
        "name another chassis, or take another source: not every controller measures power",
    ))
}

fn watts(
    service: &Service,
    path: &str,
    pointer: &str,
    limit: Duration,
) -> Result<f64, Unavailable> {
    let answer = service.get(path, limit)?;
    number(&answer, pointer).ok_or_else(|| {
        Unavailable::new(
            format!("{}{path} has no watts at {pointer} any more", service.origin()),
            "see what the controller answers there; its sensor may be off",
        )
    })
}

fn number(answer: &serde_json::Value, pointer: &str) -> Option<f64> {
    answer.pointer(pointer)?.as_f64().filter(|watts| watts.is_finite() && *watts >= 0.0)
}
