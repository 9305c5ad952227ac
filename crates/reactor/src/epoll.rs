use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use libc::{EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, epoll_event};

use crate::connection::{Connection, ConnectionFailure, ConnectionState};
use crate::shared::Shared;
use crate::sys;

/// Events that are fetched at once; more come with the next poll.
const EVENTS: usize = 256;

/// Bytes of one receive with TLS: a few records of at most 16 KiB.
const CIPHER: usize = 64 << 10;

/// Edge-triggered, so that no call is needed to watch for writability, and ready sockets are not
/// polled at every wait. In return, sockets with unread data must be remembered here.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<epoll_event>,
    /// Connections whose sockets may have more than one read took; each is marked.
    unfinished: VecDeque<u32>,
    cipher: Vec<u8>,
    /// The kernel has `epoll_pwait2`.
    fine: bool,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        sys::wake_on_time();
        Ok(Epoll {
            fd: sys::new_epoll()?,
            events: vec![epoll_event { events: 0, u64: 0 }; EVENTS],
            unfinished: VecDeque::new(),
            cipher: Vec::new(),
            fine: true,
        })
    }

    pub(crate) fn add(&mut self, number: u32, connection: &Connection) -> io::Result<()> {
        if connection.session.is_some() {
            self.cipher.resize(CIPHER, 0);
        }
        sys::watch(
            &self.fd,
            connection.socket(),
            EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
            token(number, connection.generation),
        )
    }

    /// Writes now, as far as the socket takes it.
    pub(crate) fn send(&mut self, number: u32, shared: &mut Shared) {
        let connection = &mut shared.connections[number as usize];
        let sent = match connection.in_flight.is_empty() {
            // The rest is sent when an edge reports room.
            false => {
                connection.send_requested = true;
                return;
            }
            true => start_send(connection, &mut shared.counters),
        };
        if let Err(failure) = sent {
            // Data received before the close often explains it.
            self.receive(number, true, shared);
            shared.fail(number, failure);
        }
    }

    pub(crate) fn poll(&mut self, wait: Duration, shared: &mut Shared) -> io::Result<()> {
        let wait = match shared.has_ready() || !self.unfinished.is_empty() {
            true => Duration::ZERO,
            false => wait,
        };
        for _ in 0..self.unfinished.len() {
            let Some(number) = self.unfinished.pop_front() else { break };
            let connection = &mut shared.connections[number as usize];
            // Replaced meanwhile, if it is not marked.
            if std::mem::take(&mut connection.more) {
                self.receive(number, true, shared);
            }
        }
        shared.counters.waits += 1;
        for index in 0..self.wait(wait)? {
            let event = self.events[index];
            self.handle(event, shared);
        }
        Ok(())
    }

    fn wait(&mut self, wait: Duration) -> io::Result<usize> {
        if self.fine {
            match sys::wait(&self.fd, &mut self.events, wait) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.fine = false,
                other => return uninterrupted(other),
            }
        }
        uninterrupted(sys::wait_ms(&self.fd, &mut self.events, wait))
    }

    fn handle(&mut self, event: epoll_event, shared: &mut Shared) {
        let (token, events) = (event.u64, event.events as i32);
        let (number, generation) = (token as u32, (token >> 32) as u32);
        let connection = &mut shared.connections[number as usize];
        if connection.generation != generation || !connection.is_open() {
            return;
        }
        if events & EPOLLOUT != 0
            && !connection.in_flight.is_empty()
            && let Err(failure) = resume(connection, &mut shared.counters)
        {
            self.receive(number, true, shared);
            return shared.fail(number, failure);
        }
        let ends = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) != 0;
        if events & EPOLLIN != 0 || ends {
            self.receive(number, ends, shared);
        }
    }

    /// Receives once; again at the next poll if there may be more. `probe`: a short read does not
    /// prove that nothing follows, for an end that is already there causes no edge.
    fn receive(&mut self, number: u32, probe: bool, shared: &mut Shared) {
        let largest = shared.options.largest_answer;
        loop {
            let connection = &mut shared.connections[number as usize];
            if !connection.is_open() {
                return;
            }
            if connection.queued && connection.incoming.len() > largest {
                // The caller has not consumed any of it yet.
                return self.requeue(number, connection);
            }
            if let Err(failure) = connection.check_size(largest) {
                return shared.fail(number, failure);
            }
            shared.counters.receives += 1;
            match take(connection, &mut self.cipher) {
                Ok(ReadOutcome::Nothing) => return,
                Ok(ReadOutcome::End) => return shared.end(number, ConnectionState::Closed),
                Ok(ReadOutcome::Some { bytes, full }) => {
                    shared.counters.bytes_received += bytes as u64;
                    let answered = match &connection.session {
                        Some(session) if session.has_words() && connection.in_flight.is_empty() => {
                            start_send(connection, &mut shared.counters)
                        }
                        _ => Ok(()),
                    };
                    shared.make_ready(number);
                    if let Err(failure) = answered {
                        return shared.fail(number, failure);
                    }
                    let connection = &mut shared.connections[number as usize];
                    match (full, probe) {
                        (true, _) => return self.requeue(number, connection),
                        (false, true) => {}
                        (false, false) => return,
                    }
                }
                Err(failure) => return shared.fail(number, failure),
            }
        }
    }

    /// Receives from it at the next poll, for which there is no edge.
    fn requeue(&mut self, number: u32, connection: &mut Connection) {
        if !connection.more {
            connection.more = true;
            self.unfinished.push_back(number);
        }
    }
}

