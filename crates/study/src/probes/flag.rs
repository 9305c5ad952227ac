//! Parses `--probes`.

use host::{CounterScope, EnergySettings};
use model::Span;

use super::ProbesConfig;
use crate::error::StudyError;
use crate::signals::check_signal;
use crate::simulation::Simulation;

/// Settings of the counters and of the sampler.
const OWN_KEYS: [&str; 3] = ["event", "scope", "every"];

impl ProbesConfig {
    /// Takes one `--probes LIST`: names of probes, `auto`, `off`, `energy`, `cachegrind`, and
    /// settings as `KEY=VALUE`, parted by commas. The value of `event`, and of sources whose
    /// settings may hold commas, is all the rest. `scope` is whose events are counted, `every` the
    /// interval of samples.
    ///
    /// # Errors
    /// A word that is none of these, or a value with which a probe cannot work.
    pub fn take(&mut self, list: &str) -> Result<(), StudyError> {
        let mut rest = list;
        while !rest.is_empty() {
            let whole = rest.split_once('=').is_some_and(|(key, _)| takes_rest(key));
            let (word, after) = match rest.split_once(',') {
                Some((word, after)) if !whole => (word, after),
                _ => (rest, ""),
            };
            self.word(word.trim())
                .map_err(|why| StudyError::Request(format!("--probes: {why}")))?;
            rest = after;
        }
        Ok(())
    }

    /// Takes one `--require SIGNAL`.
    ///
    /// # Errors
    /// No run has such a signal.
    pub fn require(&mut self, signal: &str) -> Result<(), StudyError> {
        check_signal(signal).map_err(|why| StudyError::Request(format!("--require: {why}")))?;
        self.require.push(signal.to_owned());
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        let Some((key, value)) = word.split_once('=') else {
            if word == "cachegrind" {
                self.simulation = Some(Simulation::default());
                return Ok(());
            }
            return self.choice.take(word).map_err(|error| error.to_string());
        };
        match key {
            "event" => self.counters.events.push(value.to_owned()),
            "scope" => self.counters.scope = scope(value)?,
            "every" => self.every = Some(every(value)?),
            _ => match self.energy.set(word) {
                Ok(true) => {}
                Ok(false) => {
                    let sources = EnergySettings::KEYS.iter().filter(|key| key.has_flag);
                    let known: Vec<&str> = sources.map(|key| key.name).chain(OWN_KEYS).collect();
                    return Err(format!(
                        "there is no setting `{key}`; the settings are {}",
                        known.join(", ")
                    ));
                }
                Err(error) => return Err(error.to_string()),
            },
        }
        Ok(())
    }
}

/// Whether the value of a setting may contain commas and extends to the end.
fn takes_rest(key: &str) -> bool {
    let of_source =
        || EnergySettings::KEYS.iter().any(|known| known.name == key && known.takes_rest);
    key == "event" || of_source()
}

/// Parses the interval of samples; shorter ones cost too much.
pub(crate) fn every(text: &str) -> Result<std::time::Duration, String> {
    let span: Span = text.parse().map_err(|error| format!("every={text}: {error}"))?;
    match (0.02..=60.0).contains(&span.0.as_secs_f64()) {
        true => Ok(span.0),
        false => Err(format!("every={text}: samples are 20ms to 60s apart")),
    }
}

fn scope(text: &str) -> Result<CounterScope, String> {
    Ok(match text {
        "auto" => CounterScope::Auto,
        "process" => CounterScope::Process,
        "servers" => CounterScope::Servers,
        "cpus" => CounterScope::Cpus,
        "machine" => CounterScope::Machine,
        _ => {
            let known = ["auto", "process", "servers", "cpus", "machine"];
            return Err(format!("scope={text}: {}", model::suggest::hint(text, known)));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::ProbeChoice;
    use std::time::Duration;

    #[test]
    fn a_list_is_parsed_word_by_word() {
        let mut probes = ProbesConfig::default();
        probes.take("rapl,model=40:120,every=200ms,scope=machine").unwrap();
        probes.take("event=cpu/event=0x2e,umask=0x41/").unwrap();
        probes.take("command=ipmitool sensor, raw").unwrap();
        assert_eq!(probes.choice, ProbeChoice::Only(vec!["rapl".to_owned()]));
        assert_eq!(probes.every, Some(Duration::from_millis(200)));
        assert_eq!(probes.counters.events, ["cpu/event=0x2e,umask=0x41/"]);
        assert_eq!(probes.counters.scope, CounterScope::Machine);
        assert_eq!(probes.energy.command.unwrap().run.join(" "), "ipmitool sensor, raw");
        assert_eq!(probes.energy.model.unwrap().full_w, 120.0);
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (list, named) in [
            ("rapl,intel", "no probe `intel`"),
            ("modl=40:120", "no setting `modl`"),
            ("model=120:40", "`model.full_w`"),
            ("scope=all", "scope=all"),
            ("every=1ms", "20ms to 60s"),
            ("rapl,,off", "no probe ``"),
        ] {
            let error = ProbesConfig::default().take(list).unwrap_err();
            assert!(error.is_request() && error.to_string().contains(named), "{list}: {error}");
        }
        assert!(ProbesConfig::default().require("ipk").unwrap_err().to_string().contains("`ipc`"));
    }
}
