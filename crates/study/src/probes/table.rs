//! `[probes]` of a study.

use std::fmt;

use host::{CounterChoice, EnergySettings, ProbeChoice};
use model::Span;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::flag::every;
use super::{IDLE_TIME, ProbesConfig};
use crate::error::StudyError;
use crate::signals::check_signal;
use crate::simulation::{Simulation, SimulationTable};
use crate::spec::StudySpec;
use crate::study_text::StudyText;

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
pub struct ProbeNames(Vec<String>);

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

/// The probes of a study.
pub(crate) fn of_study(source: &StudyText, spec: &StudySpec) -> Result<ProbesConfig, StudyError> {
    let mut probes = ProbesConfig::default();
    let Some(table) = &spec.probes else { return Ok(probes) };
    if let Some(names) = &table.chosen {
        probes.choice = ProbeChoice::Off;
        for name in &names.get_ref().0 {
            if name == "cachegrind" {
                probes.simulation = Some(Simulation::default());
                continue;
            }
            let taken = probes.choice.take(name);
            taken.map_err(|error| source.at(names.span(), &error.to_string()))?;
        }
    }
    if let Some(text) = &table.every {
        let interval = every(text.get_ref()).map_err(|why| source.at(text.span(), &why))?;
        probes.every = Some(interval);
    }
    probes.idle = table.idle.as_ref().map_or(IDLE_TIME, |idle| idle.get_ref().0);
    for signal in &table.require {
        check_signal(signal.get_ref()).map_err(|why| source.at(signal.span(), &why))?;
        probes.require.push(signal.get_ref().clone());
    }
    probes.counters = table.counters.clone().unwrap_or_default();
    probes.energy = table.energy.clone();
    probes
        .energy
        .check()
        .map_err(|error| source.at_key(&["probes", error.source_key()], &error.to_string()))?;
    if let Some(wanted) = &table.cachegrind {
        let made = Simulation::of(wanted.get_ref());
        probes.simulation = Some(made.map_err(|why| source.at(wanted.span(), &why))?);
    }
    Ok(probes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(table: &str) -> Result<ProbesConfig, StudyError> {
        let text = format!("name = \"x\"\nsequence = [\"ycsb-c\"]\n[store.null]\n{table}");
        let source = StudyText::new("study.toml", &text);
        let spec = source.spec()?;
        of_study(&source, &spec)
    }

    #[test]
    fn every_key_of_the_table_is_taken() {
        let made = probes(
            "[probes]\nuse = [\"energy\", \"counters\"]\nevery = \"200ms\"\nidle = \"10s\"\n\
             require = [\"energy.total\", \"ipc\"]\nhwmon = \"power_meter.power1\"\n\
             [probes.counters]\nscope = \"machine\"\nevents = [\"r412e\"]\n\
             [probes.meter]\nport = \"/dev/ttyUSB0\"\nvariant = \"511n\"\n\
             [probes.model]\nidle_w = 40\nfull_w = 120\n\
             [probes.cachegrind]\noperations = [\"10k\", \"110k\"]\n",
        )
        .unwrap();
        assert!(
            matches!(&made.choice, ProbeChoice::Only(names) if names.contains(&"rapl".to_owned()))
        );
        assert_eq!(made.require, ["energy.total", "ipc"]);
        assert_eq!(made.counters.events, ["r412e"]);
        assert_eq!(made.energy.meter.unwrap().port, "/dev/ttyUSB0");
        assert_eq!(made.idle.as_secs(), 10);
        assert_eq!(made.simulation.unwrap().operations, (10_000, 110_000));
        assert_eq!(probes("[probes]\nuse = \"off\"\n").unwrap().choice, ProbeChoice::Off);
        assert_eq!(probes("").unwrap().choice, ProbeChoice::Auto);
    }

    #[test]
    fn mistakes_are_shown_at_their_place() {
        for (table, words, line) in [
            ("[probes]\nuse = [\"rabl\"]\n", "did you mean `rapl`?", "5:7"),
            ("[probes]\nrequire = [\"ipcs\"]\n", "did you mean `ipc`?", "5:12"),
            ("[probes]\nevery = \"1ms\"\n", "20ms to 60s", "5:9"),
            ("[probes]\nevry = \"1s\"\n", "did you mean `every`?", "5:1"),
            ("[probes]\nmodel = { idle_w = 9, full_w = 3 }\n", "`model.full_w`", "5:9"),
            ("[probes.counters]\nscop = \"cpus\"\n", "did you mean `scope`?", "5:1"),
            ("[probes]\ncachegrind = { operations = [\"5\", \"2\"] }\n", "more than", "5:14"),
        ] {
            let error = probes(table).unwrap_err().to_string();
            assert!(error.contains(words), "{table}: {error}");
            assert!(error.contains(&format!("study.toml:{line}")), "{table}: {error}");
        }
    }
}
