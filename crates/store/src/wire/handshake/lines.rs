//! memcached's text and meta protocols.

use std::io::{Read, Write};

use super::super::parse::{self, ParseResult};
use super::super::{Login, Refusal, Response, text};
use super::HandshakeError;
use super::exchange::Handshake;

const EXPECTED: &str = "memcached's text protocol";

/// A line of an answer.
enum LineReply {
    Line(String),
    Refused(Response),
}

pub(super) fn greet<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
    login: &Login,
) -> Result<String, HandshakeError> {
    let refusal = match (version(handshake)?, &login.password) {
        (Ok(version), None) => return Ok(version),
        // The server would store the login as a value.
        (Ok(version), Some(_)) => return Err(HandshakeError::LoginNotRequired { words: version }),
        (Err(answer), None) => return Err(handshake.refused(answer)),
        (Err(answer), Some(_)) => answer,
    };
    let Response::Refused { why: Refusal::Auth, .. } = &refusal else {
        return Err(handshake.refused(refusal));
    };
    let (Some(user), Some(password)) = (&login.user, &login.password) else {
        return Err(HandshakeError::IncompleteLogin { protocol: "memcached" });
    };
    let value = format!("{user} {}", password.expose());
    let message = format!("set login 0 0 {}\r\n{value}\r\n", value.len());
    handshake.send("logging in", message.as_bytes())?;
    match handshake.receive(line_reply)? {
        LineReply::Line(line) if line == "STORED" => {}
        LineReply::Refused(Response::Refused { words, .. }) => {
            return Err(HandshakeError::LoginRefused { words });
        }
        LineReply::Line(words) => return Err(HandshakeError::LoginRefused { words }),
        LineReply::Refused(other) => return Err(handshake.refused(other)),
    }
    version(handshake)?.map_err(|answer| handshake.refused(answer))
}

/// The version, or the server's refusal.
fn version<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
) -> Result<Result<String, Response>, HandshakeError> {
    handshake.send("requesting the version", b"version\r\n")?;
    match handshake.receive(|bytes| {
        let (reply, used) = line_reply(bytes)?;
        match reply {
            LineReply::Line(line) => match line.strip_prefix("VERSION ") {
                Some(version) => Ok((LineReply::Line(format!("memcached {version}")), used)),
                None => Err(parse::garbage(EXPECTED, line.as_bytes())),
            },
            refused => Ok((refused, used)),
        }
    })? {
        LineReply::Line(version) => Ok(Ok(version)),
        LineReply::Refused(answer) => Ok(Err(answer)),
    }
}

pub(super) fn statistics<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
) -> Result<Vec<(String, String)>, HandshakeError> {
    handshake.send("requesting statistics", b"stats\r\n")?;
    let mut statistics = Vec::new();
    loop {
        match handshake.receive(line_reply)? {
            LineReply::Line(line) if line == "END" => return Ok(statistics),
            LineReply::Line(line) => {
                let fact = line
                    .strip_prefix("STAT ")
                    .map(|rest| rest.split_once(' ').unwrap_or((rest, "")));
                match fact {
                    Some((name, text)) => statistics.push((name.to_owned(), text.to_owned())),
                    None => return Err(unexpected(handshake, &line)),
                }
            }
            LineReply::Refused(answer) => return Err(handshake.refused(answer)),
        }
    }
}

pub(super) fn flush<S: Read + Write>(
    handshake: &mut Handshake<'_, S>,
) -> Result<(), HandshakeError> {
    handshake.send("emptying the server", b"flush_all\r\n")?;
    match handshake.receive(line_reply)? {
        LineReply::Line(line) if line == "OK" => Ok(()),
        LineReply::Line(line) => Err(unexpected(handshake, &line)),
        LineReply::Refused(answer) => Err(handshake.refused(answer)),
    }
}

fn line_reply(bytes: &[u8]) -> ParseResult<(LineReply, usize)> {
    let (line, used) = parse::line(bytes, 0, EXPECTED)?;
    let reply = match text::refusal(line) {
        Some(answer) => LineReply::Refused(answer),
        None => LineReply::Line(String::from_utf8_lossy(line).into_owned()),
    };
    Ok((reply, used))
}

fn unexpected<S: Read + Write>(handshake: &Handshake<'_, S>, line: &str) -> HandshakeError {
    handshake.wrong(super::WireError::Garbage {
        expected: EXPECTED,
        got: super::super::error::excerpt(line.as_bytes()),
    })
}
