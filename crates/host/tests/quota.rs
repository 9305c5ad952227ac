//! CPU quotas: of recorded control groups of both versions, and of a real one.

#[cfg(test)]
mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::Recorded;
use host::{Context, PROBES, Probe, ProbeChoice, QuietCheck, Root, Throttled, throttled};
use model::Reading;

fn probe(root: &Root, server_pids: Vec<u32>) -> Box<dyn Probe> {
    let spec = PROBES.iter().find(|spec| spec.name == "quota").expect("it is listed");
    let context = Context { choice: ProbeChoice::Auto, server_pids, ..Context::default() };
    spec.make(root, &context).expect("its groups can be seen")
}

fn value(readings: &[Reading], signal: &str) -> Option<f64> {
    readings.iter().find(|reading| reading.signal == signal).and_then(Reading::value)
}

/// One line of `/proc/self/mountinfo`.
fn mount(root: &str, point: &str, kind: &str, options: &str) -> String {
    format!("30 25 0:26 {root} {point} rw,nosuid - {kind} {kind} {options}\n")
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_quota_of_a_group_above_is_seen_in_version_two() {
    let machine = Recorded::empty();
    let group = "/sys/fs/cgroup/work.slice/bench.service";
    machine.write("/proc/self/cgroup", "0::/work.slice/bench.service\n");
    machine.write("/proc/self/mountinfo", &mount("/", "/sys/fs/cgroup", "cgroup2", "rw"));
    let stat = |periods: u64, throttled: u64, usec: u64| {
        format!(
            "usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {usec}\n"
        )
    };
    // Of the root of version 2 there is no quota, and its cpu.stat has no periods.
    machine.write("/sys/fs/cgroup/cpu.stat", "usage_usec 900\n");
    machine.write("/sys/fs/cgroup/work.slice/cpu.max", "150000 100000\n");
    machine.write("/sys/fs/cgroup/work.slice/cpu.stat", &stat(1000, 10, 5_000));
    machine.write(&format!("{group}/cpu.max"), "max 100000\n");
    machine.write(&format!("{group}/cpu.stat"), &stat(0, 0, 0));
    let mut probe = probe(&machine.root, Vec::new());
    probe.start();
    machine.write("/sys/fs/cgroup/work.slice/cpu.stat", &stat(1100, 35, 1_205_000));
    let readings = probe.stop(SECOND);
    assert_eq!(value(&readings, "quota.throttled"), Some(0.25));
    assert!((value(&readings, "quota.throttled_time").unwrap() - 1.2).abs() < 1e-9);
    let effects = throttled(&readings);
    let [Throttled::Rules(words)] = &effects[..] else { panic!("{effects:?}") };
    assert!(words.contains("25 %") && words.contains("1.5 CPUs"), "{words}");
    assert!(words.contains("/sys/fs/cgroup/work.slice/cpu.max"), "{words}");
}

#[test]
fn a_container_sees_its_own_quota_in_both_versions() {
    // Version 1 without a name space of its own: the path is the host's, and so is the mount's root.
    let one = Recorded::empty();
    one.write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
    let mounted = mount("/docker/abc", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu,cpuacct");
    one.write("/proc/self/mountinfo", &mounted);
    one.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "20000\n");
    one.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    let stat = "/sys/fs/cgroup/cpu/cpu.stat";
    one.write(stat, "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    // Version 2 with one: its group is the top.
    let two = Recorded::empty();
    two.write("/proc/self/cgroup", "0::/\n");
    two.write("/proc/self/mountinfo", &mount("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"));
    two.write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
    two.write("/sys/fs/cgroup/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    let mut probes = [probe(&one.root, Vec::new()), probe(&two.root, Vec::new())];
    probes.iter_mut().for_each(|probe| probe.start());
    one.write(stat, "nr_periods 20\nnr_throttled 1\nthrottled_time 1600000000\n");
    two.write("/sys/fs/cgroup/cpu.stat", "nr_periods 20\nnr_throttled 1\nthrottled_usec 1600000\n");
    for probe in &mut probes {
        let readings = probe.stop(SECOND);
        assert_eq!(value(&readings, "quota.throttled"), Some(0.05));
        assert_eq!(value(&readings, "quota.throttled_time"), Some(1.6));
        let effects = throttled(&readings);
        assert!(
            matches!(&effects[..], [Throttled::Doubt(words)] if words.contains("0.2 CPUs")),
            "{effects:?}"
        );
    }
}

#[test]
fn a_short_look_at_the_machine_sees_a_quota_too() {
    let machine = Recorded::empty();
    machine.write("/proc/self/cgroup", "0::/\n");
    machine.write("/proc/self/mountinfo", &mount("/", "/sys/fs/cgroup", "cgroup2", "rw"));
    machine.write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
    let stat = "/sys/fs/cgroup/cpu.stat";
    machine.write(stat, "nr_periods 5\nnr_throttled 0\nthrottled_usec 0\n");
    let look = QuietCheck::begin(&machine.root);
    machine.write(stat, "nr_periods 15\nnr_throttled 9\nthrottled_usec 700000\n");
    let doubts = look.end().doubts.join("; ");
    assert!(
        doubts.contains("held kvmeter back in 90 %") && doubts.contains("0.2 CPUs"),
        "{doubts}"
    );
}

#[test]
fn without_a_quota_nothing_is_held_back_and_without_groups_nothing_is_known() {
    let machine = Recorded::empty();
    machine.write("/proc/self/cgroup", "0::/\n");
    machine.write("/proc/self/mountinfo", &mount("/", "/sys/fs/cgroup", "cgroup2", "rw"));
    machine.write("/sys/fs/cgroup/cpu.stat", "usage_usec 900\n");
    let mut one = probe(&machine.root, Vec::new());
    one.start();
    let readings = one.stop(SECOND);
    assert_eq!(value(&readings, "quota.throttled"), Some(0.0));
    assert!(readings[0].source.ends_with("no quota ran out"), "{}", readings[0].source);
    assert!(throttled(&readings).is_empty());
    let spec = PROBES.iter().find(|spec| spec.name == "quota").unwrap();
    let context = Context { choice: ProbeChoice::Auto, ..Context::default() };
    assert!(spec.make(&Recorded::empty().root, &context).is_err());
    // A group that lies outside of what a container sees is no group of its top.
    machine.write("/proc/77/cgroup", "0::/../other\n");
    let mut server = probe(&machine.root, vec![77]);
    server.start();
    assert_eq!(value(&server.stop(SECOND), "quota.server.throttled"), None);
}

/// A real control group with a quota, and something in it that never rests; taken away at the end.
struct Real {
    folder: std::path::PathBuf,
    busy: Option<Child>,
}

impl Real {
    fn new() -> Option<Real> {
        let own = format!("kvmeter-test-{}", std::process::id());
        let one = std::path::Path::new("/sys/fs/cgroup/cpu").join(&own);
        let two = std::path::Path::new("/sys/fs/cgroup").join(&own);
        for (folder, quota, text) in
            [(one, "cpu.cfs_quota_us", "20000"), (two, "cpu.max", "20000 100000")]
        {
            // Where no controller is mounted the folder has no such file, or cannot be effects.
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let effects = Real { folder, busy: None };
            let there = effects.folder.join(quota).exists();
            if there && std::fs::write(effects.folder.join(quota), text).is_ok() {
                return Some(effects);
            }
        }
        eprintln!("NOT TESTED: no control group with a CPU quota can be effects; run as root");
        None
    }

    fn run(&mut self) -> u32 {
        let script = "while [ ! -e \"$0\" ]; do sleep 0.01; done; while :; do :; done";
        let go = self.folder.join("cgroup.procs");
        let mut command = Command::new("sh");
        // It waits on a path that is there: the loop begins at once.
        command.args(["-c", script]).arg(&go).stdin(Stdio::null());
        let child = command.spawn().expect("a shell");
        let pid = child.id();
        self.busy = Some(child);
        std::fs::write(go, pid.to_string()).expect("the group takes it");
        pid
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if let Some(mut child) = self.busy.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::remove_dir(&self.folder).is_ok()
        });
        if !gone {
            eprintln!("{} is left behind", self.folder.display());
        }
    }
}

#[test]
fn a_real_quota_is_seen_in_the_window() {
    let Some(mut real) = Real::new() else { return };
    let pid = real.run();
    let mut probe = probe(&Root::live(), vec![pid]);
    probe.start();
    std::thread::sleep(Duration::from_millis(1500));
    let readings = probe.stop(Duration::from_millis(1500));
    let share = value(&readings, "quota.server.throttled").unwrap();
    // A machine that is busy otherwise may give it less than even its quota at times.
    assert!(share > 0.3, "{share}");
    let effects = throttled(&readings);
    let found = effects.iter().any(|one| {
        matches!(one, Throttled::Doubt(words) if words.contains("0.2 CPUs") && words.contains("server"))
    });
    assert!(found, "{effects:?}");
}
