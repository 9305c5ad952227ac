//! Parsing of recorded machines, written by hand after `proc(5)` with arbitrary numbers.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use host::Root;
use model::Address;
use model::signal::RUN_SIGNALS;
use server::watch::{Process, UsageDelta};
use tempfile::TempDir;

/// `(thread, user and system ticks, ns on a CPU, voluntary and other switches)`
type Thread = (u32, u64, u64, u64, u64);

struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/net")).unwrap();
        Machine { dir }
    }

    fn root(&self) -> Root {
        Root::at(self.dir.path())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn stat(number: u32, parent: u32, ticks: u64, threads: usize, started: u64) -> String {
        format!(
            "{number} (ser) ver) S {parent} 1 1 0 -1 4194560 {ticks} 0 3 0 {ticks} {ticks} 0 0 20 0 \
             {threads} 0 {started} 1000 50"
        )
    }

    /// Process 40, whose total ticks are given, and these threads.
    fn process(&self, ticks: u64, started: u64, threads: &[Thread]) {
        let _ = fs::remove_dir_all(self.dir.path().join("proc/40"));
        self.write("proc/40/stat", &Self::stat(40, 1, ticks, threads.len(), started));
        self.write("proc/40/status", "Name:\tserver\nVmRSS:\t    2048 kB\n");
        let (calls, written) = (ticks * 10, ticks * 4096);
        let io = format!(
            "rchar: 1\nsyscr: {calls}\nsyscw: 7\nread_bytes: 512\nwrite_bytes: {written}\n"
        );
        self.write("proc/40/io", &io);
        for (number, ticks, on_cpu, voluntary, other) in threads {
            let at = format!("proc/40/task/{number}");
            self.write(&format!("{at}/stat"), &Self::stat(*number, 1, *ticks, 1, started));
            self.write(&format!("{at}/schedstat"), &format!("{on_cpu} 5 9\n"));
            let status = format!(
                "Name:\tserver\nvoluntary_ctxt_switches:\t{voluntary}\n\
                 nonvoluntary_ctxt_switches:\t{other}\n"
            );
            self.write(&format!("{at}/status"), &status);
        }
    }

    fn holds(&self, pid: u32, parent: u32, fd: u32, inode: u64) {
        self.write(&format!("proc/{pid}/stat"), &Self::stat(pid, parent, 1, 1, u64::from(pid)));
        let folder = self.dir.path().join(format!("proc/{pid}/fd"));
        fs::create_dir_all(&folder).unwrap();
        symlink(format!("socket:[{inode}]"), folder.join(fd.to_string())).unwrap();
    }

    fn pid_at(&self, address: &str) -> Result<u32, String> {
        let address = Address::parse(address, 1).unwrap();
        Process::listening_at_in(&self.root(), &address)
            .map(|process| process.pid())
            .map_err(|error| error.to_string())
    }
}

fn source<'a>(used: &'a UsageDelta, name: &str) -> &'a str {
    &used.figures.iter().find(|figure| figure.name == name).unwrap().source
}

#[test]
fn differences_are_sums_over_the_threads() {
    let machine = Machine::new();
    machine.process(100, 7, &[(40, 10, 1_000_000_000, 5, 1), (41, 10, 2_000_000_000, 50, 2)]);
    let process = Process::of_in(&machine.root(), 40).unwrap();
    assert_eq!(process.name(), "ser) ver");
    let before = process.usage().unwrap();
    // Thread 42 is new: all of its usage belongs to the window.
    machine.process(
        150,
        7,
        &[
            (40, 10, 1_500_000_000, 6, 1),
            (41, 10, 2_250_000_000, 70, 5),
            (42, 10, 250_000_000, 9, 9),
        ],
    );
    let used = process.usage().unwrap().since(&before).unwrap();
    let catalogued = RUN_SIGNALS.iter().map(|signal| signal.name);
    let catalogued = catalogued.skip_while(|name| *name != "server.cpu").take(13);
    assert!(used.figures.iter().map(|figure| figure.name).eq(catalogued));
    assert_eq!(used.value("server.cpu"), Some(1.0));
    assert!(source(&used, "server.cpu").contains("schedstat"));
    let ticks = before.tick_rate as f64;
    assert_eq!(used.value("server.cpu.user"), Some(50.0 / ticks));
    assert_eq!(used.value("server.cpu.system"), Some(50.0 / ticks));
    assert_eq!(used.value("server.switches.voluntary"), Some(30.0));
    assert_eq!(used.value("server.switches.involuntary"), Some(12.0));
    assert_eq!(used.value("server.faults.minor"), Some(50.0));
    assert_eq!(used.value("server.faults.major"), Some(0.0));
    assert_eq!(used.value("server.calls.read"), Some(500.0));
    assert_eq!(used.value("server.calls.write"), Some(0.0));
    assert_eq!(used.value("server.io.read"), Some(0.0));
    assert_eq!(used.value("server.io.written"), Some(50.0 * 4096.0));
    assert_eq!(used.value("server.memory.resident"), Some(2_097_152.0));
    assert_eq!(used.value("server.threads"), Some(3.0));
    assert_eq!((used.threads_started, used.threads_ended), (1, 0));
    let order: Vec<u32> = used.threads.iter().map(|thread| thread.number).collect();
    assert_eq!(order[0], 40);
    assert_eq!(used.threads[0].cpu_s, Ok(0.5));
}

