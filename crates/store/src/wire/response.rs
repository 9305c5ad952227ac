use std::fmt;

use model::Expiry;

use super::KeyList;

/// What is asked of a server.
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
    /// One key; several ask for all of them at once, which only a get can.
    pub keys: &'a KeyList,
    /// What a set sets; of no meaning otherwise.
    pub value: &'a [u8],
    /// When what is set expires; of no meaning otherwise.
    pub expiry: Expiry,
    /// Sent back by the protocols that can (meta, binary), which shows an answer out of step.
    pub tag: u32,
}

/// What the answer to the oldest request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// So many of the keys that were asked for were there.
    Found(usize),
    Stored,
    /// Whether it was there.
    Deleted(bool),
    /// The server refused. The connection is still in step.
    Refused {
        why: Refusal,
        /// The server's own words, escaped and cut.
        words: String,
    },
}

/// Why a server refused, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It has no memory left and evicts nothing.
    OutOfMemory,
    /// The key or the value is longer than it takes.
    TooLarge,
    /// It wants a login, or the login may not do this.
    Auth,
    /// Not now: loading, too many connections, a script is running.
    Busy,
    /// Anything else, such as a command it does not know or a key of another cluster node.
    Other,
}

/// What was read from the start of the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedResponse {
    /// The answer is not whole before there are at least so many bytes, counted from the same
    /// start; more than there are now and never more than the answer will have. Reading again
    /// earlier is wasted work, as with a large value.
    Incomplete { needs: usize },
    /// The first `used` bytes are the answer.
    Whole { used: usize, answer: Response },
}
