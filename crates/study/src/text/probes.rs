//! `[probes]` of a study.

use std::fmt;

use host::{CounterChoice, EnergySettings};
use model::Span;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::simulation::SimulationTable;

/// `[probes]`: the probes of the runs.
#[derive(Debug, Clone, Default)]
pub struct ProbesTable {
    /// Names of probes, `auto`, `off` or `energy`; all that work here where it is not given.
    pub chosen: Option<Spanned<ProbeNames>>,
    /// Interval of samples.
    pub every: Option<Spanned<String>>,
    /// How long the idle machine is measured before the first run.
    pub idle: Option<Spanned<Span>>,
    /// Signals without which a run is of no use.
    pub require: Vec<Spanned<String>>,
    pub counters: Option<CounterChoice>,
    pub cachegrind: Option<Spanned<SimulationTable>>,
    /// Sources of energy, each under its own key.
    pub energy: EnergySettings,
}

/// The keys of the table besides those of sources of energy.
const OWN_KEYS: [&str; 6] = ["use", "every", "idle", "require", "counters", "cachegrind"];

impl<'de> Deserialize<'de> for ProbesTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableVisitor;
        impl<'de> Visitor<'de> for TableVisitor {
            type Value = ProbesTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of probes")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ProbesTable, A::Error> {
                let mut table = ProbesTable::default();
                while let Some(ProbesKey(key)) = map.next_key()? {
                    match key.as_str() {
                        "use" => table.chosen = Some(map.next_value()?),
                        "every" => table.every = Some(map.next_value()?),
                        "idle" => table.idle = Some(map.next_value()?),
                        "require" => table.require = map.next_value()?,
                        "counters" => table.counters = Some(map.next_value()?),
                        "cachegrind" => table.cachegrind = Some(map.next_value()?),
                        // A key that is neither was refused before.
                        source => drop(table.energy.read(source, &mut map)?),
                    }
                }
                Ok(table)
            }
        }
        deserializer.deserialize_map(TableVisitor)
    }
}

/// A known key of the table: an unknown one is refused at its place.
struct ProbesKey(String);

impl<'de> Deserialize<'de> for ProbesKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = ProbesKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a setting")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<ProbesKey, E> {
                let sources = EnergySettings::KEYS.iter().map(|key| key.name);
                let known: Vec<&str> = OWN_KEYS.into_iter().chain(sources).collect();
                match known.contains(&key) {
                    true => Ok(ProbesKey(key.to_owned())),
                    false => Err(E::custom(format!(
                        "unknown field `{key}`, expected one of `{}`",
                        known.join("`, `")
                    ))),
                }
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

/// `"auto"`, or `["rapl", "counters"]`.
#[derive(Debug, Clone)]
pub struct ProbeNames(pub Vec<String>);

impl<'de> Deserialize<'de> for ProbeNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = ProbeNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a probe or a list of names")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ProbeNames, E> {
                Ok(ProbeNames(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<ProbeNames, A::Error> {
                let mut all = Vec::new();
                while let Some(name) = names.next_element()? {
                    all.push(name);
                }
                Ok(ProbeNames(all))
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}
