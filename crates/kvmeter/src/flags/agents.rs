//! Flags about several client machines.

use std::path::PathBuf;

use agents::{TlsFiles, flags};
use clap::{Args, ValueHint};
use model::{Address, Rate};
use store::StoreUrl;
use study::{AgentsConfig, CredentialFiles, MeasuringClient, Plan};

use crate::exit::request;
use crate::hosts::{self, StartedAgents, WantedAgents};
use crate::output::Output;

/// Heading of flags for several client machines.
pub const AGENTS: &str = "Agents";
pub const AGENTS_ON: &str = "--agents-on";
/// The flags that name client machines, of which one is enough.
pub const CLIENTS: &str = "clients";

/// The client machines that issue the load.
#[derive(Debug, Args)]
pub struct AgentFlags {
    /// Client machines that issue the load instead of this one; `kvmeter agent` runs on each.
    /// Threads and rate are divided among them
    #[arg(long, value_name = "HOST[:PORT],...", value_delimiter = ',', help_heading = AGENTS,
        group = CLIENTS)]
    pub agents: Vec<String>,
    #[command(flatten)]
    pub started: StartFlags,
    /// Knobs of --knob that the agents' machines turn, too; each has to allow it (--allow-knob)
    #[arg(long, value_name = "KNOB,...", value_delimiter = ',', help_heading = AGENTS,
        requires = CLIENTS)]
    pub agents_knobs: Vec<String>,
    /// Probes to read on the agents' machines, such as counters; each has to allow it
    /// (--allow-probe)
    #[arg(long, value_name = "PROBE,...", value_delimiter = ',', help_heading = AGENTS,
        requires = CLIENTS)]
    pub agents_probes: Vec<String>,
    #[command(flatten)]
    pub credentials: CredentialFlags,
}

/// Agents that a command starts itself.
#[derive(Debug, Args)]
pub struct StartFlags {
    /// Start an agent on each of these machines, and end it with this command: local, ssh:HOST,...,
    /// slurm:partition=NAME,nodes=COUNT, kubernetes:nodes=COUNT,..., a fleet file (fleet.toml), or
    /// an Ansible inventory (FILE or FILE:GROUP)
    #[arg(long, value_name = "HOSTS", help_heading = AGENTS, group = CLIENTS)]
    pub agents_on: Option<String>,
    /// kvmeter for machines of --agents-on of another architecture than this one's; may be repeated
    #[arg(long, value_name = "FILE", requires = "agents_on", value_hint = ValueHint::FilePath,
        help_heading = AGENTS)]
    pub agents_binary: Vec<PathBuf>,
}

/// The client machines of a command.
pub struct Clients {
    /// None if this machine issues the load.
    pub config: Option<AgentsConfig>,
    /// They end when this is dropped.
    pub started: Option<StartedAgents>,
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
        let agents = match &self.started.agents_on {
            // What names no host is refused where its agents are started.
            Some(on) => hosts::agent_names(on).map_or(0, |names| names.len()),
            None => self.agents.len(),
        };
        agents.max(1) as u32
    }

    /// The client machines; starts agents that are to be started. With a rate, this machine or the
    /// agent at the address, or on the host, measures while they load.
    pub fn clients(
        &self,
        measure: Option<(Rate, Option<&str>)>,
        stores: Vec<&StoreUrl>,
        show: &Output,
    ) -> anyhow::Result<Clients> {
        if self.started.agents_on.is_some() && self.credentials.is_given() {
            return Err(request(format!(
                "{AGENTS_ON}: makes certificates of its own; leave out --agent-token-file, --agent-ca, \
                 --agent-cert and --agent-key"
            )));
        }
        let (knobs, probes) = (&self.agents_knobs, &self.agents_probes);
        let Some((mut config, started)) = self.started.start(stores, (knobs, probes), show)? else {
            let config = self.config(measure)?;
            return Ok(Clients { config, started: None });
        };
        if let Some((Rate(rate), host)) = measure {
            let host = host.map(|name| taken(&mut config.hosts, &started, name)).transpose()?;
            config.measure = Some(MeasuringClient { rate, host });
        }
        Ok(Clients { config: Some(config), started: Some(started) })
    }

    /// The agents that are named; or those that would be started, for a plan alone.
    pub fn config(
        &self,
        measure: Option<(Rate, Option<&str>)>,
    ) -> anyhow::Result<Option<AgentsConfig>> {
        let measuring = measure.and_then(|(_, host)| host);
        let names: Vec<String> = match &self.started.agents_on {
            Some(on) => {
                let names = hosts::agent_names(on)?;
                names.into_iter().filter(|name| measuring != Some(name.as_str())).collect()
            }
            None => self.agents.clone(),
        };
        if names.is_empty() {
            return Ok(None);
        }
        let hosts = AgentsConfig::hosts(names.iter().map(String::as_str))
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
        let any_port = self.started.agents_on.is_some();
        Ok(Some(AgentsConfig { hosts, any_port, secrets, measure, knobs, probes }))
    }
}

impl StartFlags {
    /// Starts the agents, if any are to be started.
    pub fn start(
        &self,
        stores: Vec<&StoreUrl>,
        (knobs, probes): (&[String], &[String]),
        show: &Output,
    ) -> anyhow::Result<Option<(AgentsConfig, StartedAgents)>> {
        let Some(on) = &self.agents_on else { return Ok(None) };
        let wanted = WantedAgents { on, binaries: &self.agents_binary, knobs, probes, stores };
        let started = StartedAgents::start(&wanted, show)?;
        let config = AgentsConfig {
            hosts: started.agents.iter().map(|(_, address)| address.clone()).collect(),
            any_port: true,
            secrets: CredentialFiles {
                files: started.credentials(),
                token_file: None,
                // No variable of this name: the certificates suffice.
                token_variable: String::new(),
            },
            measure: None,
            knobs: knobs.to_vec(),
            probes: probes.to_vec(),
        };
        Ok(Some((config, started)))
    }
}

/// The stores that a plan loads.
pub fn stores_of(plan: &Plan) -> Vec<&StoreUrl> {
    plan.segments.iter().map(|segment| &segment.store).collect()
}

/// Takes the agent of a host away from those that load.
fn taken(hosts: &mut Vec<Address>, started: &StartedAgents, name: &str) -> anyhow::Result<Address> {
    let wrong = |why: String| request(format!("--agents-measure-host: {why}"));
    let Some((_, address)) = started.agents.iter().find(|(host, _)| host == name) else {
        let names: Vec<&str> = started.agents.iter().map(|(host, _)| host.as_str()).collect();
        return Err(wrong(format!("{name} is no host of {AGENTS_ON}: {}", names.join(", "))));
    };
    hosts.retain(|host| host != address);
    if hosts.is_empty() {
        return Err(wrong(format!("{name} would measure alone; name another host that loads")));
    }
    Ok(address.clone())
}

impl CredentialFlags {
    fn is_given(&self) -> bool {
        let files = [&self.agent_token_file, &self.agent_ca, &self.agent_cert, &self.agent_key];
        files.iter().any(|file| file.is_some())
    }

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
