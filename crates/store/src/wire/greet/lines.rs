//! memcached's text and meta protocols.

use std::io::{Read, Write};

use super::super::scan::{self, Scan};
use super::super::{Answer, Login, Refusal, text};
use super::GreetError;
use super::talk::Talk;

const EXPECTED: &str = "memcached's text protocol";

/// What a line answers.
enum Said {
    Line(String),
    Refused(Answer),
}

pub(super) fn greet<S: Read + Write>(
    talk: &mut Talk<'_, S>,
    login: &Login,
) -> Result<String, GreetError> {
    let refusal = match (version(talk)?, &login.password) {
        (Ok(version), None) => return Ok(version),
        // It would keep the login as a value.
        (Ok(version), Some(_)) => return Err(GreetError::NoLoginWanted { words: version }),
        (Err(answer), None) => return Err(talk.refused(answer)),
        (Err(answer), Some(_)) => answer,
    };
    let Answer::Refused { why: Refusal::Auth, .. } = &refusal else {
        return Err(talk.refused(refusal));
    };
    let (Some(user), Some(password)) = (&login.user, &login.password) else {
        return Err(GreetError::HalfALogin { protocol: "memcached" });
    };
    let value = format!("{user} {}", password.expose());
    let question = format!("set login 0 0 {}\r\n{value}\r\n", value.len());
    talk.say("logging in", question.as_bytes())?;
    match talk.hear(said)? {
        Said::Line(line) if line == "STORED" => {}
        Said::Refused(Answer::Refused { words, .. }) => {
            return Err(GreetError::LoginRefused { words });
        }
        Said::Line(words) => return Err(GreetError::LoginRefused { words }),
        Said::Refused(other) => return Err(talk.refused(other)),
    }
    version(talk)?.map_err(|answer| talk.refused(answer))
}

/// The version, or the refusal to say it.
fn version<S: Read + Write>(talk: &mut Talk<'_, S>) -> Result<Result<String, Answer>, GreetError> {
    talk.say("asking for the version", b"version\r\n")?;
    match talk.hear(|bytes| {
        let (said, used) = said(bytes)?;
        match said {
            Said::Line(line) => match line.strip_prefix("VERSION ") {
                Some(version) => Ok((Said::Line(format!("memcached {version}")), used)),
                None => Err(scan::garbage(EXPECTED, line.as_bytes())),
            },
            refused => Ok((refused, used)),
        }
    })? {
        Said::Line(version) => Ok(Ok(version)),
        Said::Refused(answer) => Ok(Err(answer)),
    }
}

pub(super) fn statistics<S: Read + Write>(
    talk: &mut Talk<'_, S>,
) -> Result<Vec<(String, String)>, GreetError> {
    talk.say("asking for statistics", b"stats\r\n")?;
    let mut statistics = Vec::new();
    loop {
        match talk.hear(said)? {
            Said::Line(line) if line == "END" => return Ok(statistics),
            Said::Line(line) => {
                let fact = line
                    .strip_prefix("STAT ")
                    .map(|rest| rest.split_once(' ').unwrap_or((rest, "")));
                match fact {
                    Some((name, text)) => statistics.push((name.to_owned(), text.to_owned())),
                    None => return Err(unexpected(talk, &line)),
                }
            }
            Said::Refused(answer) => return Err(talk.refused(answer)),
        }
    }
}

pub(super) fn flush<S: Read + Write>(talk: &mut Talk<'_, S>) -> Result<(), GreetError> {
    talk.say("emptying the server", b"flush_all\r\n")?;
    match talk.hear(said)? {
        Said::Line(line) if line == "OK" => Ok(()),
        Said::Line(line) => Err(unexpected(talk, &line)),
        Said::Refused(answer) => Err(talk.refused(answer)),
    }
}

fn said(bytes: &[u8]) -> Scan<(Said, usize)> {
    let (line, used) = scan::line(bytes, 0, EXPECTED)?;
    let said = match text::refusal(line) {
        Some(answer) => Said::Refused(answer),
        None => Said::Line(String::from_utf8_lossy(line).into_owned()),
    };
    Ok((said, used))
}

fn unexpected<S: Read + Write>(talk: &Talk<'_, S>, line: &str) -> GreetError {
    talk.wrong(super::WireError::Garbage {
        expected: EXPECTED,
        got: super::super::error::excerpt(line.as_bytes()),
    })
}
