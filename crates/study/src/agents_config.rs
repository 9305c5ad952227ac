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
    /// They listen at any free port, which is no setting of a run.
    pub any_port: bool,
    pub secrets: CredentialFiles,
    /// The client that measures, where the agents are background load.
    pub measure: Option<MeasuringClient>,
    /// The knobs that the agents' machines turn, too, to the levels of this one.
    pub knobs: Vec<String>,
    /// The probes that are read on the agents' machines, by name.
    pub probes: Vec<String>,
}

/// A client that issues requests at a rate of its own over one connection. The run's latencies are
/// then its own.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuringClient {
    /// Operations per second.
    pub rate: f64,
    /// The agent on its machine; without one the coordinator measures.
    pub host: Option<Address>,
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

    /// The agent that measures, beside those that load.
    ///
    /// # Errors
    /// An invalid address, or one of an agent that loads.
    pub fn measuring_host(text: &str, hosts: &[Address]) -> Result<Address, StudyError> {
        let host = AgentsConfig::hosts([text])?.remove(0);
        match hosts.contains(&host) {
            true => Err(StudyError::Request(format!(
                "agent {host} would load and measure at once; name an agent on another machine"
            ))),
            false => Ok(host),
        }
    }

    /// All agents, the one that measures last.
    pub fn all_hosts(&self) -> Vec<Address> {
        let measuring = self.measure.as_ref().and_then(|client| client.host.as_ref());
        self.hosts.iter().chain(measuring).cloned().collect()
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
        let name = |address: &Address| match address {
            Address::Tcp { host, .. } if self.any_port => host.clone(),
            address => address.to_string(),
        };
        let hosts: Vec<String> = self.hosts.iter().map(name).collect();
        settings.insert("agents".to_owned(), hosts.join(","));
        settings.insert("agents.count".to_owned(), hosts.len().to_string());
        if let Some(MeasuringClient { rate, host }) = &self.measure {
            settings.insert("agents.measure_rate".to_owned(), Rate(*rate).to_string());
            let name = host.as_ref().map_or("coordinator".to_owned(), name);
            settings.insert("measured_by".to_owned(), name);
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
        assert_eq!(AgentsConfig::measuring_host("c", &hosts).unwrap().to_string(), "c:9377");
        let error = AgentsConfig::measuring_host("a:9377", &hosts).unwrap_err().to_string();
        assert!(error.contains("at once"), "{error}");
    }
}
