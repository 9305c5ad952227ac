//! `[probes]` of a study, checked.

use host::ProbeChoice;
use host::cachegrind::{CacheGeometry, SimulatedCache};
use toml::Spanned;

use crate::error::StudyError;
use crate::probes::{IDLE_TIME, ProbesConfig, every};
use crate::profiling::Profiling;
use crate::signals::check_signal;
use crate::simulation::Simulation;
use crate::text::{CacheTable, SimulationTable, StudySpec, StudyText, WhyTable};

/// The probes of a study.
pub(crate) fn of_study(source: &StudyText, spec: &StudySpec) -> Result<ProbesConfig, StudyError> {
    let profiling =
        spec.why.as_ref().map(|table| profiling(source, table.get_ref())).transpose()?;
    let mut probes = ProbesConfig { profiling, ..ProbesConfig::default() };
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
        let made = simulation(wanted.get_ref());
        probes.simulation = Some(made.map_err(|why| source.at(wanted.span(), &why))?);
    }
    Ok(probes)
}

/// The configuration of `[why]`.
fn profiling(source: &StudyText, table: &WhyTable) -> Result<Profiling, StudyError> {
    let text = |key: &Spanned<String>| key.get_ref().clone();
    let only = table.only.iter().map(|(key, value)| (text(key), text(value))).collect();
    let profiling = Profiling { only, ..Profiling::default() };
    match &table.frequency {
        None => Ok(profiling),
        Some(frequency) => profiling
            .with_frequency(*frequency.get_ref())
            .map_err(|why| source.at(frequency.span(), &why)),
    }
}

/// The configuration of `[probes.cachegrind]`.
fn simulation(table: &SimulationTable) -> Result<Simulation, String> {
    let usual = Simulation::default();
    let operations = table.operations.map_or(usual.operations, |[few, many]| (few.0, many.0));
    if operations.0 == 0 || operations.1 <= operations.0 {
        let (few, many) = operations;
        return Err(format!(
            "`operations` are those of the short pass and of the long one, but {many} are not more \
             than {few}"
        ));
    }
    let limit = table.limit.map_or(usual.limit, |limit| limit.0);
    let cache = |cache: CacheTable| SimulatedCache {
        bytes: cache.size.0,
        ways: cache.ways,
        line: cache.line.0,
    };
    let caches = match (table.i1, table.d1, table.ll) {
        (None, None, None) => None,
        (Some(i1), Some(d1), Some(ll)) => Some((cache(i1), cache(d1), cache(ll))),
        _ => return Err("give all of `i1`, `d1` and `ll`, or none of them".to_owned()),
    };
    if let Some((i1, d1, ll)) = caches {
        CacheGeometry::new(i1, d1, ll).map_err(|why| why.to_string())?;
    }
    Ok(Simulation { operations, limit, caches })
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
        assert_eq!(probes("").unwrap().profiling, None);
        let why = "[why]\nfrequency = 99\nonly = { workload = \"ycsb-c\" }\n";
        let profiling = probes(why).unwrap().profiling.unwrap();
        let settings = |workload: &str| {
            model::RunSettings::from([("workload".to_owned(), workload.to_owned())])
        };
        assert_eq!(profiling.frequency, 99);
        assert!(profiling.includes(&settings("ycsb-c")) && !profiling.includes(&settings("a")));
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
            ("[why]\nfrequency = 0\n", "1 to 10000 samples a second", "5:13"),
            ("[why]\nfrequncy = 9\n", "did you mean `frequency`?", "5:1"),
            ("[probes]\ncachegrind = { operations = [\"5\", \"2\"] }\n", "more than", "5:14"),
        ] {
            let error = probes(table).unwrap_err().to_string();
            assert!(error.contains(words), "{table}: {error}");
            assert!(error.contains(&format!("study.toml:{line}")), "{table}: {error}");
        }
    }
}
