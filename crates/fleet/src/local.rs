//! This machine: its processes.

use std::process::Command;

use crate::error::FleetError;
use crate::launcher::Launcher;

/// Starts commands on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Local;

impl Launcher for Local {
    fn shell(&self, _: &str, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn is_unreachable(&self, _: Option<i32>) -> bool {
        false
    }

    fn address(&self, _: &str) -> Result<String, FleetError> {
        Ok("127.0.0.1".to_owned())
    }

    fn release(&self, _: &str) -> Result<(), FleetError> {
        Ok(())
    }
}
