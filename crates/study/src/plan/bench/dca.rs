//! A simulated last-level cache with direct cache access as a run of its own phase. All its figures
//! are readings of origin `simulated`.

use cachesim::{Policy, SimError, SimulatedMachine, Traffic};
use model::suggest::hint;
use toml::Spanned;

use crate::error::StudyError;
use crate::text::{BenchTable, StudyText, option_text};

pub(super) const NAME: &str = "dca";
/// Display name of the simulator.
pub const SIMULATOR: &str = "kvmeter's cache simulator";
/// Estimated seconds of one simulation.
pub(super) const SECONDS: f64 = 2.0;
const MACHINE: &str = "machine";
const TRAFFIC: &str = "traffic";
const POLICY: &str = "policy";
const WAYS: &str = "ways";
const SEED: &str = "seed";
/// Defaults, as for the command.
const DEFAULTS: [(&str, &str); 3] =
    [(MACHINE, "xeon-gold-6140"), (TRAFFIC, "forward"), (POLICY, "on")];

/// One simulation.
#[derive(Debug, Clone)]
pub struct DcaJob {
    pub machine: SimulatedMachine,
    pub traffic: Traffic,
    pub policy: Policy,
    /// Seed of the first repeat; each has its own arrivals.
    pub seed: u64,
    pub(super) settings: Vec<(String, String)>,
}

/// Parses a table. Its keys are `machine`, `traffic`, `policy` and what the command sweeps.
pub(super) fn parse(
    source: &StudyText,
    seed: u64,
    name: &Spanned<String>,
    table: &BenchTable,
) -> Result<DcaJob, StudyError> {
    if name.get_ref() != NAME {
        let words = format!(
            "there is no simulation `{}`; {}",
            name.get_ref(),
            hint(name.get_ref(), [NAME])
        );
        return Err(source.at(name.span(), &words));
    }
    let known = || DEFAULTS.iter().map(|(key, _)| *key).chain([WAYS]).chain(Traffic::KEYS);
    let mut settings: Vec<(String, String)> =
        DEFAULTS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    for (key, value) in table {
        let wrong = key.get_ref();
        if !known().any(|known| known == wrong) {
            let hint = hint(wrong, known().collect::<Vec<_>>());
            let words = format!("`{NAME}` has no setting `{wrong}`; {hint}");
            return Err(source.at(key.span(), &words));
        }
        let text = option_text(value.get_ref()).map_err(|words| source.at(value.span(), &words))?;
        match settings.iter_mut().find(|(known, _)| known == wrong) {
            Some((_, default)) => *default = text,
            None => settings.push((wrong.clone(), text)),
        }
    }
    let at = |key: &str, error: &SimError| {
        let value = table.iter().find(|(known, _)| known.get_ref() == key);
        let place = value.map_or(name.span(), |(_, value)| value.span());
        source.at(place, error.to_string().trim_end())
    };
    let text = |key: &str| {
        let found = settings.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, text)| text.as_str())
    };
    let mut machine = SimulatedMachine::open(text(MACHINE)).map_err(|error| at(MACHINE, &error))?;
    let mut traffic = Traffic::open(text(TRAFFIC), &machine).map_err(|e| at(TRAFFIC, &e))?;
    let policy = Policy::parse(text(POLICY)).map_err(|error| at(POLICY, &error))?;
    policy.start(machine.choice()).map_err(|error| at(POLICY, &error))?;
    let mut last = TRAFFIC.to_owned();
    for (key, text) in &settings {
        match key.as_str() {
            MACHINE | TRAFFIC | POLICY => continue,
            WAYS => machine.set_ways(text),
            _ => traffic.set(key, text),
        }
        .map_err(|error| at(key, &error))?;
        last.clone_from(key);
    }
    traffic.recheck(&machine).map_err(|error| at(&last, &error))?;
    let given = settings.iter().any(|(key, _)| key == SEED);
    let seed = if given { traffic.seed } else { seed };
    Ok(DcaJob { machine, traffic, policy, seed, settings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::bench::of_study;

    fn parsed(table: &str) -> Result<DcaJob, String> {
        let text = format!("name = \"s\"\n[simulate.dca]\n{table}\n");
        let source = StudyText::new("s.toml", &text);
        let words = |error: StudyError| error.to_string();
        let spec = source.spec().map_err(words)?;
        let mut benches = of_study(&source, &spec, &|_, _| true).map_err(words)?;
        match benches.pop() {
            Some(super::super::Bench::Simulate(job)) => Ok(*job),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn mistakes_are_shown_at_their_place() {
        for (table, place, words) in [
            ("machine = \"xeon\"", "3:11", "there is no file `xeon`"),
            ("traffic = \"flo\"", "3:11", "flow"),
            ("policy = \"onn\"", "3:10", "no policy `onn`"),
            ("policy = \"ways:99\"", "3:10", "ways"),
            ("stride = 64", "3:10", "do not read packets"),
            ("traffic = \"flow\"\nstride = 0", "4:10", "above 0"),
            ("packt = 64", "3:1", "did you mean `packet`?"),
        ] {
            let error = parsed(table).unwrap_err();
            assert!(error.contains(words), "{table}: {error}");
            assert!(error.contains(place), "{table}: {error}");
        }
    }
}
