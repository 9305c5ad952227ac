//! Architecture-specific offsets in `struct pt_regs` and system call numbers.

/// The role of a system call in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// brings bytes from any kind of file: only sockets are of interest
    Read,
    /// brings bytes from a socket
    Receive,
    /// sends bytes
    Write,
    /// gives a new connection
    Accept,
    /// makes the process the client of another server
    Connect,
    Close,
    /// sleeps until connections are ready
    Wait,
}

/// A system call that the programs look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub name: &'static str,
    pub number: i32,
    pub role: Role,
}

/// Offsets in `struct pt_regs`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    /// The first argument as it was at the entry, still there at the exit.
    pub first_argument: i16,
    /// The second argument, likewise.
    pub second_argument: i16,
    /// The number of the call.
    pub number: i16,
    pub number_is_word: bool,
}

/// `arch/x86/include/asm/ptrace.h`: `di`, `si`, `orig_ax`.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: Option<Registers> = Some(Registers {
    first_argument: 112,
    second_argument: 104,
    number: 120,
    number_is_word: false,
});

/// `arch/arm64/include/asm/ptrace.h`: `orig_x0` (x0 itself holds the result at the exit),
/// x1, `syscallno`. Untested on such a machine.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: Option<Registers> =
    Some(Registers { first_argument: 272, second_argument: 8, number: 280, number_is_word: true });

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const REGISTERS: Option<Registers> = None;

macro_rules! calls {
    ($($name:ident = $role:ident),* $(,)?) => {
        [$(Call {
            name: stringify!($name).split_at(4).1,
            number: libc::$name as i32,
            role: Role::$role,
        }),*]
    };
}

/// The calls in the order in which the programs compare them: the frequent first.
pub(crate) const CALLS: &[Call] = &calls![
    SYS_read = Read,
    SYS_sendmsg = Write,
    SYS_write = Write,
    SYS_recvfrom = Receive,
    SYS_sendto = Write,
    SYS_recvmsg = Receive,
    SYS_writev = Write,
    SYS_readv = Read,
    SYS_sendmmsg = Write,
    SYS_recvmmsg = Receive,
    SYS_epoll_pwait = Wait,
    SYS_epoll_pwait2 = Wait,
    SYS_ppoll = Wait,
    SYS_pselect6 = Wait,
    SYS_accept = Accept,
    SYS_accept4 = Accept,
    SYS_connect = Connect,
    SYS_close = Close,
];

/// Calls that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
pub(crate) const OLD_CALLS: &[Call] =
    &calls![SYS_epoll_wait = Wait, SYS_poll = Wait, SYS_select = Wait];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OLD_CALLS: &[Call] = &[];

/// The calls with one of `roles`.
pub(crate) fn calls_of(roles: &[Role]) -> impl Iterator<Item = Call> + '_ {
    OLD_CALLS.iter().chain(CALLS).copied().filter(|call| roles.contains(&call.role))
}

/// The name of a traced system call by its number on this architecture; `None` for all others.
pub fn name_of(number: usize) -> Option<&'static str> {
    OLD_CALLS
        .iter()
        .chain(CALLS)
        .find(|call| usize::try_from(call.number) == Ok(number))
        .map(|call| call.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_calls() {
        assert_eq!(name_of(libc::SYS_recvfrom as usize), Some("recvfrom"));
        assert_eq!(name_of(libc::SYS_getpid as usize), None);
    }
}
