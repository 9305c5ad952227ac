//! The blocking exchanges at the beginning and at the end of a connection; they are not measured.

mod binary;
mod exchange;
mod lines;
mod redis;

use std::io::{Read, Write};

use thiserror::Error;

use super::{Login, Protocol, Refusal, WireError};
use exchange::Handshake;

/// The identity of a server, from the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// `memcached 1.6.18`, `Redis 7.0.15`, `Valkey 8.0.1`; without a number where the login lacks
    /// the permission.
    pub version: String,
}

/// Why a handshake failed; the stream is then unusable.
#[derive(Debug, Error)]
pub enum HandshakeError {
    #[error("no answer while {doing}: {source}")]
    Io { doing: &'static str, source: std::io::Error },
    /// The server did not answer in full within the stream's limit or the handshake's own.
    #[error("no answer in time while {doing}: it stalls, or speaks another protocol{hint}")]
    TimedOut { doing: &'static str, hint: &'static str },
    #[error("the server closed the connection while {doing}{hint}")]
    Closed { doing: &'static str, hint: &'static str },
    /// A server answers, but in another protocol.
    #[error("this is no server for {protocol}: {seen}; {way_out}")]
    WrongServer { protocol: &'static str, seen: String, way_out: &'static str },
    #[error(
        "the server wants a login ({words}); give the password with `password_env` or \
         `password_file`"
    )]
    LoginRequired { words: String },
    /// Redis without a password takes only connections from its own machine; giving one does not
    /// help.
    #[error(
        "the server is in protected mode: it has no password and refuses other machines; reach it \
         from its own (127.0.0.1 or a unix socket), or set there `requirepass` and give that \
         password here with `password_env` or `password_file`, or, in a network of your own, set \
         `protected-mode no` there"
    )]
    ProtectedMode,
    #[error("the server refused the login: {words}")]
    LoginRefused { words: String },
    #[error("a login was given, but the server asks for none ({words}); leave it away")]
    LoginNotRequired { words: String },
    #[error("{protocol} logs in with a user and a password; give both")]
    IncompleteLogin { protocol: &'static str },
    #[error("memcached has no databases but 0; leave the database {0} away")]
    NoDatabases(u32),
    /// Any other refusal, such as a missing database.
    #[error("the server refused while {doing}: {words}")]
    Refused { doing: &'static str, why: Refusal, words: String },
    #[error("while {doing}: {source}")]
    Wire { doing: &'static str, source: WireError },
}

pub(super) fn greet(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
    login: &Login,
) -> Result<ServerIdentity, HandshakeError> {
    let mut talk = Handshake::new(stream, protocol);
    let version = match protocol {
        Protocol::Resp2 => redis::greet::<2>(&mut talk, login)?,
        Protocol::Resp3 => redis::greet::<3>(&mut talk, login)?,
        _ if login.database != 0 => return Err(HandshakeError::NoDatabases(login.database)),
        Protocol::MemcachedText | Protocol::MemcachedMeta => lines::greet(&mut talk, login)?,
        Protocol::MemcachedBinary => binary::greet(&mut talk, login)?,
    };
    talk.end()?;
    Ok(ServerIdentity { version })
}

pub(super) fn statistics(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
) -> Result<Vec<(String, String)>, HandshakeError> {
    let mut talk = Handshake::new(stream, protocol);
    let statistics = match protocol {
        Protocol::Resp2 => redis::statistics::<2>(&mut talk)?,
        Protocol::Resp3 => redis::statistics::<3>(&mut talk)?,
        Protocol::MemcachedText | Protocol::MemcachedMeta => lines::statistics(&mut talk)?,
        Protocol::MemcachedBinary => binary::statistics(&mut talk)?,
    };
    talk.end()?;
    Ok(statistics)
}

pub(super) fn flush(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
) -> Result<(), HandshakeError> {
    let mut talk = Handshake::new(stream, protocol);
    match protocol {
        Protocol::Resp2 => redis::flush::<2>(&mut talk)?,
        Protocol::Resp3 => redis::flush::<3>(&mut talk)?,
        Protocol::MemcachedText | Protocol::MemcachedMeta => lines::flush(&mut talk)?,
        Protocol::MemcachedBinary => binary::flush(&mut talk)?,
    }
    talk.end()
}
