//! Why programs cannot be loaded here, and what to do about it.

use std::fs;
use std::io;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Why programs cannot be loaded here. [`BpfError::remedy`] says what helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BpfError {
    /// `capabilities` would suffice, in the form of setcap(8).
    #[error("no privilege to {action}")]
    Privilege { action: &'static str, capabilities: &'static str },
    /// Under lockdown=integrity the programs run; this is the stricter mode.
    #[error("bpf(2) is refused while the kernel is locked down for confidentiality")]
    Lockdown,
    #[error("bpf(2) is refused although the capabilities are there")]
    Forbidden,
    #[error("this kernel has no bpf(2)")]
    NoBpf,
    #[error("this kernel offers no type information: {detail}")]
    NoTypes { detail: String },
    #[error("this kernel has no tracepoint {0}")]
    NoTracepoint(&'static str),
    #[error("in this kernel's types there is no {0}")]
    NoField(String),
    #[error("the kernel rejected a program: {log}")]
    Rejected { log: String },
    #[error("{step} failed: {error}")]
    Kernel { step: &'static str, error: String },
}

impl BpfError {
    /// What helps.
    pub fn remedy(&self) -> String {
        match self {
            BpfError::Privilege { capabilities, .. } => {
                return format!(
                    "run as root or give the program the capabilities: setcap {capabilities}+ep \
                     FILE"
                );
            }
            BpfError::Lockdown => "start the machine without lockdown=confidentiality",
            BpfError::Forbidden => {
                "a container's system call filter or user namespace stands in the way: \
                 run on the host, or start the container privileged"
            }
            BpfError::NoBpf => "use a kernel with CONFIG_BPF_SYSCALL=y, version 5.8 or later",
            BpfError::NoTypes { .. } => {
                "use a kernel with CONFIG_DEBUG_INFO_BTF=y and /sys mounted"
            }
            BpfError::NoTracepoint("sys_enter" | "sys_exit") => {
                "use a kernel with CONFIG_FTRACE_SYSCALLS=y"
            }
            BpfError::NoTracepoint(_) => {
                "use a kernel with CONFIG_TRACEPOINTS=y and what the tracepoint belongs to"
            }
            BpfError::NoField(_) | BpfError::Rejected { .. } => {
                "this is a defect: report it with the kernel's version"
            }
            BpfError::Kernel { .. } => {
                "check the limits on descriptors (ulimit -n) and, before Linux 5.11, \
                 on locked memory (ulimit -l unlimited)"
            }
        }
        .to_owned()
    }
}

/// The reason for the kernel's error in a step of loading.
pub(crate) fn reason_for(step: &'static str, error: &io::Error, log: String) -> BpfError {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => BpfError::NoBpf,
        Some(libc::EPERM | libc::EACCES) if log.is_empty() => {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let lockdown = fs::read_to_string("/sys/kernel/security/lockdown");
            refusal(&status, &lockdown.unwrap_or_default())
        }
        Some(libc::EACCES | libc::EINVAL) if !log.is_empty() => BpfError::Rejected { log },
        _ => BpfError::Kernel { step, error: error.to_string() },
    }
}

/// The reason for the kernel's error in a query about all BPF programs.
pub(crate) fn reason_for_all(action: &'static str, error: &io::Error) -> BpfError {
    match error.raw_os_error() {
        Some(libc::EPERM) => BpfError::Privilege { action, capabilities: "cap_sys_admin" },
        _ => reason_for(action, error, String::new()),
    }
}

/// Why bpf(2) was refused, from `/proc/self/status` and the lockdown file.
fn refusal(status: &str, lockdown: &str) -> BpfError {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective >> capability & 1 == 1;
    if !(has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)) {
        return BpfError::Privilege {
            action: "load BPF programs",
            capabilities: "cap_bpf,cap_perfmon",
        };
    }
    match lockdown.contains("[confidentiality]") {
        true => BpfError::Lockdown,
        false => BpfError::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_names_the_missing_privilege() {
        let status = |mask: &str| format!("Name:\tx\nCapEff:\t{mask}\n");
        let none = status("0000000000000000");
        let both = status("000000c000000000");
        let only_bpf = status("0000008000000000");
        let locked = "none integrity [confidentiality]\n";
        let unlocked = "[none] integrity confidentiality\n";
        for short in [refusal(&none, locked), refusal(&only_bpf, unlocked)] {
            let remedy = short.remedy();
            assert!(remedy.contains("setcap cap_bpf,cap_perfmon+ep"), "{remedy}");
        }
        assert_eq!(refusal(&both, unlocked), BpfError::Forbidden);
        assert_eq!(refusal(&both, ""), BpfError::Forbidden);
        assert_eq!(refusal(&both, locked), BpfError::Lockdown);
    }

    #[test]
    fn kernel_answers_become_reasons_with_a_way_out() {
        let of = |code: i32, log: &str| {
            reason_for("step", &io::Error::from_raw_os_error(code), log.to_owned())
        };
        assert_eq!(of(libc::ENOSYS, ""), BpfError::NoBpf);
        assert_eq!(of(libc::EACCES, "R1 bad"), BpfError::Rejected { log: "R1 bad".to_owned() });
        assert!(matches!(of(libc::EMFILE, ""), BpfError::Kernel { step: "step", .. }));
        let remedy = BpfError::NoBpf.remedy();
        assert!(remedy.contains("CONFIG_BPF_SYSCALL"), "{remedy}");
    }
}
