//! What is counted inside the kernel, against what this program did and what the kernel itself
//! counts.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::{BlockOperation, KernelCounts, KernelHistogram, KernelQuantity, ProfiledSide};
use profile::{ProfileError, Profiler, Target};

/// One at a time: some parts are of the whole machine.
static ALONE: Mutex<()> = Mutex::new(());

fn target(pid: u32) -> Target {
    Target { pid, side: ProfiledSide::Server, name: "test".to_owned() }
}

/// What was counted while `work` ran; none where this user may not profile or count.
fn counted(pid: u32, work: impl FnOnce()) -> Option<KernelCounts> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let profiler = match Profiler::start(vec![target(pid)], 99) {
        Ok(profiler) => profiler,
        Err(error @ ProfileError::Privilege { .. }) => {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    work();
    let counts = profiler.stop().unwrap().counts.unwrap();
    for missing in &counts.missing {
        assert!(!missing.reason.contains("rejected"), "{missing:?}");
        eprintln!("SKIPPED: {}: {}", missing.what, missing.reason);
    }
    assert_eq!(counts.lost, 0);
    counts.missing.is_empty().then_some(counts)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < limit, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// This program again, as a process of its own that does what a line says, then waits for the next.
struct Helper {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

const AS_HELPER: &str = "KVMETER_TEST_HELPER";

impl Helper {
    fn start() -> Helper {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "as_helper", "--nocapture", "--test-threads=1"])
            .env(AS_HELPER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut helper = Helper { child, input, output };
        helper.wait_for("ready");
        helper
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended before {word}");
        }
    }

    fn does(&mut self, what: &str) {
        writeln!(self.input, "{what}").unwrap();
        self.wait_for("done");
    }

    /// Its threads' switches away from a CPU so far, when all of them wait for something.
    fn switches(&self) -> u64 {
        let tasks = format!("/proc/{}/task", self.child.id());
        let all = |file: &str| -> Vec<String> {
            let tasks = fs::read_dir(&tasks).unwrap().flatten();
            tasks.map(|task| fs::read_to_string(task.path().join(file)).unwrap()).collect()
        };
        // `State` is "sleeping" before the thread leaves its CPU; `syscall` is "running" until then.
        until("its threads wait", || all("syscall").iter().all(|s| !s.starts_with("running")));
        let count = |status: &String| -> u64 {
            let lines = status.lines().filter(|line| line.contains("ctxt_switches:"));
            lines.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        all("status").iter().map(count).sum()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: what [`Helper`] runs.
#[test]
fn as_helper() {
    if std::env::var_os(AS_HELPER).is_none() {
        return;
    }
    println!("\nready");
    let mut profilers = Vec::new();
    for line in std::io::stdin().lines() {
        match line.unwrap().as_str() {
            "sleep" => (0..200).for_each(|_| thread::sleep(Duration::from_millis(1))),
            _ => profilers.push(Profiler::start(vec![target(std::process::id())], 99)),
        }
        println!("done");
    }
}

fn find(counts: &KernelCounts, quantity: KernelQuantity, subject: &str) -> Option<KernelHistogram> {
    counts.of(quantity).find(|histogram| histogram.subject == subject).cloned()
}

/// One virtual machine's kernel does not trace `sched_switch` where a thread of process 1 leaves its
/// CPU: the wait that ends there is missed, so that one of several attempts must find all. No attempt
/// may find more waits than switches.
#[test]
fn each_switch_to_a_thread_is_one_wait_for_a_cpu() {
    let mut helper = Helper::start();
    let pid = helper.child.id();
    for attempt in 1.. {
        let before = helper.switches();
        let mut after = 0;
        let work = || {
            helper.does("sleep");
            after = helper.switches();
        };
        let Some(counts) = counted(pid, work) else { return };
        let waits = find(&counts, KernelQuantity::RunQueue, "test").unwrap();
        let (found, switches) = (waits.count(), after - before);
        assert!(switches >= 200 && found <= switches, "{found} of {switches}");
        assert_eq!(waits.side, Some(ProfiledSide::Server));
        assert_eq!(counts.of(KernelQuantity::RunQueue).count(), 1);
        if found == switches {
            return;
        }
        assert!(attempt < 20, "{found} of {switches} switches, and never all");
    }
}

fn thread_cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn threads_that_share_a_cpu_wait_for_each_other() {
    if Command::new("taskset").arg("--version").output().is_err() {
        eprintln!("SKIPPED: taskset is not installed");
        return;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpu = allowed.unwrap().trim().split([',', '-']).next().unwrap().to_owned();
    let mut waited = Duration::ZERO;
    let spins = |barrier: &std::sync::Barrier| {
        let thread = fs::read_link("/proc/thread-self").unwrap();
        let thread = thread.file_name().unwrap().to_str().unwrap().to_owned();
        let pinned = Command::new("taskset").args(["-pc", &cpu, &thread]).output().unwrap();
        assert!(pinned.status.success(), "{pinned:?}");
        barrier.wait();
        let (begun, ran) = (Instant::now(), thread_cpu_time());
        let mut sum = 0u64;
        while thread_cpu_time() - ran < Duration::from_millis(150) {
            sum = std::hint::black_box((0..100_000u64).fold(sum, u64::wrapping_add));
        }
        begun.elapsed().saturating_sub(thread_cpu_time() - ran)
    };
    // Not of the thread that starts the profiler, which is left out with those that it starts.
    let mut work = || {
        let barrier = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            let other = scope.spawn(|| spins(&barrier));
            waited = spins(&barrier);
            waited += other.join().unwrap();
        });
    };
    let begins = std::sync::Barrier::new(2);
    let counts = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            begins.wait();
            work();
        });
        counted(std::process::id(), || {
            begins.wait();
            worker.join().unwrap();
        })
    });
    let Some(counts) = counts else { return };
    let waits = find(&counts, KernelQuantity::RunQueue, "test").unwrap();
    let found = Duration::from_nanos(waits.sum());
    // Each had to run 150 ms on one CPU.
    assert!(waited >= Duration::from_millis(100), "{waited:?}");
    assert!(found > waited / 2 && found < waited * 2, "{found:?} of {waited:?}: {waits:?}");
}

