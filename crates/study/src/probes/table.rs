//! `[probes]` of a study.

use std::fmt;
use std::ops::Range;

use host::probe::energy::{
    CommandSettings, DcmiSettings, EnergySettings, MeterSettings, ModelSettings, PlugSettings,
    SettingError,
};
use host::{CounterChoice, ProbeChoice};
use model::Span;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::flag::every;
use super::required::check_name;
use super::{IDLE_TIME, ProbesConfig};
use crate::error::StudyError;
use crate::simulation::{Simulation, SimulationTable};
use crate::spec::StudySpec;
use crate::study_text::{StudyText, given};

/// `[probes]`: the probes of the runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbesTable {
    /// Names of probes, `auto`, `off` or `energy`; all that work here where it is not given.
    #[serde(rename = "use")]
    pub chosen: Option<Spanned<ProbeNames>>,
    /// Interval of samples.
    pub every: Option<Spanned<String>>,
    /// How long the idle machine is measured before the first run.
    pub idle: Option<Spanned<Span>>,
    /// Signals without which a run is of no use.
    #[serde(default)]
    pub require: Vec<Spanned<String>>,
    pub counters: Option<CounterChoice>,
    pub meter: Option<Spanned<MeterSettings>>,
    pub plug: Option<Spanned<PlugSettings>>,
    pub command: Option<Spanned<CommandSettings>>,
    pub dcmi: Option<Spanned<DcmiSettings>>,
    /// The sensor that stands for `power.hwmon`.
    pub hwmon: Option<Spanned<String>>,
    pub model: Option<Spanned<ModelSettings>>,
    pub cachegrind: Option<Spanned<SimulationTable>>,
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
        check_name(signal.get_ref()).map_err(|why| source.at(signal.span(), &why))?;
        probes.require.push(signal.get_ref().clone());
    }
    probes.counters = table.counters.clone().unwrap_or_default();
    probes.energy = energy(table);
    probes.energy.check().map_err(|error| misplaced(source, table, &error))?;
    if let Some(wanted) = &table.cachegrind {
        let made = Simulation::of(wanted.get_ref());
        probes.simulation = Some(made.map_err(|why| source.at(wanted.span(), &why))?);
    }
    Ok(probes)
}

fn energy(table: &ProbesTable) -> EnergySettings {
    EnergySettings {
        meter: given(&table.meter),
        plug: given(&table.plug),
        command: given(&table.command),
        dcmi: given(&table.dcmi),
        hwmon: given(&table.hwmon),
        model: given(&table.model),
    }
}

/// Shows the error at its table: its key begins with the table's name.
fn misplaced(source: &StudyText, table: &ProbesTable, error: &SettingError) -> StudyError {
    fn span<T>(of: &Option<Spanned<T>>) -> Option<Range<usize>> {
        of.as_ref().map(Spanned::span)
    }
    let words = error.to_string();
    let place = match error.key().split('.').next().unwrap_or_default() {
        "meter" => span(&table.meter),
        "plug" => span(&table.plug),
        "command" => span(&table.command),
        "dcmi" => span(&table.dcmi),
        "hwmon" => span(&table.hwmon),
        "model" => span(&table.model),
        _ => None,
    };
    match place {
        Some(place) => source.at(place, &words),
        None => StudyError::Request(format!("{}: {words}", source.origin)),
    }
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
