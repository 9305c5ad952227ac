use std::net::SocketAddr;

/// What happens at an agent, for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
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

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Listening { address, credentials } => {
                write!(f, "listening on {address} ({credentials})")
            }
            Event::Refused { who, why } => write!(f, "refused {who}: {why}"),
            Event::Crowded { why } => f.write_str(why),
            Event::Taken { who } => write!(f, "taken by {who}"),
            Event::Preparing { bytes } => write!(f, "preparing an assignment of {bytes} bytes"),
            Event::Ready => f.write_str("ready"),
            Event::Started => f.write_str("started"),
            Event::Done { bytes } => write!(f, "done: {bytes} bytes of outcome"),
            Event::Failed { words } => write!(f, "failed: {words}"),
            Event::Stopped => f.write_str("stopped"),
            Event::Left { who, why } => write!(f, "{who} is gone: {why}"),
            Event::Waiting => f.write_str("waiting for a coordinator"),
        }
    }
}