#[repr(align(4096))]
struct Aligned([u8; 16384]);

/// A file as a block device.
struct LoopDevice {
    name: String,
    _file: tempfile::NamedTempFile,
}

impl LoopDevice {
    fn create() -> Result<LoopDevice, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(16 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file.path()).output();
        let made = made.map_err(|error| format!("losetup: {error}"))?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let path = String::from_utf8(made.stdout).unwrap();
        let name = Path::new(path.trim()).file_name().unwrap().to_str().unwrap().to_owned();
        Ok(LoopDevice { name, _file: file })
    }

    fn open(&self) -> File {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(libc::O_DIRECT);
        options.open(format!("/dev/{}", self.name)).unwrap()
    }

    /// Requests and bytes of reads and of writes, and flushes, as the kernel counts them.
    fn stat(&self) -> [u64; 5] {
        let path = format!("/sys/block/{}/stat", self.name);
        let read = || -> Vec<u64> {
            let stat = fs::read_to_string(&path).unwrap();
            stat.split_whitespace().map(|n| n.parse().unwrap()).collect()
        };
        // The kernel wakes the thread that waits for a request before it counts the request here.
        until("no request is in flight", || read()[8] == 0);
        let stat = read();
        [stat[0], stat[2] * 512, stat[4], stat[6] * 512, stat[15]]
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.name)]).status();
    }
}

