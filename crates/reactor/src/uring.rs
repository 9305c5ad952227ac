//! The io_uring engine: one `io_uring_enter` carries all sends, runs all receives
//! and waits.
//!
//! Receives are multishot, into buffers provided to the kernel, which are copied from at once. With
//! `DEFER_TASKRUN` the kernel touches them only while this thread is inside `io_uring_enter`.
//!
//! Sends do not block (`MSG_DONTWAIT`): when `io_uring_enter` returns they are complete, so that
//! the kernel never holds a connection's buffer between two polls. Only incomplete sends are
//! reported (`SKIP_SUCCESS`), so that sends do not end the wait for answers.
#![allow(unsafe_code)]

use std::io;
use std::mem::{self, ManuallyDrop};
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::borrowed_buffer::BorrowedBuffer;
use crate::connection::{Connection, ConnectionFailure, ConnectionState};
use crate::engine::EngineUnavailable;
use crate::gather::Gather;
use crate::shared::Shared;
use crate::sys;
use model::Engine;

/// Size of the submission queue; more are submitted in turns.
const SUBMISSIONS: u32 = 256;
/// Size of the completion queue; the kernel buffers more.
const COMPLETIONS: u32 = 4096;
/// The kernel's header of a received message, `io_uring_recvmsg_out`.
const HEADER: usize = 16;
/// How often a submission that the kernel did not take is retried.
const TRIES: usize = 1000;

const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 8;

/// The kind of a completion; with the connection's number and generation it is the `user_data`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Receive,
    Send,
    Writable,
}

