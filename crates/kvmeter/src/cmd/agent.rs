use std::path::PathBuf;
use std::sync::Arc;

use agents::{AgentError, AgentLogEvent, PeerOptions, flags};
use anyhow::Context;
use clap::{Args, ValueHint};
use execute::{
    AgentMachine, AgentPermissions, AgentWork, AllowedKnob, AllowedProbe, AllowedServer,
};
use model::Address;

use crate::exit::{ExitOutcome, request};
use crate::flags::agents::CredentialFlags;
use crate::flags::machine::MachineRoot;
use crate::interrupt::stop_flag;
use crate::output::{Output, write_stderr};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    openssl rand -hex 32 > agent.token && chmod 600 agent.token\n  \
    kvmeter agent --listen 0.0.0.0:9377 --agent-token-file agent.token\n  \
    kvmeter agent --listen 0.0.0.0 --agent-ca ca.pem --agent-cert host1.pem --agent-key host1.key\n\n\
    It serves one `kvmeter bench --agents`, `search --agents` or `run` at a time, until Ctrl-C.\n\
    A token alone travels in plain text. A store's URL may name secrets of this machine: the\n\
    variable or file of a password, and the files of TLS. The agent uses them only if --allow-env\n\
    or --allow-file names them too, and only for servers that --allow-server names. It turns a knob\n\
    or reads a probe only if --allow-knob or --allow-probe names it; knobs return when a run ends.")]
pub struct AgentArgs {
    /// Address to listen on [default port: 9377]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: String,
    #[command(flatten)]
    pub credentials: CredentialFlags,
    /// An environment variable that a store's URL may name as `password_env`; may be repeated
    #[arg(long, value_name = "NAME", help_heading = ALLOWED)]
    pub allow_env: Vec<String>,
    /// A file that a store's URL may name, written exactly so; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ALLOWED)]
    pub allow_file: Vec<PathBuf>,
    /// A server that may be loaded, at all its ports or one; may be repeated [default: any over
    /// TCP, but none to which a URL sends a password or shows a certificate of this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = AllowedServer::parse, help_heading = ALLOWED)]
    pub allow_server: Vec<AllowedServer>,
    /// A knob that a run may turn, to any level or to one (ddio, ddio=off); may be repeated
    #[arg(long, value_name = "KNOB[=LEVEL]", value_parser = AllowedKnob::parse,
        help_heading = ALLOWED)]
    pub allow_knob: Vec<AllowedKnob>,
    /// A probe that a run may read, such as counters or rapl; may be repeated
    #[arg(long, value_name = "PROBE", value_parser = AllowedProbe::parse, help_heading = ALLOWED)]
    pub allow_probe: Vec<AllowedProbe>,
    #[command(flatten)]
    pub host: MachineRoot,
    /// Maximum number of connections; new ones replace the oldest unauthenticated ones
    #[arg(long, value_name = "N", default_value_t = agents::DEFAULT_CONNECTIONS,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,
}

impl AgentArgs {
    pub fn allowed(&self) -> AgentPermissions {
        AgentPermissions {
            variables: self.allow_env.clone(),
            files: self.allow_file.clone(),
            servers: self.allow_server.clone(),
            knobs: self.allow_knob.clone(),
            probes: self.allow_probe.clone(),
        }
    }
}

/// Heading of what a coordinator may use.
const ALLOWED: &str = "What a coordinator may use of this machine";

pub fn run(args: &AgentArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let listen = listen(&args.listen)?;
    let wrong = |error: AgentError| request(error.to_string());
    let credentials = args.credentials.files().load().map_err(wrong)?;
    let stop = stop_flag()?;
    let machine = AgentMachine { root: args.host.root()?, supervisor: args.host.supervisor()? };
    let work = Arc::new(AgentWork::new(args.allowed(), machine));
    let options = PeerOptions { connections: args.max_connections, ..PeerOptions::default() };
    let (logged, quiet) = (Arc::clone(&work), show.is_quiet());
    let say = move |event: AgentLogEvent| {
        if let Some(line) = line(&event, &logged).filter(|_| !quiet) {
            write_stderr(&line);
        }
    };
    let served = agents::serve(&listen, &credentials, work, options, say, &stop);
    match served {
        Ok(()) => Ok(ExitOutcome::Done),
        Err(error @ AgentError::StillWorking { .. }) => Err(error).context("the agent ends anyway"),
        Err(error) => Err(wrong(error)),
    }
}

/// Port 0, any free one, is allowed for listening only.
fn listen(text: &str) -> anyhow::Result<Address> {
    if let Some(host) = text.strip_suffix(":0").filter(|host| !host.is_empty()) {
        let host = host.trim_matches(['[', ']']).to_owned();
        return Ok(Address::Tcp { host, port: 0 });
    }
    Address::parse(text, agents::DEFAULT_PORT)
        .map_err(|error| request(format!("{} {error}", flags::LISTEN)))
}

/// One line when an assignment ends, and one when the coordinator changes.
fn line(event: &AgentLogEvent, work: &AgentWork) -> Option<String> {
    match event {
        AgentLogEvent::Done { .. } => Some(format!("{}: done", work.last())),
        AgentLogEvent::Failed { words } => Some(format!("{}: failed: {words}", work.last())),
        AgentLogEvent::Stopped => Some(format!("{}: stopped", work.last())),
        AgentLogEvent::Preparing { .. } | AgentLogEvent::Ready | AgentLogEvent::Started => None,
        other => Some(other.to_string()),
    }
}