enum ReadOutcome {
    Nothing,
    End,
    /// `full`: no room was left, so that there may be more.
    Some {
        bytes: usize,
        full: bool,
    },
}

/// Reads from the socket once, decrypted.
fn take(connection: &mut Connection, cipher: &mut [u8]) -> Result<ReadOutcome, ConnectionFailure> {
    let fd = connection.fd();
    let room = match connection.session {
        None => connection.incoming.room_to_read(),
        Some(_) => &mut *cipher,
    };
    let size = room.len();
    let received = match connection.stamped {
        true => sys::receive_stamped(fd, room),
        false => sys::receive(fd, room).map(|bytes| (bytes, None)),
    };
    let bytes = match received {
        Ok((0, _)) => return Ok(ReadOutcome::End),
        Ok((bytes, stamp)) => {
            connection.arrived = stamp.or(connection.arrived);
            bytes
        }
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
                return Ok(ReadOutcome::Nothing);
            }
            _ => return Err(error.into()),
        },
    };
    match &mut connection.session {
        None => connection.incoming.filled(bytes),
        Some(session) => {
            if session
                .decipher(&cipher[..bytes], &mut connection.incoming)
                .map_err(ConnectionFailure::Tls)?
            {
                return Ok(ReadOutcome::End);
            }
        }
    }
    Ok(ReadOutcome::Some { bytes, full: bytes == size })
}

/// Sends appended bytes, if nothing is in flight.
fn start_send(
    connection: &mut Connection,
    counters: &mut crate::Counters,
) -> Result<(), ConnectionFailure> {
    match connection.start_flight()? {
        true => resume(connection, counters),
        false => Ok(()),
    }
}

/// Sends until all is sent or the socket is full.
fn resume(
    connection: &mut Connection,
    counters: &mut crate::Counters,
) -> Result<(), ConnectionFailure> {
    loop {
        counters.sends += 1;
        match sys::send(connection.fd(), connection.in_flight.rest()) {
            Ok(bytes) => {
                counters.bytes_sent += bytes as u64;
                connection.in_flight.sent += bytes;
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(()),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error.into()),
            },
        }
        if connection.in_flight.is_empty()
            && !(connection.send_requested && connection.start_flight()?)
        {
            return Ok(());
        }
    }
}

/// A signal ends the wait and is no error.
fn uninterrupted(count: io::Result<usize>) -> io::Result<usize> {
    match count {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        other => other,
    }
}

fn token(number: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(number)
}
