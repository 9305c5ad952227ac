use host::{Root, RootError};
use model::{Address, Unavailable};

use super::listener;
use super::stat::Stat;

/// One process, identified by pid and start time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub(super) root: Root,
    pid: u32,
    started: u64,
    name: String,
}

impl Process {
    /// The process of this number on the running machine.
    ///
    /// # Errors
    /// There is none, or it has ended.
    pub fn of(pid: u32) -> Result<Self, Unavailable> {
        Self::of_in(&Root::live(), pid)
    }

    /// The process of this number.
    ///
    /// # Errors
    /// As [`Process::of`].
    pub fn of_in(root: &Root, pid: u32) -> Result<Self, Unavailable> {
        let stat = stat(root, pid)?;
        Ok(Process { root: root.clone(), pid, started: stat.started, name: stat.name })
    }

    /// The process that listens at an address of the running machine.
    ///
    /// # Errors
    /// The address is another machine's or network namespace's, nothing listens there, several
    /// processes do, or this user may not see the owner of the socket.
    pub fn listening_at(address: &Address) -> Result<Self, Unavailable> {
        Self::listening_at_in(&Root::live(), address)
    }

    /// The process that listens at an address.
    ///
    /// # Errors
    /// As [`Process::listening_at`].
    pub fn listening_at_in(root: &Root, address: &Address) -> Result<Self, Unavailable> {
        Self::of_in(root, listener::pid(root, address)?)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// As the kernel calls it, at most 15 bytes: `memcached`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it still runs.
    pub fn exists(&self) -> bool {
        self.stat().is_ok()
    }

    /// Its `stat`, if it is still the same process.
    pub(super) fn stat(&self) -> Result<Stat, Unavailable> {
        let now = stat(&self.root, self.pid)?;
        match now.started == self.started {
            true => Ok(now),
            false => Err(ended(self.pid)),
        }
    }
}

fn stat(root: &Root, pid: u32) -> Result<Stat, Unavailable> {
    let path = format!("/proc/{pid}/stat");
    let text = root.text(&path).map_err(|error| match error {
        RootError::Missing { .. } => ended(pid),
        other => other.into(),
    })?;
    let stat = Stat::parse(&path, &text)?;
    match stat.is_ended() {
        true => Err(ended(pid)),
        false => Ok(stat),
    }
}

fn ended(pid: u32) -> Unavailable {
    Unavailable::new(
        format!("there is no process {pid}, or it has ended"),
        "see the last output of the server",
    )
}
