//! The client machines that generate the load instead of this one.

use std::path::PathBuf;

use agents::{AgentError, Credentials, TlsFiles, Token};
use model::{Address, Rate, RunSettings};

use crate::error::StudyError;
use crate::load::InvalidOption;

/// The machines that generate the load instead of this one.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentsConfig {
    pub hosts: Vec<Address>,
    pub secrets: CredentialFiles,
    /// Operations per second that this machine issues itself over one connection. Latencies are then
    /// its own, and the agents are background load.
    pub measure: Option<f64>,
    /// The knobs that the agents' machines turn, too, to the levels of this one.
    pub knobs: Vec<String>,
    /// The probes that are read on the agents' machines, by name.
    pub probes: Vec<String>,
}

/// Where the credentials are; they are read when the agents are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFiles {
    pub files: TlsFiles,
    pub token_file: Option<PathBuf>,
    /// The environment variable that holds the token where no file does.
    pub token_variable: String,
}

impl CredentialFiles {
    pub fn load(&self) -> Result<Credentials, AgentError> {
        let token = match &self.token_file {
            Some(path) => Some(Token::from_file(path)?),
            None => Token::from_variable(&self.token_variable)?,
        };
        Credentials::load(&self.files, token)
    }
}

impl AgentsConfig {
    /// Reads `HOST`, `HOST:PORT` and so on.
    ///
    /// # Errors
    /// The first invalid address.
    pub fn hosts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Address>, StudyError> {
        let read = |text: &str| match Address::parse(text, agents::DEFAULT_PORT) {
            Ok(Address::Unix(_)) => Err(StudyError::Request(format!(
                "{text}: agents listen on TCP; write `HOST` or `HOST:PORT`"
            ))),
            Ok(address) => Ok(address),
            Err(error) => Err(StudyError::Request(error.to_string())),
        };
        let hosts = texts.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let twice = (1..hosts.len()).find(|at| hosts[..*at].contains(&hosts[*at]));
        match twice {
            Some(at) => Err(StudyError::Request(format!(
                "agent {} is named twice; name each agent once",
                hosts[at]
            ))),
            None if hosts.is_empty() => Err(StudyError::Request("no agent is named".to_owned())),
            None => Ok(hosts),
        }
    }

    /// Checks the names of knobs and probes.
    ///
    /// # Errors
    /// The key with the first unknown name, and what there is.
    pub(crate) fn check_names(&self) -> Result<(), InvalidOption> {
        for knob in &self.knobs {
            host::knob::Knobs::find(knob)
                .map_err(|error| InvalidOption { key: "agents-knobs", why: error.to_string() })?;
        }
        self.probes.iter().try_for_each(|probe| {
            let known = host::ProbeChoice::Off.take(probe);
            known.map_err(|error| InvalidOption { key: "agents-probes", why: error.to_string() })
        })
    }

    pub fn settings(&self, settings: &mut RunSettings) {
        let hosts: Vec<String> = self.hosts.iter().map(Address::to_string).collect();
        settings.insert("agents".to_owned(), hosts.join(","));
        settings.insert("agents.count".to_owned(), hosts.len().to_string());
        if let Some(rate) = self.measure {
            settings.insert("agents.measure_rate".to_owned(), Rate(rate).to_string());
            settings.insert("measured_by".to_owned(), "coordinator".to_owned());
        }
        if !self.probes.is_empty() {
            settings.insert("agents.probes".to_owned(), self.probes.join(","));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_parsed_and_mistakes_named() {
        let hosts = AgentsConfig::hosts(["a", "b:1"]).unwrap();
        assert_eq!(hosts[0].to_string(), "a:9377");
        for (texts, why) in
            [(&["a", "a"][..], "twice"), (&["/x"], "TCP"), (&["a:x"], "port"), (&[], "no agent")]
        {
            let error = AgentsConfig::hosts(texts.iter().copied()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
