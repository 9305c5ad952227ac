/// A reactor's system calls since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that wait for events: `epoll_pwait2`, `io_uring_enter`. The latter
    /// also carry all of the io_uring engine's sends and receives.
    pub waits: u64,
    /// Calls that send, `send`.
    pub sends: u64,
    /// Calls that receive, `recv` and `recvmsg`.
    pub receives: u64,
    /// Polls that found at least one connection ready.
    pub wakeups: u64,
    /// Bytes that the sockets took, encrypted where TLS is used.
    pub bytes_sent: u64,
    /// Bytes that the sockets gave, encrypted where TLS is used.
    pub bytes_received: u64,
}

impl Counters {
    /// All system calls of the hot path together.
    pub fn syscalls(&self) -> u64 {
        self.waits + self.sends + self.receives
    }
}
