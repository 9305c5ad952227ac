use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::super::error::excerpt;
use super::super::parse::{ParseError, ParseResult};
use super::super::{Protocol, Refusal, Response, WireError};
use super::HandshakeError;

/// The limit of one handshake, for servers that send slowly within the stream's own limit.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest answer to one request over all its lines or packets. Statistics have some 10 KB.
const LONGEST_ANSWER: usize = 4 << 20;

/// One request at a time over a blocking stream.
pub(super) struct Handshake<'s, S> {
    stream: &'s mut S,
    protocol: Protocol,
    received: Vec<u8>,
    /// Bytes of this answer that were consumed.
    consumed: usize,
    until: Instant,
    step: &'static str,
}

impl<'s, S: Read + Write> Handshake<'s, S> {
    pub(super) fn new(stream: &'s mut S, protocol: Protocol) -> Self {
        let until = Instant::now() + TIMEOUT;
        Handshake { stream, protocol, received: Vec::new(), consumed: 0, until, step: "connecting" }
    }

    /// Sends a request; `step` names it in errors: `requesting the version`.
    pub(super) fn send(&mut self, step: &'static str, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.step = step;
        self.consumed = 0;
        match self.stream.write_all(bytes).and_then(|()| self.stream.flush()) {
            Ok(()) => Ok(()),
            // Data received before the close explains it better than the error.
            Err(error) if is_hangup(error.kind()) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The next answer: reads until `parse` finds it whole.
    pub(super) fn receive<T>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> ParseResult<(T, usize)>,
    ) -> Result<T, HandshakeError> {
        let mut needs = 1;
        loop {
            if self.received.len() >= needs {
                match parse(&self.received) {
                    Ok((answer, used)) => {
                        self.received.drain(..used);
                        self.consumed += used;
                        return Ok(answer);
                    }
                    Err(ParseError::Incomplete(more)) => needs = more,
                    Err(ParseError::Invalid(error)) => return Err(self.wrong(*error)),
                }
            }
            if self.consumed + needs > LONGEST_ANSWER {
                let (what, bytes) = ("an answer", (self.consumed + needs) as u64);
                let error = WireError::TooLong { what, bytes, limit: LONGEST_ANSWER };
                return Err(self.wrong(error));
            }
            self.read_more()?;
        }
    }

    /// Checks that no bytes are left: they would belong to no request.
    pub(super) fn end(self) -> Result<(), HandshakeError> {
        match self.received.is_empty() {
            true => Ok(()),
            false => Err(self.wrong(WireError::OutOfStep {
                expected: "nothing more".into(),
                got: format!("`{}`", excerpt(&self.received)),
            })),
        }
    }

    /// The error for a refusal.
    pub(super) fn refused(&self, answer: Response) -> HandshakeError {
        let step = self.step;
        match answer {
            Response::Refused { words, .. } if is_protected(&words) => {
                HandshakeError::ProtectedMode
            }
            // Redis sends NOPERM to a user who is logged in and lacks the permission.
            Response::Refused { why: Refusal::Auth, words } if !words.starts_with("NOPERM") => {
                HandshakeError::LoginRequired { words }
            }
            Response::Refused { why, words } => HandshakeError::Refused { step, why, words },
            other => self.wrong(WireError::OutOfStep {
                expected: "an answer to the handshake".into(),
                got: format!("{other:?}"),
            }),
        }
    }

    pub(super) fn wrong(&self, source: WireError) -> HandshakeError {
        let WireError::Garbage { got, .. } = &source else {
            return HandshakeError::Wire { step: self.step, source };
        };
        let is_redis = matches!(self.protocol, Protocol::Resp2 | Protocol::Resp3);
        let lines = matches!(self.protocol, Protocol::MemcachedText | Protocol::MemcachedMeta);
        let begins = |words: &[&str]| words.iter().any(|word| got.starts_with(word));
        let way_out = if begins(&["HTTP/"]) {
            "that is a web server; check the port"
        } else if is_redis && begins(&["ERROR", "CLIENT_ERROR", "SERVER_ERROR"]) {
            "that is memcached; name it with memcached:// or check the port"
        } else if !is_redis && begins(&["-"]) {
            "that is Redis or a fork of it; name it with redis:// or check the port"
        } else if !is_redis && !lines && begins(&["ERROR", "CLIENT_ERROR", "SERVER_ERROR"]) {
            "that is a memcached that speaks no binary (-B ascii or -Y), or has no connection left; \
             use its text or meta protocol"
        } else {
            "check the address, the protocol and whether the server requires TLS"
        };
        HandshakeError::WrongServer {
            protocol: self.protocol.name(),
            received_text: format!("it answered `{got}`"),
            way_out,
        }
    }

    fn read_more(&mut self) -> Result<(), HandshakeError> {
        let mut piece = [0; 4096];
        loop {
            if Instant::now() >= self.until {
                return Err(self.timed_out());
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(self.closed()),
                Ok(bytes) => {
                    self.received.extend_from_slice(&piece[..bytes]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_hangup(error.kind()) => return Err(self.closed()),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn closed(&self) -> HandshakeError {
        HandshakeError::Closed { step: self.step, hint: self.hint() }
    }

    fn timed_out(&self) -> HandshakeError {
        HandshakeError::TimedOut { step: self.step, hint: self.hint() }
    }

    /// Servers of other protocols that wait for more input, or close.
    fn hint(&self) -> &'static str {
        match self.protocol {
            Protocol::MemcachedText | Protocol::MemcachedMeta => {
                "; a memcached with SASL (-S) speaks only the binary protocol"
            }
            Protocol::MemcachedBinary => {
                "; Redis and its forks wait for more: name them with redis://"
            }
            Protocol::Resp2 | Protocol::Resp3 => "",
        }
    }

    fn failed(&self, source: std::io::Error) -> HandshakeError {
        match source.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => self.timed_out(),
            _ => HandshakeError::Io { step: self.step, source },
        }
    }
}

/// Whether Redis refuses other machines than its own.
pub(super) fn is_protected(words: &str) -> bool {
    words.starts_with("DENIED") && words.contains("protected mode")
}

fn is_hangup(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof)
}
