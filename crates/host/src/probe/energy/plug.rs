//! A smart plug or PDU that answers watts over HTTP.

use std::time::Duration;

use model::{Scope, Unavailable, Unit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ureq::Agent;

use super::settings::{ReadFlag, SettingError, SourceSettings, one, positive};
use crate::probe::sampler::{Kind, Sampled, Sensor, Take};
use crate::probe::{Context, Probe, ProbeSpec, Signal};
use crate::root::Root;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("plug", SIGNALS, "an HTTP address of the user's", init).may_be_elsewhere();

const SIGNALS: &[Signal] = &[POWER, ENERGY];
const POWER: Signal = Signal::new("power.wall", Unit::Watts, Scope::Wall, "HTTP");
const ENERGY: Signal = Signal::new("energy.wall", Unit::Joules, Scope::Wall, "HTTP");

/// Plugs refresh their reading about every second.
const EVERY: Duration = Duration::from_secs(1);

/// Limit for the whole request: name, connection, answer.
const LIMIT: Duration = Duration::from_secs(2);

/// Longest answer.
const MAX_ANSWER: u64 = 64 << 10;

/// A smart plug or PDU that answers watts over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlugSettings {
    /// e.g. `http://plug.lan/rpc/Switch.GetStatus?id=0`
    pub url: String,
    /// JSON pointer (RFC 6901) to the number, e.g. `/apower`; empty if the answer is the number.
    #[serde(default)]
    pub watts: String,
    /// Watts in one unit of that number: 0.001 for milliwatts.
    #[serde(default = "one")]
    pub factor: f64,
}

impl SourceSettings for PlugSettings {
    /// `URL#POINTER`.
    const FLAG: Option<ReadFlag<Self>> = Some(|value| {
        let (url, watts) = value.split_once('#').unwrap_or((value, ""));
        Ok(PlugSettings { url: url.to_owned(), watts: watts.to_owned(), factor: one() })
    });
    const TAKES_REST: bool = true;

    fn check(&self) -> Result<(), SettingError> {
        let Some(address) = self.url.strip_prefix("http://") else {
            let expected = "an http:// address (kvmeter reads plugs without TLS)";
            return Err(SettingError::new("plug.url", &self.url, expected));
        };
        if address.split('/').next().unwrap_or_default().contains('@') {
            // It is kept in results files and shown.
            let expected = "an address without a user and a password: it is stored with the runs";
            return Err(SettingError::new("plug.url", model::masked(&self.url), expected));
        }
        if !self.watts.is_empty() && !self.watts.starts_with('/') {
            let expected = "a JSON pointer such as /apower";
            return Err(SettingError::new("plug.watts", &self.watts, expected));
        }
        positive("plug.factor", self.factor)
    }
}

fn init(_: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    let settings = context.energy.plug.clone().ok_or_else(|| {
        Unavailable::new(
            "no smart plug was named",
            "name one: `--probes plug=http://ADDRESS/PATH#/POINTER`",
        )
    })?;
    // Never through a proxy: the plug is in the same room.
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(LIMIT))
        .proxy(None)
        .max_redirects(0)
        .build()
        .into();
    read_watts(&agent, &settings)?;
    let which = match settings.watts.as_str() {
        "" => settings.url.clone(),
        pointer => format!("{} at {pointer}", settings.url),
    };
    let every = context.every(EVERY);
    let mut sampled = Sampled::default();
    let sensor = Sensor { signal: POWER, part: "", which: &which, kind: Kind::Level, every };
    let gauge = [sampled.gauge(sensor, move || read_watts(&agent, &settings))];
    sampled.reading(POWER, &gauge, Take::Watts);
    sampled.reading(ENERGY, &gauge, Take::Joules);
    Ok(Box::new(sampled))
}

fn read_watts(agent: &Agent, settings: &PlugSettings) -> Result<f64, Unavailable> {
    let text = agent
        .get(&settings.url)
        .call()
        .and_then(|mut answer| answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string())
        .map_err(|error| {
            Unavailable::new(
                format!("{} did not answer: {error}", settings.url),
                "open the address from this machine (`curl`) until it answers",
            )
        })?;
    number(&text, &settings.watts)
        .map(|number| number * settings.factor)
        .filter(|watts| watts.is_finite() && *watts >= 0.0)
        .ok_or_else(|| {
            let text: String = text.trim().chars().take(120).collect();
            Unavailable::new(
                format!("{} returned no watts at `{}`: {text}", settings.url, settings.watts),
                "give the JSON pointer to the watts, e.g. `/apower`, after a `#`",
            )
        })
}

/// The number at a JSON pointer; some plugs write it as a string.
fn number(text: &str, pointer: &str) -> Option<f64> {
    let value: Value = serde_json::from_str(text).ok()?;
    match value.pointer(pointer)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_watts_by_the_pointer() {
        let shelly = r#"{"id":0,"output":true,"apower":41.5,"aenergy":{"total":9.1}}"#;
        assert_eq!(number(shelly, "/apower"), Some(41.5));
        let tasmota = r#"{"StatusSNS":{"Time":"2024-01-01T00:00:00","ENERGY":{"Power":"37"}}}"#;
        assert_eq!(number(tasmota, "/StatusSNS/ENERGY/Power"), Some(37.0));
        assert_eq!(number("12.25\n", ""), Some(12.25));
        assert_eq!(number(shelly, "/output"), None);
        assert_eq!(number(shelly, "/power"), None);
        assert_eq!(number("<html>", "/apower"), None);
    }
}
