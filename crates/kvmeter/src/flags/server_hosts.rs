//! Flags about servers that are started on other machines.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use study::ServerHosts;

use super::SERVERS;
use crate::hosts::host_servers;
use crate::output::Output;

pub const SERVER_ON: &str = "--server-on";
pub const SERVER_BINARY: &str = "--server-binary";

/// The machines on which servers are started.
#[derive(Debug, Args)]
pub struct ServerHostFlags {
    /// Start the servers on these machines instead of this one, its processes in turn, and end them
    /// with this command: ssh:HOST,..., slurm:partition=NAME,nodes=COUNT,
    /// kubernetes:image=NAME,nodes=COUNT,..., a fleet file, or an Ansible inventory (FILE or
    /// FILE:GROUP)
    #[arg(long, value_name = "HOSTS", help_heading = SERVERS)]
    pub server_on: Option<String>,
    /// kvmeter for machines of --server-on of another architecture than this one's; may be repeated
    #[arg(long, value_name = "FILE", requires = "server_on", value_hint = ValueHint::FilePath,
        help_heading = SERVERS)]
    pub server_binary: Vec<PathBuf>,
}

impl ServerHostFlags {
    /// The machines, if any are named. They are not reached yet.
    pub fn hosts(&self, show: &Output) -> anyhow::Result<Option<ServerHosts>> {
        self.server_on.as_deref().map(|on| host_servers(on, &self.server_binary, show)).transpose()
    }
}