#[test]
fn each_request_to_a_block_device_is_counted_with_its_size() {
    let device = match LoopDevice::create() {
        Ok(device) => device,
        Err(why) => {
            eprintln!("SKIPPED: no loop device: {why}");
            return;
        }
    };
    let file = device.open();
    let mut stats = [[0; 5]; 2];
    let mut elapsed = Duration::ZERO;
    let mut buffer = Box::new(Aligned([7; 16384]));
    let counts = counted(std::process::id(), || {
        stats[0] = device.stat();
        let begun = Instant::now();
        for nth in 0..50 {
            file.write_all_at(&buffer.0, nth * 16384).unwrap();
        }
        file.sync_all().unwrap();
        for nth in 0..100 {
            file.read_exact_at(&mut buffer.0[..4096], nth * 4096).unwrap();
        }
        elapsed = begun.elapsed();
        stats[1] = device.stat();
    });
    let Some(counts) = counts else { return };
    let of = |quantity, operation| {
        let is = |h: &&KernelHistogram| h.subject == device.name && h.operation == Some(operation);
        counts.of(quantity).find(is).map_or((0, 0, 0), |h| {
            (h.count(), h.sum(), h.buckets.iter().map(|bucket| bucket.low).max().unwrap())
        })
    };
    let (read, write) = (BlockOperation::Read, BlockOperation::Write);
    // Others may read what is new, such as a service that looks for file systems.
    let stat: Vec<u64> = stats[1].iter().zip(&stats[0]).map(|(b, a)| b - a).collect();
    let [reads, writes] = [read, write].map(|operation| of(KernelQuantity::BlockSize, operation));
    let flushes = of(KernelQuantity::BlockLatency, BlockOperation::Flush);
    // The kernel counts what a flush came with, an empty write, as a write too.
    let seen = [reads.0, reads.1, writes.0 + flushes.0, writes.1];
    assert_eq!(seen, stat[..4], "{counts:?}");
    assert!(reads.0 >= 100 && writes == (50, 50 * 16384, 16384), "{reads:?} {writes:?}");
    assert!(flushes.0 >= 1 && flushes.0 == stat[4], "{flushes:?} {stat:?}");
    assert_eq!(of(KernelQuantity::BlockSize, BlockOperation::Flush).0, 0);
    let mut took = 0;
    for operation in [read, write] {
        let [latency, wait] = [KernelQuantity::BlockLatency, KernelQuantity::BlockWait]
            .map(|quantity| of(quantity, operation));
        assert_eq!(latency.0, of(KernelQuantity::BlockSize, operation).0);
        assert_eq!(wait.0, latency.0, "each request waits once: {counts:?}");
        assert!(latency.1 > 0 && wait.1 > 0, "{counts:?}");
        took += latency.1 + wait.1;
    }
    // These requests did not overlap. Another program may have read meanwhile, as udev does.
    let of_others = reads.0 - 100;
    assert!(of_others > 0 || u128::from(took) <= elapsed.as_nanos(), "{took} ns of {elapsed:?}");
}

/// Softirqs since the machine started, by kind.
fn softirqs() -> BTreeMap<String, u64> {
    let table = fs::read_to_string("/proc/softirqs").unwrap();
    let row = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts = counts.split_whitespace().map(|n| n.parse::<u64>().unwrap());
        Some((name.trim().to_owned(), counts.sum()))
    };
    table.lines().filter_map(row).collect()
}

#[test]
fn softirqs_are_as_many_as_the_kernel_counts() {
    let before = softirqs();
    let mut within = [BTreeMap::new(), BTreeMap::new()];
    let counts = counted(std::process::id(), || {
        within[0] = softirqs();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..500 {
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
            socket.recv(&mut [0]).unwrap();
        }
        within[1] = softirqs();
    });
    let (Some(counts), after) = (counts, softirqs()) else { return };
    for (kind, first) in &before {
        let found = find(&counts, KernelQuantity::Softirq, kind).map_or(0, |h| h.count());
        let (least, most) = (within[1][kind] - within[0][kind], after[kind] - first);
        // One may be under way at either end.
        let slack = thread::available_parallelism().unwrap().get() as u64;
        assert!(least <= found + slack && found <= most + slack, "{kind}: {least} {found} {most}");
    }
    assert!(within[1]["NET_RX"] - within[0]["NET_RX"] >= 1);
}

#[test]
fn nothing_stays_in_the_kernel_after_a_kill() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = || -> Result<BTreeSet<u32>, bpf::BpfError> {
        let all = bpf::list_programs()?.into_iter();
        Ok(all.filter(|(_, name)| name.starts_with("kvmeter_")).map(|(id, _)| id).collect())
    };
    let before = match ids() {
        Ok(ids) => ids,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
    let mut helper = Helper::start();
    helper.does("profile");
    let new: BTreeSet<u32> = ids().unwrap().difference(&before).copied().collect();
    assert!(new.len() >= 7, "{new:?}");
    helper.child.kill().unwrap();
    until("its programs go", || ids().unwrap().is_disjoint(&new));
}