#[test]
fn ended_threads_count_only_in_ticks() {
    let machine = Machine::new();
    machine.process(100, 7, &[(40, 10, 1_000_000_000, 5, 1), (41, 10, 2_000_000_000, 50, 2)]);
    let process = Process::of_in(&machine.root(), 40).unwrap();
    let before = process.usage().unwrap();
    machine.process(150, 7, &[(40, 10, 1_500_000_000, 6, 1)]);
    let used = process.usage().unwrap().since(&before).unwrap();
    assert_eq!(used.threads_ended, 1);
    assert_eq!(used.value("server.cpu"), Some(100.0 / before.tick_rate as f64));
    assert!(source(&used, "server.cpu").contains("utime + stime"));
    assert_eq!(used.value("server.switches.voluntary"), None);
    assert_eq!(used.value("server.calls.read"), Some(500.0));
}

#[test]
fn missing_files_make_single_figures_unavailable() {
    let machine = Machine::new();
    machine.process(100, 7, &[(40, 10, 1, 5, 1)]);
    fs::remove_file(machine.dir.path().join("proc/40/io")).unwrap();
    fs::remove_file(machine.dir.path().join("proc/40/task/40/schedstat")).unwrap();
    let process = Process::of_in(&machine.root(), 40).unwrap();
    let before = process.usage().unwrap();
    let used = process.usage().unwrap().since(&before).unwrap();
    assert_eq!(used.value("server.calls.read"), None);
    assert_eq!(used.value("server.cpu"), Some(0.0));
    assert!(source(&used, "server.cpu").contains("utime + stime"));
    assert_eq!(used.value("server.switches.voluntary"), Some(0.0));
}

#[test]
fn detects_a_reused_pid() {
    let machine = Machine::new();
    machine.process(100, 7, &[(40, 10, 1, 5, 1)]);
    let process = Process::of_in(&machine.root(), 40).unwrap();
    let before = process.usage().unwrap();
    machine.process(1, 8, &[(40, 1, 1, 1, 1)]);
    assert!(process.usage().unwrap_err().reason.contains("has ended"));
    let other = Process::of_in(&machine.root(), 40).unwrap();
    assert!(other.usage().unwrap().since(&before).is_err());
}

/// A table of listening sockets: address and port in hexadecimal, inode.
fn table(sockets: &[(&str, u64)]) -> String {
    let mut text =
        "  sl  local_address rem_address   st tx rx tr tm->when retrnsmt uid\n".to_owned();
    for (at, (local, inode)) in sockets.iter().enumerate() {
        text += &format!(
            "   {at}: {local} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        \
             0 {inode} 1 f 100 0 0 10 0\n"
        );
    }
    text
}

// The words of the table are in the machine's byte order; these are of a little-endian one.
#[cfg(target_endian = "little")]
#[test]
fn prefers_the_listener_of_the_exact_address() {
    let machine = Machine::new();
    machine.write("proc/net/tcp", &table(&[("00000000:2BCB", 1), ("0100007F:2BCB", 2)]));
    machine.write("proc/net/tcp6", &table(&[("00000000000000000000000000000000:2BCC", 3)]));
    machine.write("proc/self/stat", "not a process");
    machine.holds(10, 1, 3, 1);
    machine.holds(11, 1, 4, 2);
    machine.holds(12, 1, 5, 3);
    // A child that inherited the socket of its parent, and one that has nothing to do with it.
    machine.holds(13, 12, 5, 3);
    machine.holds(14, 1, 5, 99);
    assert_eq!(machine.pid_at("127.0.0.1:11211"), Ok(11));
    assert_eq!(machine.pid_at("10.1.2.3:11211"), Ok(10));
    assert_eq!(machine.pid_at("127.0.0.1:11212"), Ok(12));
    assert_eq!(machine.pid_at("[::1]:11212"), Ok(12));
    assert!(machine.pid_at("[::1]:11211").unwrap_err().contains("nothing listens"));
    // Two that share the port.
    machine.holds(15, 1, 5, 2);
    let several = machine.pid_at("127.0.0.1:11211").unwrap_err();
    assert!(several.contains("[11, 15]"), "{several}");
    // A socket that no process here holds.
    fs::remove_dir_all(machine.dir.path().join("proc/10")).unwrap();
    let hidden = machine.pid_at("10.1.2.3:11211").unwrap_err();
    assert!(hidden.contains("opened by user 1000") && hidden.contains("pid namespace"), "{hidden}");
}

#[test]
fn reports_a_machine_without_proc() {
    let root = Root::at(Path::new("/no/such/folder"));
    assert!(Process::of_in(&root, 1).is_err());
    let error = Process::listening_at_in(&root, &Address::Unix("/x".into())).unwrap_err();
    assert!(error.to_string().contains("/proc/net/unix does not exist"), "{error}");
}
