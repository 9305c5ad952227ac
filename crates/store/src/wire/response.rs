use std::fmt;

use model::Expiry;

use super::{KeyList, Redirect};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Get,
    Set,
    Delete,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Get => "get",
            Kind::Set => "set",
            Kind::Delete => "delete",
        })
    }
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub kind: Kind,
    /// One key; only a get may have several.
    pub keys: &'a KeyList,
    /// The value of a set; ignored otherwise.
    pub value: &'a [u8],
    /// The expiry of a set; ignored otherwise.
    pub expiry: Expiry,
    /// Echoed by the meta and binary protocols, which detects answers out of step.
    pub tag: u32,
}

/// The answer to the oldest request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The number of requested keys that exist.
    Found(usize),
    Stored,
    /// Whether the key existed.
    Deleted(bool),
    /// The server is a node of a cluster, and another one serves the key.
    Redirected(Redirect),
    /// The server refused. The connection is still in step.
    Refused {
        why: Refusal,
        /// The server's own message, escaped and cut.
        words: String,
    },
}

/// Why a server refused, as far as its message shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No memory is left, and nothing is evicted.
    OutOfMemory,
    /// The key or the value is too long for the server.
    TooLarge,
    /// A login is required, or the login lacks the permission.
    Auth,
    /// Temporarily busy: loading, too many connections, a running script.
    Busy,
    /// A replica takes no write.
    ReadOnly,
    /// Anything else, such as an unknown command.
    Other,
}

/// The result of parsing the start of the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedResponse {
    /// The answer needs at least `needs` bytes, counted from the same start: more than there are
    /// now and never more than the whole answer. Parsing again earlier is wasted work.
    Incomplete { needs: usize },
    /// The first `used` bytes are the answer.
    Whole { used: usize, answer: Response },
}
