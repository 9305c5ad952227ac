use std::net::SocketAddr;

/// Events of an agent, for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentLogEvent {
    /// It listens at this address and requires these credentials.
    Listening {
        address: SocketAddr,
        credentials: &'static str,
    },
    /// A coordinator was refused.
    Refused {
        coordinator: String,
        why: String,
    },
    /// Connections are closed or refused because there are too many.
    Crowded {
        why: String,
    },
    /// A coordinator has taken the agent.
    Taken {
        coordinator: String,
    },
    /// It sent an assignment.
    Preparing {
        bytes: usize,
    },
    Ready,
    Started,
    Done {
        bytes: usize,
    },
    Failed {
        words: String,
    },
    Stopped,
    /// The coordinator has disconnected.
    Left {
        coordinator: String,
        why: String,
    },
    /// The agent is free.
    Waiting,
}

impl std::fmt::Display for AgentLogEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AgentLogEvent::Listening { address, credentials } => {
                write!(f, "listening on {address} ({credentials})")
            }
            AgentLogEvent::Refused { coordinator, why } => {
                write!(f, "refused {coordinator}: {why}")
            }
            AgentLogEvent::Crowded { why } => f.write_str(why),
            AgentLogEvent::Taken { coordinator } => write!(f, "taken by {coordinator}"),
            AgentLogEvent::Preparing { bytes } => {
                write!(f, "preparing an assignment of {bytes} bytes")
            }
            AgentLogEvent::Ready => f.write_str("ready"),
            AgentLogEvent::Started => f.write_str("started"),
            AgentLogEvent::Done { bytes } => write!(f, "done: {bytes} bytes of outcome"),
            AgentLogEvent::Failed { words } => write!(f, "failed: {words}"),
            AgentLogEvent::Stopped => f.write_str("stopped"),
            AgentLogEvent::Left { coordinator, why } => write!(f, "{coordinator} is gone: {why}"),
            AgentLogEvent::Waiting => f.write_str("waiting for a coordinator"),
        }
    }
}
