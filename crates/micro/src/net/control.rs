//! The control protocol between the two ends: lines of JSON.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::error::NetError;
use super::ether::Mac;
use super::job::NetJob;
use super::outcome::EndOutcome;

/// Version of the protocol; both ends must have the same.
const VERSION: u32 = 1;
/// Between two checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_LINE: usize = 16 << 20;

/// The first line of every connection.
#[derive(Debug, Serialize, Deserialize)]
pub enum Hello {
    Control {
        version: u32,
    },
    /// A data connection of the cell, by number.
    Data {
        number: u32,
    },
}

impl Hello {
    pub const CONTROL: Hello = Hello::Control { version: VERSION };
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToServer {
    Job {
        job: NetJob,
        /// Of the client's machine: ends with the same one share a clock.
        boot_id: Option<String>,
    },
    /// The ports from which the datagrams of each connection come.
    Ports(Vec<u16>),
    Phase {
        /// Tells frames of this phase from those of an earlier one.
        number: u64,
        most_s: f64,
    },
    /// Messages sent on each connection.
    End(Vec<u64>),
    Bye,
}

/// How the client reaches a server's data sockets.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ready {
    pub boot_id: Option<String>,
    /// Where to connect for unix sockets.
    pub unix: Option<PathBuf>,
    /// One port a connection, for datagrams.
    pub udp: Vec<u16>,
    /// Of the port, for frames.
    pub mac: Option<Mac>,
    pub longest_frame: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToClient {
    /// The server takes this control connection.
    Welcome {
        version: u32,
    },
    Ready(Ready),
    Going,
    Report(Box<EndOutcome>),
    Failed {
        words: String,
        request: bool,
    },
}

impl ToClient {
    pub const WELCOME: ToClient = ToClient::Welcome { version: VERSION };
}

/// A control connection.
#[derive(Debug)]
pub struct Control {
    socket: Socket,
    pending: Vec<u8>,
}

impl Control {
    pub fn new(socket: Socket) -> Result<Control, NetError> {
        socket
            .set_read_timeout(Some(POLL_INTERVAL))
            .map_err(NetError::io("setting up the control"))?;
        let limit = Some(Duration::from_secs(10));
        socket.set_write_timeout(limit).map_err(NetError::io("setting up the control"))?;
        Ok(Control { socket, pending: Vec::new() })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), NetError> {
        send_line(&self.socket, message)
    }

    /// Receives the next line; `what` names it in a timeout's message.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        limit: Duration,
        goes_on: &dyn Fn() -> Result<(), NetError>,
    ) -> Result<T, NetError> {
        let until = Instant::now() + limit;
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return parse(&line);
            }
            if self.pending.len() > MAX_LINE {
                return Err(NetError::Protocol("a line without an end".to_owned()));
            }
            goes_on()?;
            let mut bytes = [0; 16 << 10];
            match (&self.socket).read(&mut bytes) {
                Ok(0) => return Err(NetError::Closed { doing: what }),
                Ok(read) => self.pending.extend_from_slice(&bytes[..read]),
                Err(error) if is_timeout(&error) && Instant::now() < until => {}
                Err(error) if is_timeout(&error) => {
                    return Err(NetError::Timeout { what, seconds: limit.as_secs_f64() });
                }
                Err(source) => return Err(NetError::Io { doing: what, source }),
            }
        }
    }
}

/// Whether a read ended because nothing had arrived yet.
pub fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn send_line<T: Serialize>(socket: &Socket, message: &T) -> Result<(), NetError> {
    let mut line = serde_json::to_vec(message).map_err(|e| NetError::Protocol(e.to_string()))?;
    line.push(b'\n');
    let mut socket: &Socket = socket;
    socket.write_all(&line).map_err(NetError::io("talking to the other end"))
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, NetError> {
    serde_json::from_slice(line).map_err(|_| {
        let shown: String = String::from_utf8_lossy(line).trim_end().chars().take(80).collect();
        NetError::Protocol(format!("`{}`", shown.escape_debug()))
    })
}

/// Sends the first line of a connection.
pub fn send_hello(socket: &Socket, hello: &Hello) -> Result<(), NetError> {
    send_line(socket, hello)
}

/// The longest first line of a connection.
pub const MAX_HELLO: usize = 200;

/// Parses the first line of a connection.
pub fn parse_hello(line: &[u8]) -> Result<Hello, NetError> {
    parse(line)
}

/// Receives the first line over a pair of sockets.
pub fn read_hello(socket: &Socket, limit: Duration) -> Result<Hello, NetError> {
    socket.set_read_timeout(Some(limit)).map_err(NetError::io("a new connection"))?;
    let mut line = Vec::new();
    let mut reader = socket;
    while line.last() != Some(&b'\n') {
        if line.len() >= MAX_HELLO {
            return Err(NetError::Protocol("a line without an end".to_owned()));
        }
        let mut byte = [0];
        reader.read_exact(&mut byte).map_err(NetError::io("a new connection"))?;
        line.push(byte[0]);
    }
    parse(&line)
}
