//! Other machines that work for a command of this one.

mod credentials;
mod hosted_verb;
pub mod program;
mod started_agents;
mod started_servers;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use fleet::{EarlierAttempt, FleetError, FleetHost, FleetTarget};

pub use self::started_agents::{StartedAgents, WantedAgents, agent_names};
pub use self::started_servers::{ServerReport, host_servers};
use crate::exit::request;
use crate::interrupt::stop_flag;
use crate::output::Output;

/// Names a folder on hosts: 128 random bits in hexadecimal.
pub fn new_folder_id() -> anyhow::Result<String> {
    let mut number = [0; 16];
    getrandom::fill(&mut number).context("no random number")?;
    Ok(number.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The hosts that a flag names.
fn target_of(on: &str, flag: &str) -> anyhow::Result<FleetTarget> {
    FleetTarget::parse(on).map_err(|error| of_flag(flag, error))
}

/// The names of the hosts; numbers where a scheduler has yet to give them.
fn names_of(target: &FleetTarget, flag: &str) -> anyhow::Result<Vec<String>> {
    target.names().map_err(|error| of_flag(flag, error))
}

/// Gets the hosts from a scheduler, if there is one.
fn acquire(target: &mut FleetTarget, flag: &str, show: &Output) -> anyhow::Result<()> {
    let (jobs, done) = (BTreeMap::new(), BTreeSet::new());
    let earlier = EarlierAttempt { jobs: &jobs, done: &done };
    let stop = stop_flag()?;
    target
        .acquire(earlier, &stop, &mut |words| show.note(words))
        .map_err(|error| of_flag(flag, error))
}

fn of_flag(flag: &str, error: FleetError) -> anyhow::Error {
    match error.is_request() {
        true => request(format!("{flag}: {error}")),
        false => error.into(),
    }
}

/// Where other machines reach what a host runs.
fn host_address(target: &FleetTarget, host: &FleetHost) -> anyhow::Result<String> {
    match &host.listen {
        Some(address) => Ok(address.clone()),
        None => Ok(target.launcher.address(&host.name)?),
    }
}
