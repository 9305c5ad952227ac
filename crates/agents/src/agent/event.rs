use std::net::SocketAddr;

/// What happens at an agent, for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentLogEvent {
    /// It listens, here, and wants this of a coordinator.
    Listening {
        address: SocketAddr,
        credentials: &'static str,
    },
    /// A coordinator was refused.
    Refused {
        who: String,
        why: String,
    },
    /// Connections are closed or not taken: there are too many.
    Crowded {
        why: String,
    },
    /// A coordinator holds the agent.
    Taken {
        who: String,
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
    /// The coordinator is gone.
    Left {
        who: String,
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
            AgentLogEvent::Refused { who, why } => write!(f, "refused {who}: {why}"),
            AgentLogEvent::Crowded { why } => f.write_str(why),
            AgentLogEvent::Taken { who } => write!(f, "taken by {who}"),
            AgentLogEvent::Preparing { bytes } => {
                write!(f, "preparing an assignment of {bytes} bytes")
            }
            AgentLogEvent::Ready => f.write_str("ready"),
            AgentLogEvent::Started => f.write_str("started"),
            AgentLogEvent::Done { bytes } => write!(f, "done: {bytes} bytes of outcome"),
            AgentLogEvent::Failed { words } => write!(f, "failed: {words}"),
            AgentLogEvent::Stopped => f.write_str("stopped"),
            AgentLogEvent::Left { who, why } => write!(f, "{who} is gone: {why}"),
            AgentLogEvent::Waiting => f.write_str("waiting for a coordinator"),
        }
    }
}
