//! The privilege to count events: `perf_event_paranoid` and the capabilities of
//! the process (`Documentation/admin-guide/sysctl/kernel.rst`,
//! `perf-security.rst`).

use model::Unavailable;

use crate::parse::field;
use crate::root::{Root, RootError};

pub(crate) const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const STATUS: &str = "/proc/self/status";

/// `CAP_SYS_ADMIN` and `CAP_PERFMON`.
const CAPABILITIES: u64 = 1 << 21 | 1 << 38;

/// What this process may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privilege {
    /// The content of `perf_event_paranoid`.
    pub level: i32,
    /// The process has `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub capable: bool,
}

impl Privilege {
    /// Reads both.
    ///
    /// # Errors
    /// The kernel has no such file: it was built without performance events.
    pub fn of(root: &Root) -> Result<Privilege, Unavailable> {
        let level = root.number(PARANOID).map_err(|error| match error {
            RootError::Missing { path } => Unavailable::new(
                format!("{path} does not exist"),
                "use a kernel with CONFIG_PERF_EVENTS, and mount /proc",
            ),
            other => other.into(),
        })?;
        let status = root.text(STATUS).unwrap_or_default();
        let mask = field(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        Ok(Privilege { level, capable: mask.is_some_and(|mask| mask & CAPABILITIES != 0) })
    }

    /// Whole CPUs, and PMUs outside the cores.
    pub fn whole_cpus(self) -> Result<(), Unavailable> {
        self.up_to(0, "only root may count whole CPUs and units outside the cores")
    }

    /// The kernel's part of the process's own events.
    pub fn kernel_mode(self) -> Result<(), Unavailable> {
        self.up_to(1, "only root may count what happens in the kernel")
    }

    /// The process's own events in user space. Levels above 2 are
    /// distributions' own and forbid all.
    pub fn user_mode(self) -> Result<(), Unavailable> {
        self.up_to(2, "only root may count anything")
    }

    fn up_to(self, level: i32, permitted: &str) -> Result<(), Unavailable> {
        if self.capable || self.level <= level {
            return Ok(());
        }
        Err(Unavailable::new(
            format!("{PARANOID} is {}: {permitted}", self.level),
            format!(
                "run as root, give kvmeter CAP_PERFMON (setcap cap_perfmon+ep), or sysctl \
                 kernel.perf_event_paranoid={level}"
            ),
        ))
    }
}
