use std::sync::Arc;

use agents::{AgentError, AgentLogEvent, PeerOptions, flags};
use anyhow::Context;
use model::Address;
use study::AgentWork;

use crate::args;
use crate::exit::{ExitOutcome, request};
use crate::interrupt::stop_flag;
use crate::output::{Output, write_stderr};

pub fn run(args: &args::Agent, show: &Output) -> anyhow::Result<ExitOutcome> {
    let listen = listen(&args.listen)?;
    let wrong = |error: AgentError| request(error.to_string());
    let credentials = args.credentials.files().load().map_err(wrong)?;
    let stop = stop_flag()?;
    let work = Arc::new(AgentWork::new(args.allowed()));
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
