//! The blocking exchanges at the beginning and at the end of a connection; they are not measured.

mod binary;
mod exchange;
mod lines;
mod redis;

use std::io::{Read, Write};

use thiserror::Error;

use super::{ClusterMap, Login, Protocol, Refusal, WireError};
use exchange::Handshake;
pub use redis::APPENDFSYNC;

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
    #[error("no answer while {step}: {source}")]
    Io { step: &'static str, source: std::io::Error },
    /// The server did not answer in full within the stream's limit or the handshake's own.
    #[error("no answer in time while {step}: it stalls, or speaks another protocol{hint}")]
    TimedOut { step: &'static str, hint: &'static str },
    #[error("the server closed the connection while {step}{hint}")]
    Closed { step: &'static str, hint: &'static str },
    /// A server answers, but in another protocol.
    #[error("this is not a server for {protocol}: {received_text}; {way_out}")]
    WrongServer { protocol: &'static str, received_text: String, way_out: &'static str },
    #[error(
        "the server requires a login ({words}); give the password with `password_env` or \
         `password_file`"
    )]
    LoginRequired { words: String },
    /// Redis without a password takes only connections from its own machine; giving one does not
    /// help.
    #[error(
        "the server is in protected mode: without a password it refuses other machines; set \
         `requirepass` there and give that password here with `password_env` or `password_file`, \
         connect from its own machine, or set `protected-mode no` in a private network"
    )]
    ProtectedMode,
    #[error("the server refused the login: {words}")]
    LoginRefused { words: String },
    #[error("a login was given, but the server requires none ({words}); leave it out")]
    LoginNotRequired { words: String },
    #[error("{protocol} logs in with a user and a password; give both")]
    IncompleteLogin { protocol: &'static str },
    #[error("memcached has no databases but 0; leave out the database {0}")]
    NoDatabases(u32),
    /// Any other refusal, such as a missing database.
    #[error("the server refused while {step}: {words}")]
    Refused { step: &'static str, why: Refusal, words: String },
    #[error("while {step}: {source}")]
    Wire { step: &'static str, source: WireError },
}

/// The nodes of a cluster, see [`Protocol::cluster`].
pub(super) fn cluster(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
    via: &str,
    tls: bool,
) -> Result<ClusterMap, HandshakeError> {
    let mut handshake = Handshake::new(stream, protocol);
    let map = match protocol {
        Protocol::Resp3 => redis::cluster::<3>(&mut handshake, via, tls)?,
        _ => redis::cluster::<2>(&mut handshake, via, tls)?,
    };
    handshake.end()?;
    Ok(map)
}

/// Reads of a replica, see [`Protocol::read_only`].
pub(super) fn read_only(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
) -> Result<(), HandshakeError> {
    let mut handshake = Handshake::new(stream, protocol);
    match protocol {
        Protocol::Resp3 => redis::read_only::<3>(&mut handshake)?,
        _ => redis::read_only::<2>(&mut handshake)?,
    }
    handshake.end()
}

/// See [`Protocol::control`].
pub(super) fn control(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
) -> Result<(), HandshakeError> {
    let mut handshake = Handshake::new(stream, protocol);
    match protocol {
        Protocol::Resp2 => redis::control::<2>(&mut handshake)?,
        Protocol::Resp3 => redis::control::<3>(&mut handshake)?,
        _ => {}
    }
    handshake.end()
}

pub(super) fn greet(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
    login: &Login,
) -> Result<ServerIdentity, HandshakeError> {
    let mut handshake = Handshake::new(stream, protocol);
    let version = match protocol {
        Protocol::Resp2 => redis::greet::<2>(&mut handshake, login)?,
        Protocol::Resp3 => redis::greet::<3>(&mut handshake, login)?,
        _ if login.database != 0 => return Err(HandshakeError::NoDatabases(login.database)),
        Protocol::MemcachedText | Protocol::MemcachedMeta => lines::greet(&mut handshake, login)?,
        Protocol::MemcachedBinary => binary::greet(&mut handshake, login)?,
    };
    handshake.end()?;
    Ok(ServerIdentity { version })
}

pub(super) fn statistics(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
) -> Result<Vec<(String, String)>, HandshakeError> {
    let mut handshake = Handshake::new(stream, protocol);
    let statistics = match protocol {
        Protocol::Resp2 => redis::statistics::<2>(&mut handshake)?,
        Protocol::Resp3 => redis::statistics::<3>(&mut handshake)?,
        Protocol::MemcachedText | Protocol::MemcachedMeta => lines::statistics(&mut handshake)?,
        Protocol::MemcachedBinary => binary::statistics(&mut handshake)?,
    };
    handshake.end()?;
    Ok(statistics)
}

pub(super) fn flush(
    protocol: Protocol,
    stream: &mut (impl Read + Write),
) -> Result<(), HandshakeError> {
    let mut handshake = Handshake::new(stream, protocol);
    match protocol {
        Protocol::Resp2 => redis::flush::<2>(&mut handshake)?,
        Protocol::Resp3 => redis::flush::<3>(&mut handshake)?,
        Protocol::MemcachedText | Protocol::MemcachedMeta => lines::flush(&mut handshake)?,
        Protocol::MemcachedBinary => binary::flush(&mut handshake)?,
    }
    handshake.end()
}
