//! Flags about several client machines.

use std::path::PathBuf;

use agents::{TlsFiles, flags};
use clap::{Args, ValueHint};
use model::Rate;
use study::{AgentsConfig, MeasuringClient};

use crate::exit::request;

/// Heading of flags for several client machines.
pub const AGENTS: &str = "Agents";

/// The client machines that issue the load.
#[derive(Debug, Args)]
pub struct AgentFlags {
    /// Client machines that issue the load instead of this one; `kvmeter agent` runs on each.
    /// Threads and rate are divided among them
    #[arg(long, value_name = "HOST[:PORT],...", value_delimiter = ',', help_heading = AGENTS)]
    pub agents: Vec<String>,
    /// Knobs of --knob that the agents' machines turn, too; each has to allow it (--allow-knob)
    #[arg(long, value_name = "KNOB,...", value_delimiter = ',', help_heading = AGENTS,
        requires = "agents")]
    pub agents_knobs: Vec<String>,
    /// Probes to read on the agents' machines, such as counters; each has to allow it
    /// (--allow-probe)
    #[arg(long, value_name = "PROBE,...", value_delimiter = ',', help_heading = AGENTS,
        requires = "agents")]
    pub agents_probes: Vec<String>,
    #[command(flatten)]
    pub credentials: CredentialFlags,
}

/// Credentials of a coordinator and its agents.
#[derive(Debug, Args)]
pub struct CredentialFlags {
    /// File with the shared token; else the variable KVMETER_AGENT_TOKEN
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = AGENTS)]
    agent_token_file: Option<PathBuf>,
    /// Mutual TLS: PEM file of the authorities that sign the other side's certificate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = AGENTS)]
    agent_ca: Option<PathBuf>,
    /// PEM file of this side's certificate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = AGENTS)]
    agent_cert: Option<PathBuf>,
    /// PEM file of the certificate's key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = AGENTS)]
    agent_key: Option<PathBuf>,
}

impl AgentFlags {
    /// The number of client machines: the agents, or this one.
    pub fn machines(&self) -> u32 {
        self.agents.len().max(1) as u32
    }

    /// None if this machine issues the load. With a rate, this machine or the agent at the address
    /// measures while they load.
    pub fn config(
        &self,
        measure: Option<(Rate, Option<&str>)>,
    ) -> anyhow::Result<Option<AgentsConfig>> {
        if self.agents.is_empty() {
            return Ok(None);
        }
        let hosts = AgentsConfig::hosts(self.agents.iter().map(String::as_str))
            .map_err(|error| request(format!("{}: {error}", flags::AGENTS)))?;
        let secrets = self.credentials.files();
        let measure = measure.map(|(Rate(rate), host)| {
            let host = host.map(|host| {
                AgentsConfig::measuring_host(host, &hosts)
                    .map_err(|error| request(format!("--agents-measure-host: {error}")))
            });
            host.transpose().map(|host| MeasuringClient { rate, host })
        });
        let measure = measure.transpose()?;
        let (knobs, probes) = (self.agents_knobs.clone(), self.agents_probes.clone());
        Ok(Some(AgentsConfig { hosts, secrets, measure, knobs, probes }))
    }
}

impl CredentialFlags {
    /// The files and variables of the credentials.
    pub fn files(&self) -> study::CredentialFiles {
        study::CredentialFiles {
            files: TlsFiles {
                ca: self.agent_ca.clone(),
                cert: self.agent_cert.clone(),
                key: self.agent_key.clone(),
            },
            token_file: self.agent_token_file.clone(),
            token_variable: flags::TOKEN_VARIABLE.to_owned(),
        }
    }
}
