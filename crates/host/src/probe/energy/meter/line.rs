//! The serial line to the meter: one request at a time, repeated after a bad reply.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use model::Unavailable;
use serialport::{ClearBuffer, SerialPort, TTYPort};

use super::MeterSettings;
use super::frame::{BadReply, FIRST, LENGTH, REPLY, reply, request};
use crate::root::Root;

/// Attempts before the meter counts as failed.
const ATTEMPTS: usize = 3;

/// Limit for one reply, which takes 4 ms of the line.
const LIMIT: Duration = Duration::from_millis(150);

/// Timeout of a single read, so that the limit is checked.
const READ: Duration = Duration::from_millis(10);

pub(super) struct SerialLine {
    port: TTYPort,
    name: String,
}

impl SerialLine {
    /// Opens the port for this process alone.
    pub fn open(root: &Root, settings: &MeterSettings) -> Result<SerialLine, Unavailable> {
        let path = root.device(&settings.port).map_err(|_| missing(&settings.port))?;
        let port = serialport::new(path.to_string_lossy(), settings.baud)
            .timeout(READ)
            .open_native()
            .map_err(|error| refused(&settings.port, &error))?;
        Ok(SerialLine { port, name: settings.port.clone() })
    }

    /// The meter's output registers.
    pub fn registers(&mut self) -> Result<[u8; LENGTH], Unavailable> {
        let mut last = BadReply::Silent;
        for _ in 0..ATTEMPTS {
            match self.read_once().map_err(|error| self.lost(&error))? {
                Ok(data) => return Ok(data),
                Err(why) => last = why,
            }
        }
        Err(Unavailable::new(
            format!("the meter on {} failed {ATTEMPTS} times: {last}", self.name),
            match last {
                BadReply::Silent => "switch it on, and check its port and baud rate",
                BadReply::Foreign(_) | BadReply::Length(_) => {
                    "check that this is the meter's port, and this its baud rate"
                }
                _ => "check the cable: shorter, shielded, and away from the mains",
            },
        ))
    }

    fn read_once(&mut self) -> io::Result<Result<[u8; LENGTH], BadReply>> {
        // Discards a reply that came too late.
        self.port.clear(ClearBuffer::Input)?;
        self.port.write_all(&request(FIRST, LENGTH as u8))?;
        let until = Instant::now() + LIMIT;
        let mut bytes = Vec::with_capacity(REPLY);
        let mut part = [0; REPLY];
        loop {
            match self.port.read(&mut part[..REPLY - bytes.len()]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => bytes.extend_from_slice(&part[..read]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
            match reply(&bytes) {
                Ok(Some(data)) => return Ok(Ok(data)),
                Err(why) => return Ok(Err(why)),
                Ok(None) if Instant::now() < until => {}
                Ok(None) if bytes.is_empty() => return Ok(Err(BadReply::Silent)),
                Ok(None) => return Ok(Err(BadReply::Short(bytes.len()))),
            }
        }
    }

    fn lost(&self, error: &io::Error) -> Unavailable {
        Unavailable::new(
            format!("the meter's port {} is gone: {error}", self.name),
            "plug the meter in again",
        )
    }
}

fn missing(port: &str) -> Unavailable {
    Unavailable::new(
        format!("the meter's port {port} does not exist"),
        "plug the meter in, and look for its port (`ls /dev/serial/by-id`)",
    )
}

fn refused(port: &str, error: &serialport::Error) -> Unavailable {
    use serialport::ErrorKind as Kind;
    match error.kind() {
        // Its name for a port that another program has opened for itself or has locked.
        Kind::NoDevice => Unavailable::new(
            format!("the meter's port {port} is in use by another program"),
            format!("end it (`fuser -v {port}` names it)"),
        ),
        Kind::Io(ErrorKind::PermissionDenied) => Unavailable::new(
            format!("the meter's port {port} may not be opened by this user"),
            "add the user to the group of the port (often `dialout`)",
        ),
        Kind::Io(ErrorKind::NotFound) => missing(port),
        _ => Unavailable::new(
            format!("the meter's port {port} could not be opened: {error}"),
            "check that it is a serial port and supports the baud rate",
        ),
    }
}
