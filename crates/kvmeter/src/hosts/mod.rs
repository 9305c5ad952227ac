//! Other machines that work for a command of this one.

mod credentials;
mod hosted_verb;
pub mod program;
mod started_agents;
mod started_servers;

use anyhow::Context;
use fleet::{FleetHost, FleetTarget};

pub use self::started_agents::{StartedAgents, WantedAgents, agent_names, target};
pub use self::started_servers::{ServerReport, host_servers};
use crate::exit::request;

/// Names a folder on hosts: 128 random bits in hexadecimal.
pub fn new_folder_id() -> anyhow::Result<String> {
    let mut number = [0; 16];
    getrandom::fill(&mut number).context("no random number")?;
    Ok(number.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The hosts that a flag names.
fn target_of(on: &str, flag: &str) -> anyhow::Result<FleetTarget> {
    FleetTarget::parse(on).map_err(|error| request(format!("{flag}: {error}")))
}

/// The refusal of a scheduler that starts nothing for a flag.
fn no_scheduler(flag: &str) -> anyhow::Error {
    request(format!(
        "{flag}: this scheduler starts nothing for it; name hosts that you have, such as the nodes \
         of your own allocation: `ssh:node1,node2`"
    ))
}

/// Where other machines reach what a host runs.
fn host_address(target: &FleetTarget, host: &FleetHost) -> anyhow::Result<String> {
    match &host.listen {
        Some(address) => Ok(address.clone()),
        None => Ok(target.launcher.address(&host.name)?),
    }
}
