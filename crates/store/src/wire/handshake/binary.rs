//! memcached's binary protocol and its SASL login.

use std::io::{Read, Write};

use super::super::binary::{self, opcode, status};
use super::super::parse::{ParseError, ParseResult};
use super::super::{Login, Response, WireError};
use super::HandshakeError;
use super::exchange::Handshake;

/// Two line ends, so that a line-based server answers instead of waiting.
const OPAQUE: u32 = 0x0d0a_0d0a;

/// An owned answer packet.
struct Reply {
    status: u16,
    key: String,
    value: String,
    /// The packet as a refusal.
    refusal: Response,
}

pub(super) fn greet<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
    login: &Login,
) -> Result<String, HandshakeError> {
    let reply = request(handshake, "requesting the version", opcode::VERSION, b"", b"")?;
    if reply.status != status::DONE {
        return Err(handshake.refused(reply.refusal));
    }
    let version = format!("memcached {}", reply.value);
    match &login.password {
        Some(password) => {
            let Some(user) = &login.user else {
                return Err(HandshakeError::IncompleteLogin { protocol: "SASL" });
            };
            let plain = format!("\0{user}\0{}", password.expose());
            let reply =
                request(handshake, "logging in", opcode::SASL_AUTH, b"PLAIN", plain.as_bytes())?;
            match (reply.status, reply.refusal) {
                (status::DONE, _) => {}
                (status::UNKNOWN_COMMAND, _) => {
                    return Err(HandshakeError::LoginNotRequired {
                        words: "it has no SASL".into(),
                    });
                }
                (_, Response::Refused { words, .. }) => {
                    return Err(HandshakeError::LoginRefused { words });
                }
                (_, other) => return Err(handshake.refused(other)),
            }
        }
        // The version needs no login; every other command does.
        None => {
            let reply =
                request(handshake, "checking whether a login is required", opcode::NOOP, b"", b"")?;
            if reply.status != status::DONE {
                return Err(handshake.refused(reply.refusal));
            }
        }
    }
    Ok(version)
}

pub(super) fn statistics<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
) -> Result<Vec<(String, String)>, HandshakeError> {
    let mut reply = request(handshake, "requesting statistics", opcode::STAT, b"", b"")?;
    let mut statistics = Vec::new();
    loop {
        if reply.status != status::DONE {
            return Err(handshake.refused(reply.refusal));
        }
        if reply.key.is_empty() {
            return Ok(statistics);
        }
        statistics.push((reply.key, reply.value));
        reply = receive_reply(handshake, opcode::STAT)?;
    }
}

pub(super) fn flush<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
) -> Result<(), HandshakeError> {
    let reply = request(handshake, "emptying the server", opcode::FLUSH, b"", b"")?;
    match reply.status {
        status::DONE => Ok(()),
        _ => Err(handshake.refused(reply.refusal)),
    }
}

fn request<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
    step: &'static str,
    opcode: u8,
    key: &[u8],
    value: &[u8],
) -> Result<Reply, HandshakeError> {
    let mut packet = Vec::new();
    binary::put_packet(opcode, OPAQUE, &[], key, value, &mut packet);
    handshake.send(step, &packet)?;
    receive_reply(handshake, opcode)
}

fn receive_reply<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
    opcode: u8,
) -> Result<Reply, HandshakeError> {
    handshake.receive(|bytes| reply(bytes, opcode))
}

fn reply(bytes: &[u8], opcode: u8) -> ParseResult<(Reply, usize)> {
    let (packet, used) = binary::packet(bytes, 0)?;
    if packet.opcode != opcode || packet.opaque != OPAQUE {
        let expected = format!("the answer to opcode {opcode:#04x}");
        let got = format!("the answer to opcode {:#04x}", packet.opcode);
        return Err(ParseError::from(WireError::OutOfStep { expected, got }));
    }
    let reply = Reply {
        status: packet.status,
        key: String::from_utf8_lossy(packet.key).into_owned(),
        value: String::from_utf8_lossy(packet.value).into_owned(),
        refusal: binary::refusal(&packet),
    };
    Ok((reply, used))
}
