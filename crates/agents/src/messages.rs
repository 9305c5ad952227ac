//! The messages of `proto/kvmeter.agent.v1.proto`, which says what each field means.
//!
//! They are written by hand: a generator that needs no `protoc` is 36 crates more, which take about
//! as long to compile as all that this crate needs. A test holds the two texts together.
use bytes::Bytes;

/// The one call.
pub const SESSION: &str = "/kvmeter.agent.v1.Agent/Session";

/// The longest message to an agent: a piece, and some. What announces more is refused before memory
/// is taken for it.
pub const MAX_TO_AGENT: usize = 128 << 10;
/// The longest message to a coordinator: what an agent tells of itself, or why it failed.
pub const MAX_TO_COORDINATOR: usize = 2 << 20;

#[derive(Clone, PartialEq, prost::Message)]
pub struct ToAgent {
    #[prost(oneof = "CoordinatorMessage", tags = "1, 2, 3, 4, 5, 6")]
    pub what: Option<CoordinatorMessage>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CoordinatorMessage {
    #[prost(message, tag = "1")]
    Hello(Hello),
    #[prost(message, tag = "2")]
    Probe(Probe),
    #[prost(message, tag = "3")]
    Assignment(Piece),
    #[prost(message, tag = "4")]
    Start(Start),
    #[prost(message, tag = "5")]
    Stop(Stop),
    #[prost(message, tag = "6")]
    Beat(Heartbeat),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ToCoordinator {
    #[prost(oneof = "AgentMessage", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
    pub what: Option<AgentMessage>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AgentMessage {
    #[prost(message, tag = "1")]
    Welcome(Welcome),
    #[prost(message, tag = "2")]
    Echo(Echo),
    #[prost(message, tag = "3")]
    Ready(Ready),
    #[prost(message, tag = "4")]
    Accepted(Accepted),
    #[prost(message, tag = "5")]
    Progress(Progress),
    #[prost(message, tag = "6")]
    Outcome(Piece),
    #[prost(message, tag = "7")]
    Failed(Failed),
    #[prost(message, tag = "8")]
    Stopped(Stopped),
    #[prost(message, tag = "9")]
    Beat(Heartbeat),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(string, tag = "2")]
    pub machine: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(string, tag = "2")]
    pub machine: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub about: Bytes,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Probe {
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Echo {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(uint64, tag = "2")]
    pub received_ns: u64,
    #[prost(uint64, tag = "3")]
    pub answered_ns: u64,
    #[prost(sint64, tag = "4")]
    pub wall_ns: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    #[prost(uint32, tag = "1")]
    pub round: u32,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(bool, tag = "3")]
    pub last: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Ready {
    #[prost(uint32, tag = "1")]
    pub round: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Start {
    #[prost(uint32, tag = "1")]
    pub round: u32,
    #[prost(uint64, tag = "2")]
    pub begin_ns: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Accepted {
    #[prost(uint32, tag = "1")]
    pub round: u32,
    #[prost(sint64, tag = "2")]
    pub margin_ns: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Progress {
    #[prost(uint32, tag = "1")]
    pub round: u32,
    #[prost(string, tag = "2")]
    pub stage: String,
    #[prost(uint64, tag = "3")]
    pub operations: u64,
    #[prost(double, tag = "4")]
    pub elapsed_s: f64,
    #[prost(double, optional, tag = "5")]
    pub done: Option<f64>,
    #[prost(double, tag = "6")]
    pub live_ops_s: f64,
    #[prost(uint64, tag = "7")]
    pub live_p99_ns: u64,
    #[prost(bytes = "bytes", tag = "8")]
    pub newest_interval: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Failed {
    #[prost(uint32, tag = "1")]
    pub round: u32,
    #[prost(string, tag = "2")]
    pub words: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Stop {
    #[prost(uint32, tag = "1")]
    pub round: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Stopped {
    #[prost(uint32, tag = "1")]
    pub round: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Heartbeat {}

impl From<CoordinatorMessage> for ToAgent {
    fn from(ask: CoordinatorMessage) -> ToAgent {
        ToAgent { what: Some(ask) }
    }
}

impl From<AgentMessage> for ToCoordinator {
    fn from(say: AgentMessage) -> ToCoordinator {
        ToCoordinator { what: Some(say) }
    }
}

#[cfg(test)]
mod tests {
    const PROTO: &str = include_str!("../proto/kvmeter.agent.v1.proto");
    const HERE: &str = include_str!("messages.rs");

    /// Every field as `message.field type tag`, sorted.
    fn of_the_proto() -> Vec<String> {
        let mut message = "";
        let mut fields = Vec::new();
        for line in PROTO.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let words: Vec<&str> = line.trim_end_matches(';').split(' ').collect();
            match words[..] {
                ["message", name, "{"] => message = name,
                ["optional", kind, name, "=", tag] => {
                    fields.push(format!("{message}.{name} optional {kind} {tag}"));
                }
                [kind, name, "=", tag] => fields.push(format!("{message}.{name} {kind} {tag}")),
                _ => {}
            }
        }
        fields.sort();
        fields
    }

    /// The same of this file.
    fn of_the_code() -> Vec<String> {
        let code = HERE.split("#[cfg(test)]").next().unwrap_or_default();
        let (mut message, mut attribute) = (String::new(), String::new());
        let mut fields = Vec::new();
        for line in code.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum "))
            {
                message = match name.split(' ').next().unwrap_or_default() {
                    "CoordinatorMessage" => "ToAgent".to_owned(),
                    "AgentMessage" => "ToCoordinator".to_owned(),
                    name => name.to_owned(),
                };
            } else if let Some(text) = line.strip_prefix("#[prost(") {
                attribute = text.trim_end_matches(")]").to_owned();
            } else if !attribute.is_empty() && !attribute.starts_with("oneof") {
                let parts: Vec<&str> = attribute.split(", ").collect();
                let kind = parts[0].split(' ').next().unwrap_or_default();
                let tag = parts.last().unwrap_or(&"").trim_start_matches("tag = ").replace('"', "");
                let optional = if parts.contains(&"optional") { "optional " } else { "" };
                let (name, kind) = match (kind, line.split_once('(')) {
                    ("message", Some((variant, held))) => {
                        (variant.to_lowercase(), held.trim_end_matches("),"))
                    }
                    _ => {
                        let name = line.trim_start_matches("pub ").split(':').next();
                        (name.unwrap_or_default().to_owned(), kind)
                    }
                };
                fields.push(format!("{message}.{name} {optional}{kind} {tag}"));
                attribute.clear();
            }
        }
        fields.sort();
        fields
    }

    #[test]
    fn the_code_is_the_proto() {
        assert_eq!(of_the_code(), of_the_proto());
        assert_eq!(of_the_proto().len(), 45);
        assert!(PROTO.contains("package kvmeter.agent.v1;"));
        assert!(PROTO.contains("rpc Session(stream ToAgent) returns (stream ToCoordinator);"));
        assert_eq!(super::SESSION, "/kvmeter.agent.v1.Agent/Session");
    }
}
