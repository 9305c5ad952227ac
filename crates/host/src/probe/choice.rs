//! The choice of probes of a run.

use model::Unavailable;
use thiserror::Error;

use super::{PROBES, ProbeSpec, energy};

/// Probes that every run needs: they read a few files of `/proc`.
const ALWAYS: [&str; 7] = ["pressure", "device", "quota", "machine", "memory", "io", "cpu"];

/// The probes besides those that always run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProbeChoice {
    /// Every probe that works here.
    #[default]
    Auto,
    /// These, and configured energy sources.
    Only(Vec<String>),
    /// None.
    Off,
}

/// An unknown probe name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no probe `{name}`; {hint}")]
pub struct UnknownProbe {
    name: String,
    hint: String,
}

impl ProbeChoice {
    /// Takes one word: `auto`, `off`, `energy` for all its sources, or a probe's name, which
    /// limits the choice to those that are named.
    ///
    /// # Errors
    /// No probe has this name.
    pub fn take(&mut self, word: &str) -> Result<(), UnknownProbe> {
        let add: Vec<String> = match word {
            "auto" => {
                *self = ProbeChoice::Auto;
                return Ok(());
            }
            "off" => {
                *self = ProbeChoice::Off;
                return Ok(());
            }
            "energy" => energy::probes().map(|spec| spec.name.to_owned()).collect(),
            name if PROBES.iter().any(|spec| spec.name == name) => vec![name.to_owned()],
            name => {
                let known = PROBES.iter().map(|spec| spec.name).chain(["auto", "off", "energy"]);
                let hint = model::suggest::hint(name, known);
                return Err(UnknownProbe { name: name.to_owned(), hint });
            }
        };
        match self {
            ProbeChoice::Only(names) => names.extend(add),
            ProbeChoice::Auto | ProbeChoice::Off => *self = ProbeChoice::Only(add),
        }
        Ok(())
    }

    /// Whether a signal is of a probe that is chosen by its name, beyond those that always run.
    pub fn names(&self, signal: &str) -> bool {
        let ProbeChoice::Only(names) = self else { return false };
        let named = PROBES.iter().filter(|spec| {
            !ALWAYS.contains(&spec.name) && names.iter().any(|name| name == spec.name)
        });
        let mut signals = named.flat_map(|spec| spec.signals.iter().chain(spec.parts));
        signals.any(|known| known.is_named(signal))
    }

    /// Whether a probe is chosen; `configured`: it was given settings of its own.
    pub(super) fn takes(&self, spec: &ProbeSpec, configured: bool) -> Result<(), Unavailable> {
        let name = spec.name;
        let chosen = ALWAYS.contains(&name)
            || match self {
                ProbeChoice::Auto => true,
                ProbeChoice::Only(names) => configured || names.iter().any(|chosen| chosen == name),
                ProbeChoice::Off => false,
            };
        if chosen {
            return Ok(());
        }
        Err(Unavailable::new(
            format!("the probe {name} was not asked for"),
            format!("name it too: `--probes {name}`, or `--probes auto` for all"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str) -> &'static ProbeSpec {
        PROBES.iter().find(|spec| spec.name == name).unwrap()
    }

    #[test]
    fn naming_a_probe_keeps_the_basic_ones() {
        assert!(ALWAYS.iter().all(|name| ProbeChoice::Off.takes(spec(name), false).is_ok()));
        let mut choice = ProbeChoice::Auto;
        assert!(PROBES.iter().all(|spec| choice.takes(spec, false).is_ok()));
        choice.take("rapl").unwrap();
        choice.take("residency").unwrap();
        assert!(choice.takes(spec("rapl"), false).is_ok());
        let no = choice.takes(spec("hwmon"), false).unwrap_err();
        assert!(no.remedy.contains("--probes hwmon"), "{no:?}");
        assert!(choice.takes(spec("meter"), true).is_ok());
        assert!(ProbeChoice::Off.takes(spec("meter"), true).is_err());
        choice.take("auto").unwrap();
        choice.take("energy").unwrap();
        assert!(choice.takes(spec("battery"), false).is_ok());
        let unknown = choice.take("rabl").unwrap_err().to_string();
        assert!(unknown.contains("did you mean `rapl`"), "{unknown}");
    }
}
