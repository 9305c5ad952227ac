//! Other machines that work for a command of this one.

mod credentials;
pub mod program;
mod started_agents;

use anyhow::Context;

pub use self::started_agents::{StartedAgents, WantedAgents, target};

/// Names a folder on hosts: 128 random bits in hexadecimal.
pub fn new_folder_id() -> anyhow::Result<String> {
    let mut number = [0; 16];
    getrandom::fill(&mut number).context("no random number")?;
    Ok(number.iter().map(|byte| format!("{byte:02x}")).collect())
}
