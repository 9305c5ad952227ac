use std::collections::BTreeMap;
use std::time::Instant;

use host::{Root, RootError};
use model::Unavailable;

use nix::time::clock_getcpuclockid;
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::process::Process;
use super::stat::{Stat, field, on_cpu_ns};

/// Resource usage of a process since its start, at one instant.
#[derive(Debug, Clone)]
pub struct Usage {
    pub at: Instant,
    pub(super) pid: u32,
    pub(super) started: u64,
    /// CPU time of all its threads, ended ones included; nanoseconds.
    pub cpu_ns: Result<u64, Unavailable>,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// Clock ticks a second.
    pub tick_rate: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub thread_count: u64,
    pub resident_bytes: Result<u64, Unavailable>,
    /// As `/proc/PID/io` counts them: `read` and its kin, not `recvmsg` and its kin.
    pub read_calls: Result<u64, Unavailable>,
    /// As `/proc/PID/io` counts them: `write` and its kin, not `sendmsg` and its kin.
    pub write_calls: Result<u64, Unavailable>,
    /// Bytes that it caused to be fetched from storage.
    pub read_bytes: Result<u64, Unavailable>,
    /// Bytes that it caused to be sent to storage: dirty pages count when they are made.
    pub written_bytes: Result<u64, Unavailable>,
    /// The threads that live, by number.
    pub threads: BTreeMap<u32, ThreadUsage>,
}

/// Resource usage of one thread since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUsage {
    pub name: String,
    /// Clock ticks after the machine's start; with its number it names a thread.
    pub started: u64,
    /// Nanoseconds on a CPU; up to a scheduler tick old while it runs.
    pub on_cpu_ns: Result<u64, Unavailable>,
    pub voluntary_switches: Result<u64, Unavailable>,
    pub involuntary_switches: Result<u64, Unavailable>,
}

impl Process {
    /// Its usage until now; takes some 35 us of CPU time for each thread.
    ///
    /// # Errors
    /// It has ended. Single unavailable figures are marked in the snapshot.
    pub fn usage(&self) -> Result<Usage, Unavailable> {
        let (root, pid) = (&self.root, self.pid());
        let threads = threads(root, pid)?;
        let io = file(root, format!("/proc/{pid}/io"));
        let status = file(root, format!("/proc/{pid}/status"));
        // Last, so that the totals are of one instant, and of a process that still runs.
        let cpu_ns = cpu_ns(root, pid);
        let at = Instant::now();
        let stat = self.stat()?;
        Ok(Usage {
            at,
            pid,
            started: stat.started,
            cpu_ns,
            user_ticks: stat.user_ticks,
            system_ticks: stat.system_ticks,
            tick_rate: tick_rate(),
            minor_faults: stat.minor_faults,
            major_faults: stat.major_faults,
            thread_count: stat.threads,
            resident_bytes: number(&status, "VmRSS").map(|kib| kib * 1024),
            read_calls: number(&io, "syscr"),
            write_calls: number(&io, "syscw"),
            read_bytes: number(&io, "read_bytes"),
            written_bytes: number(&io, "write_bytes"),
            threads,
        })
    }
}

type File = Result<(String, String), Unavailable>;

fn file(root: &Root, path: String) -> File {
    let text = root.text(&path)?;
    Ok((path, text))
}

fn number(file: &File, name: &str) -> Result<u64, Unavailable> {
    let (path, text) = file.as_ref().map_err(Unavailable::clone)?;
    field(path, text, name)
}

/// The CPU clock of the process: the scheduler's own sum, to the nanosecond.
fn cpu_ns(root: &Root, pid: u32) -> Result<u64, Unavailable> {
    if !root.is_live() {
        let reason = "the process CPU clock is the running machine's, and this root is recorded";
        return Err(Unavailable::new(reason, "read the machine itself, through the root `/`"));
    }
    let now = clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).and_then(|clock| clock.now());
    let now = now.map_err(|error| {
        let reason = format!("the CPU clock of process {pid} cannot be read: {}", error.desc());
        Unavailable::new(reason, "allow clock_gettime in the sandbox")
    })?;
    let seconds = now.tv_sec().cast_unsigned();
    Ok(seconds * 1_000_000_000 + now.tv_nsec().cast_unsigned())
}

fn tick_rate() -> u64 {
    let rate = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    // 100 on every architecture but Alpha.
    rate.and_then(|rate| u64::try_from(rate).ok()).filter(|rate| *rate > 0).unwrap_or(100)
}

fn threads(root: &Root, pid: u32) -> Result<BTreeMap<u32, ThreadUsage>, Unavailable> {
    let folder = format!("/proc/{pid}/task");
    let numbers = root.numbers(&folder).map_err(|error| match error {
        RootError::Missing { .. } => Unavailable::new(
            format!("process {pid} has ended"),
            "see the last output of the server",
        ),
        other => other.into(),
    })?;
    let read = |number: u32| {
        let path = |name: &str| format!("{folder}/{number}/{name}");
        // The thread may have ended since the folder was read.
        let (path_of_stat, text) = file(root, path("stat")).ok()?;
        let stat = Stat::parse(&path_of_stat, &text).ok()?;
        let status = file(root, path("status"));
        let on_cpu_ns = match file(root, path("schedstat")) {
            Ok((path, text)) => on_cpu_ns(&path, &text),
            Err(why) => Err(why),
        };
        let thread = ThreadUsage {
            name: stat.name,
            started: stat.started,
            on_cpu_ns,
            voluntary_switches: self::number(&status, "voluntary_ctxt_switches"),
            involuntary_switches: self::number(&status, "nonvoluntary_ctxt_switches"),
        };
        Some((number, thread))
    };
    Ok(numbers.into_iter().filter_map(read).collect())
}