pub(crate) struct Uring {
    ring: IoUring,
    buffers: ManuallyDrop<BorrowedBuffer>,
    /// Receive message with room for a timestamp and no name.
    message: Box<libc::msghdr>,
    /// Connections whose receive is not armed (any more).
    to_arm: Vec<u32>,
    /// Connections whose appended bytes are to be sent.
    to_send: Vec<u32>,
    /// Connections to watch for writability.
    to_watch: Vec<u32>,
    /// Connections whose sends were submitted.
    sends: Vec<u32>,
    /// Incomplete sends, with the kernel's result.
    unsent: Vec<(u32, i32)>,
    /// The kernel has minimal waits.
    gathers: bool,
    /// The kernel takes no submissions: none are made any more.
    broken: bool,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl Uring {
    pub(crate) fn new() -> Result<Uring, EngineUnavailable> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(SUBMISSIONS)
            .map_err(unavailable)?;
        let parameters = ring.params();
        if !parameters.is_feature_ext_arg() || !parameters.is_feature_skip_cqe_on_success() {
            return Err(unavailable(io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let gathers = parameters.is_feature_min_timeout();
        let buffers = BorrowedBuffer::new();
        // SAFETY: the memory lives until `drop` has unregistered it.
        unsafe { buffers.register(&ring.submitter()) }.map_err(unavailable)?;
        // SAFETY: all zeroes is a valid msghdr: no name, no parts, no control.
        let mut message: Box<libc::msghdr> = Box::new(unsafe { mem::zeroed() });
        message.msg_controllen = sys::CONTROL as _;
        Ok(Uring {
            ring,
            buffers: ManuallyDrop::new(buffers),
            message,
            to_arm: Vec::new(),
            to_send: Vec::new(),
            to_watch: Vec::new(),
            sends: Vec::new(),
            unsent: Vec::new(),
            gathers,
            broken: false,
        })
    }

    pub(crate) fn add(&mut self, number: u32) {
        self.to_arm.push(number);
    }

    /// Sends with the next poll.
    pub(crate) fn send(&mut self, number: u32, connection: &mut Connection) {
        if !connection.send_requested {
            connection.send_requested = true;
            self.to_send.push(number);
        }
    }

    pub(crate) fn poll(
        &mut self,
        wait: Duration,
        gather: Gather,
        shared: &mut Shared,
    ) -> io::Result<()> {
        self.offer(shared)?;
        let wait = match shared.has_ready() || !self.ring.completion().is_empty() {
            true => Duration::ZERO,
            false => wait,
        };
        if wait > Duration::ZERO || self.has_work() {
            self.enter(Some((wait, gather)), shared)?;
        }
        self.reap(shared);
        Ok(())
    }

    /// Whether a poll without waiting needs the kernel.
    fn has_work(&mut self) -> bool {
        let submissions = self.ring.submission();
        !submissions.is_empty() || submissions.taskrun() || submissions.cq_overflow()
    }

    /// Queues submissions.
    fn offer(&mut self, shared: &mut Shared) -> io::Result<()> {
        while let Some(number) = self.to_arm.pop() {
            let connection = &shared.connections[number as usize];
            if connection.is_open() {
                let data = user_data(Kind::Receive, number, connection.generation);
                let fd = Fd(connection.fd());
                let receive = match connection.stamped {
                    false => opcode::RecvMulti::new(fd, BorrowedBuffer::GROUP).build(),
                    true => {
                        opcode::RecvMsgMulti::new(fd, &*self.message, BorrowedBuffer::GROUP).build()
                    }
                };
                self.push(receive.user_data(data), shared)?;
            }
        }
        for index in 0..self.to_send.len() {
            let number = self.to_send[index];
            let connection = &mut shared.connections[number as usize];
            if !connection.is_open() || connection.blocked {
                continue;
            }
            let some = match connection.in_flight.is_empty() {
                true => connection.start_flight(),
                false => Ok(true),
            };
            match some {
                Err(failure) => shared.fail(number, failure),
                Ok(false) => {}
                Ok(true) => self.push_send(number, shared)?,
            }
        }
        self.to_send.clear();
        while let Some(number) = self.to_watch.pop() {
            let connection = &shared.connections[number as usize];
            let watch = opcode::PollAdd::new(Fd(connection.fd()), libc::POLLOUT as u32)
                .build()
                .user_data(user_data(Kind::Writable, number, connection.generation));
            self.push(watch, shared)?;
        }
        Ok(())
    }

    fn push_send(&mut self, number: u32, shared: &mut Shared) -> io::Result<()> {
        let connection = &shared.connections[number as usize];
        let rest = connection.in_flight.rest();
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let send = opcode::Send::new(Fd(connection.fd()), rest.as_ptr(), length)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(user_data(Kind::Send, number, connection.generation));
        self.push(send, shared)?;
        self.sends.push(number);
        Ok(())
    }

    fn push(&mut self, entry: squeue::Entry, shared: &mut Shared) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.enter(None, shared)?;
        }
        // SAFETY: a send's bytes are in a flight that is not touched before `enter` has had the
        // kernel take it, and then the send is over; the ring has one owner. A receive writes into
        // registered buffers, which outlive it. `message` lives as long as the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| self.stuck())
    }

    /// Submits the queue and, with a limit, waits for completions.
    fn enter(&mut self, wait: Option<(Duration, Gather)>, shared: &mut Shared) -> io::Result<()> {
        if self.broken {
            return Err(self.stuck());
        }
        let (wait, gather) = wait.unwrap_or((Duration::ZERO, Gather::NONE));
        let limit = Timespec::from(wait);
        let mut arguments = SubmitArgs::new().timespec(&limit);
        let mut least = u32::from(wait > Duration::ZERO);
        // After the minimal wait one completion suffices.
        if self.gathers && gather.least > 1 && wait > gather.max_wait {
            least = gather.least;
            arguments = arguments.min_wait_usec(gather.max_wait.as_micros() as u32);
        }
        for _ in 0..TRIES {
            let offered = self.ring.submission().len() as u32;
            shared.counters.waits += 1;
            // SAFETY: the arguments are what EXT_ARG says they are, and live.
            let entered = unsafe {
                self.ring.submitter().enter(offered, least, GETEVENTS | EXT_ARG, Some(&arguments))
            };
            match entered.map_err(|error| error.raw_os_error()) {
                Ok(_) | Err(Some(libc::ETIME | libc::EINTR)) => {}
                // The completion queue is full until it is reaped.
                Err(Some(libc::EBUSY | libc::EAGAIN)) => self.reap(shared),
                Err(code) => {
                    self.broken = true;
                    return Err(code.map_or_else(|| self.stuck(), io::Error::from_raw_os_error));
                }
            }
            if self.ring.submission().is_empty() {
                return Ok(());
            }
        }
        self.broken = true;
        Err(self.stuck())
    }

    fn stuck(&self) -> io::Error {
        io::Error::other("the kernel accepts no more io_uring submissions; use the epoll engine")
    }

    /// Handles all completions, and finishes sends, which complete without one.
    fn reap(&mut self, shared: &mut Shared) {
        loop {
            // The queue is released before each is handled.
            let Some(entry) = self.ring.completion().next() else { break };
            let (kind, number, generation) = from_user_data(entry.user_data());
            match kind {
                Kind::Receive => self.received(&entry, number, generation, shared),
                // After all receives: data received before the close often explains it.
                Kind::Send => self.unsent.push((number, entry.result())),
                Kind::Writable => {
                    let connection = &mut shared.connections[number as usize];
                    if connection.generation & GENERATIONS == generation {
                        connection.blocked = false;
                        self.to_send.push(number);
                    }
                }
            }
        }
        self.finish_sends(shared);
    }

    fn received(
        &mut self,
        entry: &cqueue::Entry,
        number: u32,
        generation: u32,
        shared: &mut Shared,
    ) {
        let (flags, result) = (entry.flags(), entry.result());
        let connection = &shared.connections[number as usize];
        // Completions of a replaced stream only return their buffer.
        let current = connection.is_open() && connection.generation & GENERATIONS == generation;
        let buffer = cqueue::buffer_select(flags);
        let outcome = match (usize::try_from(result), buffer) {
            _ if !current => Ok(()),
            (Ok(length), Some(id)) => {
                // SAFETY: the kernel has just filled it.
                let bytes = unsafe { self.buffers.bytes(id, length) };
                take(bytes, number, shared)
            }
            (Ok(_), None) => {
                shared.end(number, ConnectionState::Closed);
                Ok(())
            }
            (Err(_), _) => match -result {
                // More came at once than there are buffers; it is armed again below.
                libc::ENOBUFS | libc::EINTR | libc::EAGAIN => Ok(()),
                code => Err(io::Error::from_raw_os_error(code).into()),
            },
        };
        if let Some(id) = buffer {
            self.buffers.give_back(id);
        }
        if let Err(failure) = outcome {
            shared.fail(number, failure);
        }
        let connection = &mut shared.connections[number as usize];
        if current && connection.is_open() {
            if !cqueue::more(flags) {
                self.to_arm.push(number);
            }
            if connection.session.as_ref().is_some_and(|session| session.has_words()) {
                self.send(number, connection);
            }
        }
    }

    /// All submitted sends are complete unless reported otherwise.
    fn finish_sends(&mut self, shared: &mut Shared) {
        if !self.ring.submission().is_empty() {
            return;
        }
        for (number, result) in mem::take(&mut self.unsent) {
            self.sends.retain(|sent| *sent != number);
            let connection = &mut shared.connections[number as usize];
            match result {
                code if code < 0 && code != -libc::EAGAIN => {
                    shared.fail(number, io::Error::from_raw_os_error(-code).into());
                }
                part => {
                    let bytes = part.max(0) as usize;
                    shared.counters.bytes_sent += bytes as u64;
                    connection.in_flight.sent += bytes;
                    connection.blocked = true;
                    self.to_watch.push(number);
                }
            }
        }
        for number in self.sends.drain(..) {
            let connection = &mut shared.connections[number as usize];
            shared.counters.bytes_sent += connection.in_flight.rest().len() as u64;
            connection.in_flight.sent = connection.in_flight.bytes.len();
            if connection.send_requested {
                self.to_send.push(number);
            }
        }
    }

    /// Drops pending work of a replaced stream.
    pub(crate) fn discard(&mut self, number: u32) {
        self.to_arm.retain(|other| *other != number);
        self.to_send.retain(|other| *other != number);
        self.to_watch.retain(|other| *other != number);
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Receives that are still armed find no buffers any more, and none holds one, for buffers
        // are taken and filled only while this thread is in `enter`.
        if self.ring.submitter().unregister_buf_ring(BorrowedBuffer::GROUP).is_ok() {
            // SAFETY: dropped once, here, after it was unregistered. Otherwise the memory leaks.
            unsafe { ManuallyDrop::drop(&mut self.buffers) }
        }
    }
}

/// Handles the data of one receive.
fn take(bytes: &[u8], number: u32, shared: &mut Shared) -> Result<(), ConnectionFailure> {
    let connection = &mut shared.connections[number as usize];
    let payload = match connection.stamped {
        false => bytes,
        true => {
            let (head, payload) = bytes.split_at_checked(HEADER + sys::CONTROL).unwrap_or_default();
            // The header says how long the name, the control messages and the payload are.
            let used =
                head.get(4..8).and_then(|used| used.try_into().ok()).map_or(0, u32::from_ne_bytes);
            let control = head.get(HEADER..).unwrap_or_default();
            let used = (used as usize).min(control.len());
            connection.arrived = sys::stamp(&control[..used]).or(connection.arrived);
            payload
        }
    };
    if payload.is_empty() {
        shared.end(number, ConnectionState::Closed);
        return Ok(());
    }
    // Data since the last poll could not be consumed yet.
    let largest = shared.options.largest_answer;
    connection.check_size(match connection.queued {
        true => largest.saturating_add(BorrowedBuffer::TOTAL),
        false => largest,
    })?;
    shared.counters.bytes_received += payload.len() as u64;
    let ended = match &mut connection.session {
        None => {
            connection.incoming.append(payload);
            false
        }
        Some(session) => {
            session.decipher(payload, &mut connection.incoming).map_err(ConnectionFailure::Tls)?
        }
    };
    match ended {
        true => shared.end(number, ConnectionState::Closed),
        false => shared.make_ready(number),
    }
    Ok(())
}

const GENERATIONS: u32 = (1 << 28) - 1;

fn user_data(kind: Kind, number: u32, generation: u32) -> u64 {
    (kind as u64) << 60 | u64::from(generation & GENERATIONS) << 32 | u64::from(number)
}

fn from_user_data(data: u64) -> (Kind, u32, u32) {
    let kind = match data >> 60 {
        0 => Kind::Receive,
        1 => Kind::Send,
        _ => Kind::Writable,
    };
    (kind, data as u32, (data >> 32) as u32 & GENERATIONS)
}

fn unavailable(error: io::Error) -> EngineUnavailable {
    let why = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring".to_owned(),
        Some(libc::EINVAL) => "this kernel is older than Linux 6.1".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "it is forbidden here (the sysctl kernel.io_uring_disabled, or a container's seccomp \
             rules)"
                .to_owned()
        }
        Some(libc::ENOMEM) => {
            "too little memory may be locked (raise the limit `ulimit -l`)".to_owned()
        }
        _ => error.to_string(),
    };
    EngineUnavailable { engine: Engine::IoUring, why }
}
