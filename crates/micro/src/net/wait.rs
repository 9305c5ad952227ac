//! Waiting for sockets: in the receiving call, by epoll, or by polling.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::Socket;

/// How a thread waits for its sockets.
pub enum Wait {
    /// A single socket that blocks for a tick at most.
    Blocking,
    /// Every socket is polled.
    Busy {
        sockets: usize,
        turns: u32,
    },
    Epoll {
        epoll: Epoll,
        events: Vec<EpollEvent>,
    },
}

/// The event that a socket is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    Data,
    Room,
}

impl WaitFor {
    fn flags(self) -> EpollFlags {
        match self {
            WaitFor::Data => EpollFlags::EPOLLIN,
            WaitFor::Room => EpollFlags::EPOLLOUT,
        }
    }
}

/// Polls of a busy thread before it yields its CPU once: else two ends on one CPU would each spin
/// through the other's time.
const YIELD_AFTER: u32 = 4096;

impl Wait {
    /// Sets up the sockets: nonblocking, or blocking for `tick` if there is only one.
    pub fn new<'a>(
        sockets: impl ExactSizeIterator<Item = &'a Socket>,
        busy: bool,
        first: WaitFor,
        tick: Duration,
    ) -> io::Result<Wait> {
        let count = sockets.len();
        let mut wait = match (busy, count) {
            (true, _) => Wait::Busy { sockets: count, turns: 0 },
            (false, 1) => Wait::Blocking,
            (false, _) => Wait::Epoll {
                epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
                events: vec![EpollEvent::empty(); count.clamp(1, 512)],
            },
        };
        for (at, socket) in sockets.enumerate() {
            let blocking = matches!(wait, Wait::Blocking);
            socket.set_nonblocking(!blocking)?;
            socket.set_read_timeout(Some(tick))?;
            socket.set_write_timeout(Some(tick))?;
            if let Wait::Epoll { epoll, .. } = &mut wait {
                epoll.add(socket.as_fd(), EpollEvent::new(first.flags(), at as u64))?;
            }
        }
        Ok(wait)
    }

    /// The sockets that are ready within `limit`; all of them for a blocking or busy thread.
    pub fn ready(&mut self, limit: Duration, into: &mut Vec<usize>) -> io::Result<()> {
        into.clear();
        match self {
            Wait::Blocking => into.push(0),
            Wait::Busy { sockets, turns } => {
                into.extend(0..*sockets);
                *turns = (*turns + 1) % YIELD_AFTER;
                if *turns == 0 {
                    std::thread::yield_now();
                }
            }
            Wait::Epoll { epoll, events } => {
                let limit = EpollTimeout::try_from(limit).unwrap_or(EpollTimeout::ZERO);
                let count = match epoll.wait(events, limit) {
                    Err(nix::errno::Errno::EINTR) => 0,
                    other => other?,
                };
                into.extend(events[..count].iter().map(|event| event.data() as usize));
            }
        }
        Ok(())
    }

    /// Changes the event that socket `at` is waited for.
    pub fn change(&mut self, socket: &Socket, at: usize, what: WaitFor) -> io::Result<()> {
        if let Wait::Epoll { epoll, .. } = self {
            epoll.modify(socket.as_fd(), &mut EpollEvent::new(what.flags(), at as u64))?;
        }
        Ok(())
    }
}
