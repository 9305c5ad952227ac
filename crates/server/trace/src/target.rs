//! Facts about a process that tracing needs.

use bpf::BpfError;

use crate::programs::Identity;
use crate::sys;
use crate::unavailable::UnavailableReason;
use model::cpu_list;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Inode of the machine's first process namespace, `PROC_PID_INIT_INO` of Linux.
const INITIAL_NAMESPACE: u64 = 0xeffffffc;
const NAMESPACE: &str = "/proc/self/ns/pid";
/// Fifth byte of a 32-bit ELF file.
const ELF_CLASS_32: u8 = 1;

pub(crate) struct Target {
    pub pid: u32,
    /// Stays valid when its number is reused.
    pub handle: OwnedFd,
    /// Highest number of descriptors that the process may have open.
    pub descriptors: usize,
}

fn denied_or(pid: u32, action: &'static str, error: &io::Error) -> UnavailableReason {
    match error.kind() {
        ErrorKind::PermissionDenied => UnavailableReason::Bpf(BpfError::Privilege {
            action,
            capabilities: "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search",
        }),
        _ => UnavailableReason::NoProcess(pid),
    }
}

fn number_after(text: &str, label: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
    rest.split_whitespace().next()?.parse().ok()
}

impl Target {
    /// Inspects the process of which `pid` is a thread.
    pub fn inspect(pid: u32) -> Result<Target, UnavailableReason> {
        let no_process = |_| UnavailableReason::NoProcess(pid);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(no_process)?;
        let process = number_after(&status, "Tgid:").and_then(|number| number.try_into().ok());
        let pid = process.unwrap_or(pid);
        let handle = sys::open_process(pid).map_err(no_process)?;
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let action = "inspect a process of another user";
        let class = elf_class(&folder).map_err(|error| denied_or(pid, action, &error))?;
        if class == ELF_CLASS_32 {
            return Err(UnavailableReason::ThirtyTwoBit(pid));
        }
        let limits = fs::read_to_string(folder.join("limits"))
            .map_err(|error| denied_or(pid, action, &error))?;
        // The limit that the process may raise itself to comes second.
        let most = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))
            .and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        Ok(Target { pid, handle, descriptors: most.unwrap_or(usize::MAX) })
    }

    /// The descriptors that are sockets now, each with whether the process opened that connection
    /// itself, as far as TCP's table shows.
    pub fn sockets(&self) -> Result<Vec<(usize, bool)>, UnavailableReason> {
        let folder = format!("/proc/{}", self.pid);
        let failed = |error| {
            denied_or(self.pid, "list the descriptors of a process of another user", &error)
        };
        let entries = fs::read_dir(format!("{folder}/fd")).map_err(failed)?;
        let table = |name| fs::read_to_string(format!("{folder}/net/{name}")).unwrap_or_default();
        let outgoing = outgoing(&[table("tcp"), table("tcp6")]);
        Ok(entries
            .flatten()
            .filter_map(|entry| {
                let link = fs::read_link(entry.path()).ok()?;
                let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
                let descriptor = entry.file_name().to_str()?.parse().ok()?;
                Some((descriptor, outgoing.contains(inode)))
            })
            .collect())
    }
}

/// The inodes of the TCP connections without a listener on the local port: outgoing ones. `tables`
/// are `/proc/net/tcp` and `tcp6`.
fn outgoing(tables: &[String]) -> HashSet<String> {
    const LISTENING: &str = "0A";
    let rows: Vec<_> = tables
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|row| {
            let mut fields = row.split_whitespace();
            let (_, port) = fields.nth(1)?.rsplit_once(':')?;
            let state = fields.nth(1)?;
            Some((port, state, fields.nth(5)?))
        })
        .collect();
    let listened: HashSet<&str> =
        rows.iter().filter(|row| row.1 == LISTENING).map(|row| row.0).collect();
    rows.iter().filter(|row| !listened.contains(row.0)).map(|row| row.2.to_owned()).collect()
}

fn elf_class(folder: &Path) -> io::Result<u8> {
    let mut start = [0; 5];
    File::open(folder.join("exe"))?.read_exact(&mut start)?;
    Ok(start[4])
}

/// How the programs recognise process `pid` of the namespace that this process is in.
pub(crate) fn identity(pid: u32) -> Result<Identity, UnavailableReason> {
    let failed = |error: io::Error| BpfError::Kernel {
        step: "reading the process namespace",
        error: error.to_string(),
    };
    let (device, inode) =
        File::open(NAMESPACE).and_then(|namespace| sys::identity_of(&namespace)).map_err(failed)?;
    let tgid = pid as i32;
    Ok(match inode {
        INITIAL_NAMESPACE => Identity::Initial { tgid },
        _ => Identity::Namespaced { tgid, device, inode },
    })
}

/// How many CPUs the machine may ever have.
pub(crate) fn possible_cpus() -> usize {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let highest = cpu_list::parse(&list).and_then(|cpus| cpus.last().copied());
    highest.map_or(usize::MAX, |highest| highest as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_from_an_unbound_port_is_outgoing() {
        let table = "  sl  local_address rem_address   st tx rx tr tm retrnsmt uid timeout inode\n\
            0: 0100007F:2BCB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 100 1\n\
            1: 0100007F:2BCB 0100007F:D431 01 00000000:00000000 00:00000000 00000000 0 0 101 1\n\
            2: 0100007F:9C40 0100007F:18EB 01 00000000:00000000 00:00000000 00000000 0 0 102 1\n\
            damaged\n";
        let found = outgoing(&[table.to_owned(), String::new()]);
        assert_eq!(found, HashSet::from(["102".to_owned()]));
    }

    #[test]
    fn thread_id_selects_its_process() {
        let own = std::process::id();
        let task = fs::read_link("/proc/thread-self").unwrap();
        let thread: u32 = task.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_ne!(thread, own, "tests run in threads of their own");
        assert_eq!(Target::inspect(thread).unwrap().pid, own);
    }

    #[test]
    fn missing_process_is_named() {
        let error = Target::inspect(u32::MAX).err().unwrap();
        assert_eq!(error, UnavailableReason::NoProcess(u32::MAX));
    }
}
