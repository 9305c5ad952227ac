//! The protocols of memcached and of Redis and Valkey as pure bytes.
//!
//! Nothing here owns a socket. [`Protocol::write`] appends a request to a buffer and
//! [`Protocol::read`] takes the answer to the oldest request from the start of what was received;
//! both are meant for a loop that pipelines and cost tens of nanoseconds. Only the exchanges at the
//! beginning and at the end of a connection ([`Protocol::handshake`], [`Protocol::statistics`],
//! [`Protocol::flush`]) wait, on any stream that limits its own reads and writes.
//!
//! An answer is [`ParsedResponse::Incomplete`] until it is whole. An invalid answer is a
//! [`WireError`], after which the connection is unusable: the start of the next answer is unknown.
//! A refusal of the server is a [`Response`] like any other.
//!
//! Sources: memcached `doc/protocol.txt` and `protocol_binary.h`; Redis serialization protocol,
//! versions 2 and 3.

#![forbid(unsafe_code)]

mod binary;
mod cluster;
mod error;
mod expiry;
mod handshake;
mod keys;
mod login;
mod meta;
mod parse;
mod resp;
mod response;
mod ring;
mod text;

pub use cluster::{ClusterMap, ClusterNode, Redirect, SLOTS, slot_of};
pub use error::{KeyError, WireError};
pub use handshake::{APPENDFSYNC, HandshakeError, ServerIdentity};
pub use keys::KeyList;
pub use login::{Login, Secret, SecretError};
pub use response::{Kind, ParsedResponse, Refusal, Request, Response};
pub use ring::Ring;

use std::io::{Read, Write};

/// The longest value that an answer may hold, in bytes: Redis's own limit, above memcached's
/// default. A larger announced length is an error at once.
pub const LONGEST_VALUE: usize = 512 << 20;

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `get`, `set`, `delete`: any memcached, and compatible servers.
    MemcachedText,
    /// `mg`, `ms`, `md`: memcached 1.6.9 and later.
    MemcachedMeta,
    /// Fixed headers of 24 bytes; the only one with SASL.
    MemcachedBinary,
    /// Redis before 6, and all after it.
    Resp2,
    /// Redis 6 and later, Valkey.
    Resp3,
}

/// Which bytes a key may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyBytes {
    Any,
    /// Neither spaces nor control bytes; bytes above 0x7f are taken.
    Printable,
}

impl Protocol {
    pub const ALL: [Protocol; 5] = [
        Protocol::MemcachedText,
        Protocol::MemcachedMeta,
        Protocol::MemcachedBinary,
        Protocol::Resp2,
        Protocol::Resp3,
    ];

