//! `[beside]`: a co-runner that loads the machine while a workload is measured. A hog takes memory
//! bandwidth in a process of its own; the bandwidth that it achieved is a reading of the run.

use std::str::FromStr;

use micro::hog::Traffic;
use micro::job::{CpuList, HogArgs, PlacementFlags};
use model::{ByteRate, RunSettings};

use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::text::{HogTable, StudySpec, StudyText};

/// A co-runner of a run: a hog.
#[derive(Debug, Clone, PartialEq)]
pub struct CoRunner(pub HogArgs);

/// The co-runner of a study's runs; `None` for none.
///
/// # Errors
/// An invalid value, at its place.
pub(crate) fn of_study(
    source: &StudyText,
    spec: &StudySpec,
    levels: &KnobLevels,
) -> Result<Option<CoRunner>, StudyError> {
    let Some(hog) = spec.co_runner.hog.as_ref() else { return Ok(None) };
    let cpus = cpus(source, hog, &levels.cpus_left(source.root()))?;
    let traffic = match &hog.traffic {
        None => Traffic::default(),
        Some(word) => {
            Traffic::from_str(word.get_ref()).map_err(|words| source.at(word.span(), &words))?
        }
    };
    let rate = match hog.rate.get_ref().as_str() {
        "none" => return Ok(None),
        "max" => None,
        text => match text.parse::<ByteRate>() {
            Ok(rate) if rate.0 >= 1.0 => Some(rate),
            Ok(_) => {
                return Err(source
                    .at(hog.rate.span(), "write `none` for no traffic; the least rate is 1 B/s"));
            }
            Err(error) => {
                return Err(source.at(hog.rate.span(), &format!("{error}, `max` or `none`")));
            }
        },
    };
    let size = hog.size.as_ref().map(|size| *size.get_ref());
    let at = PlacementFlags { cpus: Some(cpus), ..PlacementFlags::default() };
    Ok(Some(CoRunner(HogArgs { at, rate, traffic, size, ..HogArgs::default() })))
}

/// The CPUs of a hog's threads, as a list.
fn cpus(source: &StudyText, hog: &HogTable, allowed: &[u32]) -> Result<CpuList, StudyError> {
    match (&hog.cpus, &hog.threads) {
        (Some(list), None) => {
            let cpus = CpuList::from_str(list.get_ref());
            let cpus = cpus.map_err(|words| source.at(list.span(), &words))?;
            if let Some(cpu) = cpus.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
                let words = format!("CPU {cpu} cannot be used; kvmeter may use {allowed:?}");
                return Err(source.at(list.span(), &words));
            }
            Ok(cpus)
        }
        (None, Some(threads)) if *threads.get_ref() == 0 => {
            Err(source
                .at(threads.span(), "a hog needs a thread; write `rate = \"none\"` for no hog"))
        }
        // One thread a CPU; where there are fewer, the run's settings say which they are.
        (None, Some(threads)) => {
            let last = allowed.iter().rev().take(*threads.get_ref() as usize).copied();
            Ok(CpuList::from(last.collect::<Vec<_>>()))
        }
        (Some(list), Some(_)) => {
            Err(source.at(list.span(), "`cpus` and `threads` exclude each other; leave one out"))
        }
        (None, None) => {
            let words = "where the hog runs is missing: `cpus = \"2-5\"`, or `threads = 4` for \
                         the CPUs that the load takes last";
            Err(source.at(hog.rate.span(), words))
        }
    }
}

impl CoRunner {
    /// The CPUs of its threads, as written.
    pub fn cpus(&self) -> String {
        self.0.at.cpus.as_ref().map(CpuList::to_string).unwrap_or_default()
    }

    /// Adds its settings to those of a run.
    pub fn settings(&self, settings: &mut RunSettings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        put("beside.hog.rate", self.0.rate.map_or("max".to_owned(), |rate| rate.to_string()));
        put("beside.hog.cpus", self.cpus());
        put("beside.hog.traffic", self.0.traffic.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(hog: &str) -> Result<Option<CoRunner>, String> {
        parsed_under(hog, &KnobLevels::default())
    }

    fn parsed_under(hog: &str, levels: &KnobLevels) -> Result<Option<CoRunner>, String> {
        let text =
            format!("name = \"s\"\nsequence = [\"ycsb-c\"]\n[store.null]\n[beside.hog]\n{hog}\n");
        let source = StudyText::new("s.toml", &text);
        let spec = source.spec().map_err(|error| error.to_string())?;
        of_study(&source, &spec, levels).map_err(|error| error.to_string())
    }

    fn cpu() -> u32 {
        host::cpus(&host::Root::live()).unwrap().cpus[0]
    }

    #[test]
    fn a_table_becomes_a_hog() {
        let cpu = cpu();
        let hog = parsed(&format!(
            "rate = \"2GB/s\"\ncpus = \"{cpu}\"\ntraffic = \"update\"\nsize = \"64MiB\""
        ));
        let hog = hog.unwrap().unwrap();
        let mut settings = RunSettings::new();
        hog.settings(&mut settings);
        assert_eq!(settings["beside.hog.rate"], "2GB/s");
        assert_eq!(settings["beside.hog.traffic"], "update");
        assert_eq!(hog.0.size, Some(model::Bytes(64 << 20)));
        assert_eq!(parsed(&format!("rate = \"none\"\ncpus = \"{cpu}\"")), Ok(None));
        let most = parsed(&format!("rate = \"max\"\ncpus = \"{cpu}\"")).unwrap().unwrap();
        assert_eq!(most.0.rate, None);
    }

    #[test]
    fn threads_take_the_cpus_that_the_load_takes_last() {
        let order = host::cpus(&host::Root::live()).unwrap().cpus;
        let one = parsed("rate = \"1GB/s\"\nthreads = 1").unwrap().unwrap();
        assert_eq!(one.cpus(), order.last().unwrap().to_string());
        // Where there are fewer CPUs, as many threads as CPUs.
        let many = parsed("rate = \"1GB/s\"\nthreads = 100000").unwrap().unwrap();
        assert_eq!(many.cpus().split(',').count(), order.len());
        // It stays with the load, wherever a knob places that.
        let levels = KnobLevels(vec![("cpus".to_owned(), order[0].to_string())]);
        let beside = parsed_under("rate = \"1GB/s\"\nthreads = 4", &levels).unwrap().unwrap();
        assert_eq!(beside.cpus(), order[0].to_string());
    }

    #[test]
    fn mistakes_are_shown_at_their_place() {
        for (hog, place, words) in [
            ("rate = \"10\"\ncpus = \"0\"", "rate", "is not a bandwidth"),
            ("rate = \"0GB/s\"\ncpus = \"0\"", "rate", "none"),
            ("rate = \"max\"\ncpus = \"x\"", "cpus", "not a list of CPUs"),
            ("rate = \"max\"\ncpus = \"60000\"", "cpus", "cannot be used"),
            ("rate = \"max\"\ncpus = \"0\"\ntraffic = \"all\"", "traffic", "not one of read"),
            ("rate = \"max\"\ncpus = \"0\"\ncores = 1", "cores", "unknown"),
            ("rate = \"max\"\ncpus = \"0\"\nthreads = 1", "cpus", "exclude each other"),
            ("rate = \"max\"\nthreads = 0", "threads", "needs a thread"),
            ("rate = \"max\"", "rate", "threads = 4"),
        ] {
            let error = parsed(hog).unwrap_err();
            assert!(error.contains(place) && error.contains(words), "{hog}: {error}");
        }
    }
}