    /// The protocol's name in messages: `memcached text`, `RESP2`.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::MemcachedText => "memcached text",
            Protocol::MemcachedMeta => "memcached meta",
            Protocol::MemcachedBinary => "memcached binary",
            Protocol::Resp2 => "RESP2",
            Protocol::Resp3 => "RESP3",
        }
    }

    /// Appends one whole request. Allocates only when `out` grows.
    ///
    /// The keys are not checked: call [`check_key`](Self::check_key) before the workload. A request
    /// without keys appends nothing.
    #[inline]
    pub fn write(self, request: &Request<'_>, out: &mut Vec<u8>) {
        if request.keys.is_empty() {
            return;
        }
        match self {
            Protocol::MemcachedText => text::write(request, out),
            Protocol::MemcachedMeta => meta::write(request, out),
            Protocol::MemcachedBinary => binary::write(request, out),
            Protocol::Resp2 | Protocol::Resp3 => resp::write(request, out),
        }
    }

    /// Reads the answer to a request of `kind` for `keys` with `tag` from the start of `bytes`.
    /// `on_value` is called with the index in `keys` and the value of each key that was found, in
    /// order, once the answer is whole.
    ///
    /// # Errors
    /// The bytes are not the answer to that request; the connection is unusable.
    #[inline]
    pub fn read(
        self,
        kind: Kind,
        keys: &KeyList,
        tag: u32,
        bytes: &[u8],
        mut on_value: impl FnMut(usize, &[u8]),
    ) -> Result<ParsedResponse, WireError> {
        if keys.is_empty() {
            return Ok(ParsedResponse::Whole { used: 0, answer: Response::Found(0) });
        }
        let read = match self {
            Protocol::MemcachedText => text::read(kind, keys, bytes, &mut on_value),
            Protocol::MemcachedMeta => meta::read(kind, keys, tag, bytes, &mut on_value),
            Protocol::MemcachedBinary => binary::read(kind, keys, tag, bytes, &mut on_value),
            Protocol::Resp2 => resp::read::<2>(kind, keys, bytes, &mut on_value),
            Protocol::Resp3 => resp::read::<3>(kind, keys, bytes, &mut on_value),
        };
        match read {
            Ok((answer, used)) => Ok(ParsedResponse::Whole { used, answer }),
            Err(parse::ParseError::Incomplete(needs)) => Ok(ParsedResponse::Incomplete { needs }),
            Err(parse::ParseError::Invalid(error)) => Err(*error),
        }
    }

    /// The length of the push messages at the start of `bytes`, which a server of RESP3 may send at
    /// any time and which answer nothing; None while they are not whole.
    ///
    /// # Errors
    /// They are malformed, or too long.
    #[cold]
    pub fn read_pushes(self, bytes: &[u8]) -> Result<Option<usize>, WireError> {
        let read = match self {
            Protocol::Resp3 => resp::skip_pushes(bytes),
            _ => Ok(0),
        };
        match read {
            Ok(used) => Ok(Some(used)),
            Err(parse::ParseError::Incomplete(_)) => Ok(None),
            Err(parse::ParseError::Invalid(error)) => Err(*error),
        }
    }

    /// The handshake: checks that it is a server of the right kind, logs in, chooses the protocol
    /// version and the database. Bounded by the stream's own limits and by 30 s in all.
    ///
    /// # Errors
    /// See [`HandshakeError`]; the stream is then unusable.
    pub fn handshake(
        self,
        stream: &mut (impl Read + Write),
        login: &Login,
    ) -> Result<ServerIdentity, HandshakeError> {
        handshake::greet(self, stream, login)
    }

    /// Marks a connection after the handshake as one of control, which is no load: the server does
    /// not drop it, and does not take its commands for use of the keys. Without effect where the
    /// server, or the login, does not have that.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub fn control(self, stream: &mut (impl Read + Write)) -> Result<(), HandshakeError> {
        handshake::control(self, stream)
    }

    /// The server's statistics, name and text: memcached's `stats`, Redis's `INFO` with composed
    /// values flattened (`db0:keys=1` is `db0.keys`). Needs a connection after the handshake
    /// without outstanding answers.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub fn statistics(
        self,
        stream: &mut (impl Read + Write),
    ) -> Result<Vec<(String, String)>, HandshakeError> {
        handshake::statistics(self, stream)
    }

    /// Empties the server: all of a memcached, the chosen database of a Redis. Call it only where
    /// the user allowed it, on a connection after the handshake.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub fn flush(self, stream: &mut (impl Read + Write)) -> Result<(), HandshakeError> {
        handshake::flush(self, stream)
    }

    /// The length of the longest key that the protocol takes, in bytes.
    pub fn longest_key(self) -> usize {
        match self {
            Protocol::MemcachedText | Protocol::MemcachedMeta | Protocol::MemcachedBinary => 250,
            Protocol::Resp2 | Protocol::Resp3 => LONGEST_VALUE,
        }
    }

    /// The same for a key that is not [`KeyBytes::Printable`]. Meta sends such a key in base64,
    /// which is what the server limits; text takes none.
    pub fn longest_binary_key(self) -> usize {
        match self {
            Protocol::MemcachedText => 0,
            Protocol::MemcachedMeta => meta::LONGEST_BINARY_KEY,
            _ => self.longest_key(),
        }
    }

    /// Which bytes the protocol takes in a key.
    pub fn takes_key_bytes(self) -> KeyBytes {
        match self {
            Protocol::MemcachedText => KeyBytes::Printable,
            _ => KeyBytes::Any,
        }
    }

    /// Whether the protocol takes a key; checked before a workload starts.
    ///
    /// # Errors
    /// Why the key is invalid, and which protocol takes it.
    pub fn check_key(self, key: &[u8]) -> Result<(), KeyError> {
        let protocol = self.name();
        let (bytes, longest) = (key.len(), self.longest_key());
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if bytes > longest {
            return Err(KeyError::TooLong { protocol, bytes, longest });
        }
        if keys::is_printable(key) {
            return Ok(());
        }
        match self.longest_binary_key() {
            0 => Err(KeyError::NotPrintable { protocol }),
            longest if bytes > longest => Err(KeyError::TooLong { protocol, bytes, longest }),
            _ => Ok(()),
        }
    }
}
