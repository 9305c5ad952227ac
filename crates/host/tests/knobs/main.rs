//! Every knob on recorded machines: planned, turned, proven where a test plays the kernel, and
//! put back.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod interrupts;
mod journal;
mod power;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::Recorded;
use host::Root;
use host::knob::{
    Journal, KNOBS, KnobError, KnobPlan, KnobTarget, Knobs, ProofOutcome, RestoreAction,
    RestoreOutcome, TurnedKnobs, status, trust_register,
};

const CPUS: &str = "/sys/devices/system/cpu";
const PORTS: [&str; 2] = ["0000:17:00.0", "0000:85:02.0"];

/// The Xeon with its registers, and a folder for its journal.
fn xeon() -> (Recorded, tempfile::TempDir) {
    let machine = Recorded::named("xeon-4114");
    machine.add("xeon-4114.knobs");
    for cpu in [0, 1] {
        let mut registers = vec![0u8; 0x1000];
        registers[0x620..0x628].copy_from_slice(&0x0c18u64.to_le_bytes());
        registers[0xc8b..0xc93].copy_from_slice(&0x600u64.to_le_bytes());
        machine.write(&format!("/dev/cpu/{cpu}/msr"), "");
        fs::write(machine.path(&format!("/dev/cpu/{cpu}/msr")), registers).unwrap();
    }
    for port in PORTS {
        let mut config = vec![0u8; 4096];
        config[0x180..0x184].copy_from_slice(&0x0010_0094u32.to_le_bytes());
        fs::write(machine.path(&format!("/sys/bus/pci/devices/{port}/config")), config).unwrap();
    }
    machine.write("/dev/cpu_dma_latency", "");
    (machine, state())
}

fn recorded(name: &str) -> (Recorded, tempfile::TempDir) {
    let machine = Recorded::named(name);
    machine.write("/proc/sys/kernel/random/boot_id", "boot-one\n");
    (machine, state())
}

fn plan(root: &Root, levels: &[(&str, &str)]) -> KnobPlan {
    Knobs::plan(root, levels).unwrap_or_else(|error| panic!("{levels:?}: {error}"))
}

#[track_caller]
fn refused(root: &Root, levels: &[(&str, &str)], words: &[&str]) {
    let error = Knobs::plan(root, levels).err().expect("a refusal");
    assert!(error.is_request(), "{error:?}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} has no `{word}`");
    }
}

fn turn(machine: &Recorded, folder: &Path, levels: &[(&str, &str)]) -> TurnedKnobs {
    let journal = Journal::open(&machine.root, folder).unwrap();
    plan(&machine.root, levels).apply(journal).unwrap()
}

/// Every file of a machine, as the kernel would answer it: without the white space around its
/// text, and of a choice the word that is chosen.
#[derive(Clone)]
struct Snapshot(BTreeMap<String, Vec<u8>>);

impl Snapshot {
    /// The files that differ.
    fn changed(&self, other: &Snapshot) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let differs = |name: &&&String| self.0.get(**name) != other.0.get(**name);
        names.iter().filter(differs).map(|name| (**name).clone()).collect()
    }
}

fn snapshot(machine: &Recorded) -> Snapshot {
    fn walk(at: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), files);
                continue;
            }
            if entry.file_type().unwrap().is_symlink() {
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            let text = bytes.trim_ascii();
            let inside = text.split(|byte| *byte == b'[').nth(1);
            let chosen = inside.and_then(|rest| rest.split(|byte| *byte == b']').next());
            files.insert(entry.path().display().to_string(), chosen.unwrap_or(text).to_vec());
        }
    }
    let mut files = BTreeMap::new();
    walk(&machine.path("/"), &mut files);
    Snapshot(files)
}

#[track_caller]
fn assert_as_before(machine: &Recorded, before: &Snapshot) {
    assert_eq!(snapshot(machine).changed(before), [""; 0]);
}

/// A folder for a journal, in memory: the tests wait for many writes to be on the disk.
fn state() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn bytes<const N: usize>(machine: &Recorded, path: &str, at: usize) -> [u8; N] {
    fs::read(machine.path(path)).unwrap()[at..at + N].try_into().unwrap()
}

/// The conformance test: a new knob passes it or is not one.
#[test]
fn every_knob_passes_the_conformance_test() {
    let mut names = BTreeSet::new();
    let mut turned = BTreeSet::new();
    for knob in KNOBS {
        let about = knob.info();
        assert!(names.insert(about.name), "two knobs are called {}", about.name);
        for text in [about.what, about.mechanism, about.scope, about.proof] {
            assert!(text.len() > 5, "{about:?}");
        }
    }
    let machines = [
        xeon(),
        recorded("epyc"),
        recorded("neoverse"),
        recorded("hybrid"),
        recorded("xeon"),
        recorded("vm"),
        recorded("arm"),
    ];
    for (machine, folder) in &machines {
        let root = &machine.root;
        for knob in KNOBS {
            let name = knob.info().name;
            let levels = match knob.levels(root) {
                Ok(levels) => levels,
                Err(why) => {
                    assert!(why.reason.len() > 10 && why.remedy.len() > 3, "{name}: {why}");
                    assert!(knob.plan(root, "on").is_err(), "{name} is turned without levels");
                    continue;
                }
            };
            refused(root, &[(name, "no such level")], &[name]);
            let levels: Vec<&String> = levels.iter().filter(|level| !level.contains(' ')).collect();
            for (at, level) in levels.iter().enumerate() {
                // Of a long row of numbers the ends are enough.
                if levels.len() > 9 && (2..levels.len() - 1).contains(&at) {
                    continue;
                }
                // A recorded machine has no processes that could be in a group.
                let grouped = format!("{level}@0");
                let level = if ["cat", "mba"].contains(&name) { &grouped } else { *level };
                let before = snapshot(machine);
                let plan = plan(root, &[(name, level)]);
                assert_as_before(machine, &before);
                for (_, _, write) in plan.writes() {
                    let known =
                        matches!(write.after, RestoreAction::Restored | RestoreAction::Kept);
                    assert_eq!(write.old.is_some(), known, "{write}");
                }
                let wrote = plan.writes().count() > 0;
                let turn = plan.apply(Journal::open(root, folder.path()).unwrap()).unwrap();
                if wrote {
                    turned.insert(name);
                    let changed = snapshot(machine).changed(&before);
                    assert!(!changed.is_empty(), "{name}={level} changes nothing");
                }
                let lasting = name == "drop_caches" || name == "idle" && level.ends_with("us");
                turn.restore().unwrap();
                if !lasting {
                    let left = snapshot(machine).changed(&before);
                    assert!(left.is_empty(), "{name}={level} leaves {left:?}");
                }
            }
        }
    }
    let here_only = ["cpus", "memory", "online"];
    let expected: BTreeSet<&str> =
        names.difference(&here_only.into_iter().collect()).copied().collect();
    assert!(turned.is_superset(&expected), "never turned: {:?}", expected.difference(&turned));
}

#[test]
fn an_empty_machine_gives_a_reason_for_each_knob() {
    let machine = Recorded::empty();
    for knob in KNOBS {
        let why = knob.read(&machine.root).unwrap_err();
        assert!(why.reason.len() > 10 && why.remedy.len() > 3, "{}: {why}", knob.info().name);
        assert!(knob.levels(&machine.root).is_err(), "{}", knob.info().name);
    }
    let error = Journal::open(&machine.root, machine.path("/state").as_path()).err().unwrap();
    assert!(error.to_string().contains("boot_id"), "{error}");
}

#[test]
fn levels_name_their_cpus_where_cpus_differ() {
    let (machine, folder) = recorded("hybrid");
    let levels = |name: &str| {
        let all = status(&machine.root, Some(folder.path())).unwrap();
        all.into_iter().find(|status| status.about.name == name).unwrap().levels.unwrap()
    };
    let idle = [
        "all",
        "none",
        "C1E",
        "C6@0-3",
        "C10",
        "no-C1E",
        "no-C6@0-3",
        "no-C10",
        "C6S@4-7",
        "no-C6S@4-7",
    ];
    assert_eq!(levels("idle"), idle);
    let epp = ["default", "performance@0-3", "balance_performance", "balance_power@0-3", "power"];
    assert_eq!(levels("epp"), epp);
    let spans = "FREQUENCY or LOW..HIGH within 0.8GHz..5.2GHz@0-3 0.8GHz..3.9GHz@4-7";
    assert_eq!(levels("frequency"), ["all", "min", "max", "base@0-3", spans]);
    // What is a level can be had, and what cannot is named as none.
    for name in ["idle", "epp", "frequency"] {
        for level in levels(name).iter().filter(|level| !level.contains(' ')) {
            plan(&machine.root, &[(name, level)]);
        }
    }
    for (name, level) in
        [("idle", "C6"), ("idle", "no-C6S"), ("epp", "performance"), ("frequency", "base")]
    {
        let error = Knobs::plan(&machine.root, &[(name, level)]).err().unwrap();
        assert!(error.is_request(), "{error}");
        let told = error.to_string();
        let (_, here) = told.split_once("the levels here are ").unwrap();
        assert!(here.split(", ").all(|known| known != level), "{told}");
        assert!(here.contains(&format!("{level}@")), "{told}");
    }
    refused(&machine.root, &[("idle", "C6")], &["CPU 4 has no idle state", "C6S"]);
    let turned = turn(&machine, folder.path(), &[("idle", "C6S@4-7")]);
    let disabled = |cpu: u32| {
        let path = format!("{CPUS}/cpu{cpu}/cpuidle/state3/disable");
        machine.root.number::<u32>(&path).unwrap()
    };
    assert_eq!([disabled(0), disabled(4)], [0, 1]);
    drop(turned);
}

#[test]
fn dies_of_other_ranges_get_their_own() {
    let (machine, folder) = xeon();
    let die = "/sys/devices/system/cpu/intel_uncore_frequency";
    let dies = machine.root.list(die).unwrap();
    let (first, last) = (format!("{die}/{}", dies[0]), format!("{die}/{}", dies[dies.len() - 1]));
    machine.write(&format!("{last}/initial_max_freq_khz"), "1800000\n");
    let turned = turn(&machine, folder.path(), &[("uncore", "max")]);
    let most = |die: &str| machine.root.number::<u64>(&format!("{die}/max_freq_khz")).unwrap();
    assert_eq!((most(&first), most(&last)), (2_400_000, 1_800_000));
    drop(turned);
    refused(&machine.root, &[("uncore", "2GHz")], &["the hardware runs", "1.8GHz"]);
}

#[test]
fn idle_levels_become_disabled_states() {
    let (machine, folder) = xeon();
    let disabled = || -> Vec<u32> {
        let state = |at: u32| {
            let path = |cpu| format!("{CPUS}/cpu{cpu}/cpuidle/state{at}/disable");
            (0..8).map(|cpu| machine.root.number::<u32>(&path(cpu)).unwrap()).sum()
        };
        (0..4).map(state).collect()
    };
    for (level, states) in [
        ("none", [0, 8, 8, 8]),
        ("C1", [0, 0, 8, 8]),
        ("c1e", [0, 0, 0, 8]),
        ("no-C1E", [0, 0, 8, 0]),
        ("no-C6@0,4", [0, 0, 0, 2]),
        ("2us@0-3", [0, 0, 4, 4]),
        ("all", [0, 0, 0, 0]),
    ] {
        let turned = turn(&machine, folder.path(), &[("idle", level)]);
        assert_eq!(disabled(), states, "{level}");
        drop(turned);
        assert_eq!(disabled(), [0; 4], "{level} is put back");
    }
    let now = |machine: &Recorded| {
        let all = status(&machine.root, Some(folder.path())).unwrap();
        all.into_iter().find(|status| status.about.name == "idle").unwrap().now.unwrap()
    };
    let turned = turn(&machine, folder.path(), &[("idle", "C1@0-3")]);
    assert_eq!(now(&machine), "C1@0-3 all@4-7");
    drop(turned);
    // A latency limit for all CPUs is one descriptor, which the kernel lets go by itself.
    let held = plan(&machine.root, &[("idle", "10us")]);
    let writes: Vec<String> = held.writes().map(|(_, _, write)| write.to_string()).collect();
    assert_eq!(writes, ["/dev/cpu_dma_latency: -> 10 (until the process or group ends)"]);
    assert!(matches!(held.check_keepable(), Err(KnobError::CannotKeep { .. })));
    let turned = held.apply(Journal::open(&machine.root, folder.path()).unwrap()).unwrap();
    assert_eq!(bytes(&machine, "/dev/cpu_dma_latency", 0), 10i32.to_le_bytes());
    drop(turned);
    refused(&machine.root, &[("idle", "C7")], &["C7", "C1E", "no-C6"]);
    refused(&machine.root, &[("idle", "none@8")], &["CPU 8 is not online"]);
    refused(&machine.root, &[("idle", "none@a")], &["list of CPUs"]);
    // A CPU that has no polling state cannot be kept from sleeping.
    let (neoverse, _) = recorded("neoverse");
    refused(&neoverse.root, &[("idle", "none")], &["LPI-0", "always enters one"]);
}

#[test]
fn a_governor_that_ignores_disabled_states_is_replaced() {
    let (machine, folder) = xeon();
    machine.write(&format!("{CPUS}/cpuidle/current_governor"), "haltpoll\n");
    machine.write(&format!("{CPUS}/cpuidle/available_governors"), "ladder menu haltpoll\n");
    let turned = turn(&machine, folder.path(), &[("idle", "C1")]);
    let governor = || machine.root.value(&format!("{CPUS}/cpuidle/current_governor")).unwrap();
    assert_eq!(governor(), "menu");
    drop(turned);
    assert_eq!(governor(), "haltpoll");
}

/// Plays the kernel while something is proven: calls `play` with 1, 2 and so on.
fn while_running<T>(play: impl Fn(u64) + Sync, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1u64.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                play(number);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Counts on in some files while something is proven.
fn while_counting<T>(machine: &Recorded, files: &[String], work: impl FnOnce() -> T) -> T {
    let count = |number: u64| {
        for file in files {
            // Renamed into place: a reader never sees an empty file.
            let new = machine.path(&format!("{file}.new"));
            fs::write(&new, (1_000_000 + number).to_string()).unwrap();
            fs::rename(new, machine.path(file)).unwrap();
        }
    };
    while_running(count, work)
}

#[test]
fn an_idle_state_is_proven_by_its_counters_and_not_by_its_file() {
    let (machine, folder) = xeon();
    let usage = |state: u32| -> Vec<String> {
        (0..8).map(|cpu| format!("{CPUS}/cpu{cpu}/cpuidle/state{state}/usage")).collect()
    };
    let outcome = |counting: &[String]| {
        let mut turned = turn(&machine, folder.path(), &[("idle", "C1")]);
        while_counting(&machine, counting, || turned.proofs()[0].outcome.clone())
    };
    match outcome(&usage(1)) {
        ProofOutcome::Proven(seen) => assert!(seen.contains("none of them in C1E, C6"), "{seen}"),
        other => panic!("{other:?}"),
    }
    match outcome(&[usage(3), usage(1)].concat()) {
        ProofOutcome::Refuted(seen) => assert!(seen.contains(" entered C6 "), "{seen}"),
        other => panic!("{other:?}"),
    }
    // Without idle periods on all CPUs there is no proof.
    assert!(matches!(outcome(&[]), ProofOutcome::Unverified(_)));
    match outcome(&usage(1)[..7]) {
        ProofOutcome::Unverified(why) => assert!(why.contains("CPUs 7 had no idle"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn smt_is_proven_by_the_topology() {
    let (machine, folder) = xeon();
    // What would be lost with the siblings is remembered, and put back after them.
    machine.write(&format!("{CPUS}/cpu5/cpuidle/state3/disable"), "1\n");
    let mut turned = turn(&machine, folder.path(), &[("smt", "off")]);
    assert_eq!(machine.root.value(&format!("{CPUS}/smt/control")).unwrap(), "off");
    assert!(
        matches!(turned.proofs()[0].outcome, ProofOutcome::Refuted(_)),
        "the siblings are there"
    );
    assert!(matches!(turned.check_effect(), Err(KnobError::Refuted(_))));
    drop(turned);
    let mut turned = turn(&machine, folder.path(), &[("smt", "off")]);
    machine.write(&format!("{CPUS}/online"), "0-3\n");
    for cpu in 0..4 {
        machine.write(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"), "0\n");
    }
    machine.write(&format!("{CPUS}/cpu5/cpuidle/state3/disable"), "0\n");
    assert!(matches!(turned.proofs()[0].outcome, ProofOutcome::Proven(_)), "{:?}", turned.proofs());
    turned.restore().unwrap();
    assert_eq!(machine.root.value(&format!("{CPUS}/cpu5/cpuidle/state3/disable")).unwrap(), "1");
    let (neoverse, _) = recorded("neoverse");
    refused(&neoverse.root, &[("smt", "off")], &["notsupported", "one thread"]);
}

#[test]
fn without_a_switch_for_smt_the_siblings_go_offline() {
    let (machine, folder) = xeon();
    machine.remove(&format!("{CPUS}/smt/control"));
    let turned = turn(&machine, folder.path(), &[("smt", "off")]);
    let online = |cpu: u32| machine.root.value(&format!("{CPUS}/cpu{cpu}/online")).unwrap();
    let states: Vec<String> = (1..8).map(online).collect();
    assert_eq!(states, ["1", "1", "1", "0", "0", "0", "0"]);
    drop(turned);
    assert!((1..8).all(|cpu| online(cpu) == "1"));
}

#[test]
fn lost_cpu_sets_are_restored() {
    let (machine, folder) = xeon();
    let sets = "/sys/fs/cgroup/cpuset";
    machine.write(&format!("{sets}/cpuset.cpus"), "0-7\n");
    machine.write(&format!("{sets}/jobs/cpuset.cpus"), "0-3\n");
    machine.write(&format!("{sets}/jobs/one/cpuset.cpus"), "3\n");
    machine.write(&format!("{sets}/other/cpuset.cpus"), "0\n");
    let turned = turn(&machine, folder.path(), &[("online", "0-2,4-7")]);
    // The kernel of version 1 takes the CPU out of the groups.
    machine.write(&format!("{sets}/jobs/cpuset.cpus"), "0-2\n");
    machine.write(&format!("{sets}/jobs/one/cpuset.cpus"), "0-2\n");
    drop(turned);
    let set = |group: &str| machine.root.value(&format!("{sets}/{group}/cpuset.cpus")).unwrap();
    assert_eq!(
        (set("jobs"), set("jobs/one"), set("other")),
        ("0-3".into(), "3".into(), "0".into())
    );
    refused(&machine.root, &[("online", "1-7")], &["CPU 0 cannot be taken offline"]);
    refused(&machine.root, &[("online", "0-8")], &["no CPU 8"]);
}

#[test]
fn frequency_limits_never_cross() {
    let (machine, folder) = xeon();
    let limits = || {
        let file = |name| format!("{CPUS}/cpufreq/policy3/scaling_{name}_freq");
        let read = |name| machine.root.number::<u64>(&file(name)).unwrap();
        (read("min"), read("max"))
    };
    for (level, expected) in [
        ("1GHz", (1_000_000, 1_000_000)),
        ("base", (2_200_000, 2_200_000)),
        ("1.2GHz..max", (1_200_000, 3_000_000)),
        ("min", (800_000, 800_000)),
    ] {
        drop({
            let turned = turn(&machine, folder.path(), &[("frequency", level)]);
            assert_eq!(limits(), expected, "{level}");
            turned
        });
        assert_eq!(limits(), (800_000, 3_000_000));
    }
    // From low limits to high ones the highest goes first.
    for cpu in 0..8 {
        machine.write(&format!("{CPUS}/cpufreq/policy{cpu}/scaling_max_freq"), "1000000\n");
    }
    let plan = plan(&machine.root, &[("frequency", "2GHz@0")]);
    let order: Vec<&str> =
        plan.writes().map(|(_, _, write)| write.place.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(order, ["scaling_max_freq", "scaling_min_freq"]);
    refused(&machine.root, &[("frequency", "3.5GHz")], &["800 MHz to 3 GHz"]);
}

#[test]
fn turbo_is_proven_by_cycles_over_those_of_the_base_frequency() {
    let (machine, folder) = xeon();
    // Registers are 8 bytes each at addresses 1 apart, so in a plain file APERF is MPERF without
    // its lowest byte and with one more above it.
    let ran = |mperf: u8, above: u8, level: &str| {
        // Nothing is left of the counts before.
        fs::write(machine.path("/dev/cpu/0/msr"), vec![0u8; 0x1000]).unwrap();
        let mut turned = turn(&machine, folder.path(), &[("turbo", level)]);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for tick in 0..=u8::MAX {
                    let mut registers = vec![0u8; 0x1000];
                    (registers[0xe7], registers[0xef]) = (tick * mperf, tick * above);
                    let new = machine.path("/dev/cpu/0/new");
                    fs::write(&new, registers).unwrap();
                    fs::rename(new, machine.path("/dev/cpu/0/msr")).unwrap();
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
            let outcome = turned.proofs()[0].outcome.clone();
            done.store(true, Ordering::Relaxed);
            outcome
        })
    };
    assert!(matches!(ran(1, 0, "off"), ProofOutcome::Proven(_)));
    assert!(matches!(ran(1, 1, "off"), ProofOutcome::Refuted(_)));
    assert!(matches!(ran(1, 1, "on"), ProofOutcome::Proven(_)));
    assert!(matches!(ran(1, 0, "on"), ProofOutcome::Unverified(_)));
    assert!(
        matches!(ran(0, 0, "off"), ProofOutcome::Unverified(why) if why.contains("stood still"))
    );
    let (epyc, folder) = recorded("epyc");
    let turned = turn(&epyc, folder.path(), &[("turbo", "off")]);
    assert_eq!(epyc.root.value(&format!("{CPUS}/cpufreq/boost")).unwrap(), "0");
    drop(turned);
    assert_eq!(epyc.root.value(&format!("{CPUS}/cpufreq/boost")).unwrap(), "1");
}

#[test]
fn the_uncore_is_limited_by_the_driver_or_by_the_register() {
    let (machine, folder) = xeon();
    let uncore = format!("{CPUS}/intel_uncore_frequency");
    let mut turned = turn(&machine, folder.path(), &[("uncore", "1.5GHz")]);
    let limit = machine.root.number::<u64>(&format!("{uncore}/package_01_die_00/max_freq_khz"));
    assert_eq!(limit.unwrap(), 1_500_000);
    assert!(
        matches!(turned.proofs()[0].outcome, ProofOutcome::Refuted(_)),
        "it still runs at 2.4 GHz"
    );
    drop(turned);
    let mut turned = turn(&machine, folder.path(), &[("uncore", "1.5GHz")]);
    for package in 0..2 {
        let file = format!("{uncore}/package_0{package}_die_00/current_freq_khz");
        machine.write(&file, "1500000\n");
    }
    assert!(matches!(turned.proofs()[0].outcome, ProofOutcome::Proven(_)));
    drop(turned);
    fs::remove_dir_all(machine.path(&uncore)).unwrap();
    let mut turned = turn(&machine, folder.path(), &[("uncore", "1.5GHz")]);
    assert_eq!(bytes(&machine, "/dev/cpu/1/msr", 0x620), 0x0f0fu64.to_le_bytes());
    assert!(matches!(turned.proofs()[0].outcome, ProofOutcome::Unverified(_)));
    drop(turned);
    assert_eq!(bytes(&machine, "/dev/cpu/1/msr", 0x620), 0x0c18u64.to_le_bytes());
    refused(&machine.root, &[("uncore", "1.55GHz")], &["steps of 100 MHz"]);
}

#[test]
fn direct_cache_access_is_turned_at_the_processor_s_root_ports() {
    let (machine, folder) = xeon();
    let config = |port: &str| {
        let path = format!("/sys/bus/pci/devices/{port}/config");
        u32::from_le_bytes(bytes(&machine, &path, 0x180))
    };
    let mut turned = turn(&machine, folder.path(), &[("ddio", "off")]);
    // Bit 7 cleared, bit 3 set, the others as they were.
    assert_eq!(PORTS.map(config), [0x0010_001c; 2]);
    assert!(
        matches!(turned.proofs()[0].outcome, ProofOutcome::Unverified(_)),
        "a read-back is none"
    );
    drop(turned);
    assert_eq!(PORTS.map(config), [0x0010_0094; 2]);
    let turned = turn(&machine, folder.path(), &[("ddio", "off@0000:17:00.0"), ("ddio_ways", "4")]);
    assert_eq!(PORTS.map(config), [0x0010_001c, 0x0010_0094]);
    for cpu in [0, 1] {
        let ways = bytes(&machine, &format!("/dev/cpu/{cpu}/msr"), 0xc8b);
        assert_eq!(u64::from_le_bytes(ways), 0x780);
    }
    drop(turned);
    assert_eq!(bytes(&machine, "/dev/cpu/0/msr", 0xc8b), 0x600u64.to_le_bytes());
    // The chipset's port has no such register; neither has the card.
    refused(&machine.root, &[("ddio", "off@0000:00:1c.0")], &["off@0000:85:02.0"]);
    refused(&machine.root, &[("ddio_ways", "12")], &["11 ways"]);
}

/// The Xeon as one of another generation, with root ports of these numbers.
fn as_model(name: &str, model: u32, devices: [&str; 2]) -> (Recorded, tempfile::TempDir) {
    let (machine, folder) = xeon();
    machine.change("/proc/cpuinfo", "model\t\t: 85", &format!("model\t\t: {model}"));
    machine.change("/proc/cpuinfo", "Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz", name);
    for (port, device) in PORTS.iter().zip(devices) {
        machine.write(&format!("/sys/bus/pci/devices/{port}/device"), device);
    }
    (machine, folder)
}

#[test]
fn direct_cache_access_is_turned_on_xeon_e5_v2_v3_and_v4() {
    for (name, model, devices) in [
        ("Intel(R) Xeon(R) CPU E5-2697 v2 @ 2.70GHz", 62, ["0x0e02", "0x0e0b"]),
        ("Intel(R) Xeon(R) CPU E5-2697 v3 @ 2.60GHz", 63, ["0x2f04", "0x2f08"]),
        ("Intel(R) Xeon(R) CPU E5-2697 v4 @ 2.30GHz", 79, ["0x6f02", "0x6f0b"]),
    ] {
        let (machine, folder) = as_model(name, model, devices);
        let before = snapshot(&machine);
        let turned = turn(&machine, folder.path(), &[("ddio", "off")]);
        for port in PORTS {
            let path = format!("/sys/bus/pci/devices/{port}/config");
            let value = u32::from_le_bytes(bytes(&machine, &path, 0x180));
            assert_eq!(value, 0x0010_001c, "{name}");
        }
        drop(turned);
        assert_as_before(&machine, &before);
        refused(&machine.root, &[("ddio", "off@0000:00:1c.0")], &["off@0000:85:02.0"]);
        // Its register of ways is not documented.
        refused(&machine.root, &[("ddio_ways", "4")], &["is not documented for"]);
    }
}

#[test]
fn the_user_may_answer_for_the_registers_of_another_model() {
    let name = "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz";
    let (machine, folder) = as_model(name, 106, ["0x347a", "0x347b"]);
    let remedy = format!("--trust-register {name:?}");
    refused(&machine.root, &[("ddio", "off")], &["is not documented for", &remedy]);
    let other = trust_register(machine.root.clone(), "Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz");
    let other = other.unwrap_err();
    assert!(other.is_request() && other.to_string().contains(name), "{other}");
    let root = trust_register(machine.root.clone(), name).unwrap();
    // Which ports are the processor's is not known, so each is named.
    refused(&root, &[("ddio", "off")], &["off@0000:00:1c.0, on@0000:17:00.0, off@0000:17:00.0"]);
    let before = snapshot(&machine);
    let levels = [("ddio", "off@0000:17:00.0"), ("ddio_ways", "4")];
    let journal = Journal::open(&root, folder.path()).unwrap();
    let mut turned = plan(&root, &levels).apply(journal).unwrap();
    let value = bytes(&machine, "/sys/bus/pci/devices/0000:17:00.0/config", 0x180);
    assert_eq!(u32::from_le_bytes(value), 0x0010_001c);
    assert_eq!(u64::from_le_bytes(bytes(&machine, "/dev/cpu/0/msr", 0xc8b)), 0x780);
    assert!(matches!(turned.proofs()[0].outcome, ProofOutcome::Unverified(_)));
    drop(turned);
    assert_as_before(&machine, &before);
    // Nobody can answer for a hypervisor's registers, or for those of another vendor.
    machine.change("/proc/cpuinfo", "flags\t\t:", "flags\t\t: hypervisor");
    refused(&root, &[("ddio_ways", "4")], &["the hypervisor's"]);
    machine.change("/proc/cpuinfo", "GenuineIntel", "AuthenticAMD");
    let error = Knobs::plan(&root, &[("ddio_ways", "4")]).err().unwrap().to_string();
    assert!(error.contains("AuthenticAMD") && !error.contains("--trust-register"), "{error}");
}

#[test]
fn registers_of_other_cpus_are_never_touched() {
    for (cpuinfo, words) in [
        // Ice Lake-SP takes a write to 0xC8B and does nothing.
        ("model\t\t: 106", "model 0x6a"),
        ("cpu family\t: 15", "family 15"),
        ("vendor_id\t: AuthenticAMD", "AuthenticAMD"),
    ] {
        let (machine, _folder) = xeon();
        let key = cpuinfo.split('\t').next().unwrap();
        let text = machine.root.text("/proc/cpuinfo").unwrap();
        let old = text.lines().find(|line| line.split(['\t', ':']).next() == Some(key)).unwrap();
        machine.change("/proc/cpuinfo", old, cpuinfo);
        fs::remove_dir_all(machine.path(&format!("{CPUS}/intel_uncore_frequency"))).unwrap();
        for (knob, level) in [("uncore", "max"), ("ddio", "off"), ("ddio_ways", "4")] {
            refused(&machine.root, &[(knob, level)], &["is not documented for", words]);
        }
    }
    let (machine, _folder) = xeon();
    machine.change("/proc/cpuinfo", "flags\t\t:", "flags\t\t: hypervisor");
    refused(&machine.root, &[("ddio_ways", "4")], &["the hypervisor's"]);
}

#[test]
fn a_group_is_made_for_cache_and_bandwidth_and_goes() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    let levels = [("mba", "50@0,4"), ("cat", "4@0,4")];
    let planned = plan(&machine.root, &levels);
    let groups = planned.writes().filter(|(_, _, write)| write.new == "there").count();
    assert_eq!(groups, 1, "one group serves both");
    let mut turned = planned.apply(Journal::open(&machine.root, folder.path()).unwrap()).unwrap();
    let group = format!("/sys/fs/resctrl/kvmeter-{}", std::process::id());
    let text = machine.root.text(&format!("{group}/schemata")).unwrap();
    assert_eq!(text, "MB:0=50;1=50\nL3:0=f;1=f\n");
    assert_eq!(machine.root.value(&format!("{group}/cpus_list")).unwrap(), "0,4");
    machine.write(&format!("{group}/mon_data/mon_L3_00/llc_occupancy"), "5000000\n");
    let outcomes: Vec<ProofOutcome> = turned.proofs().iter().map(|p| p.outcome.clone()).collect();
    assert!(matches!(outcomes[0], ProofOutcome::Proven(_)), "{outcomes:?}");
    assert!(matches!(outcomes[1], ProofOutcome::Unverified(_)), "{outcomes:?}");
    turned.restore().unwrap();
    assert_as_before(&machine, &before);
    refused(&machine.root, &[("cat", "12@0")], &["1 to 11 ways"]);
    refused(&machine.root, &[("mba", "55@0")], &["steps of 10"]);
    let (epyc, _) = recorded("epyc");
    refused(&epyc.root, &[("cat", "4@0")], &["resctrl is not mounted"]);
}

#[test]
fn dropping_caches_is_an_action() {
    let (machine, folder) = xeon();
    let mut turned = turn(&machine, folder.path(), &[("drop_caches", "all")]);
    assert_eq!(machine.root.value("/proc/sys/vm/drop_caches").unwrap(), "3");
    machine.change("/proc/meminfo", "8388608", "1024");
    machine.change("/proc/meminfo", "1048576", "1024");
    assert!(matches!(turned.proofs()[0].outcome, ProofOutcome::Proven(_)));
    let restored = turned.restore().unwrap();
    assert_eq!(
        restored,
        RestoreOutcome::Done { written: 0, foreign: Vec::new(), unread: Vec::new() }
    );
    let plan = plan(&machine.root, &[("drop_caches", "pages")]);
    let (_, _, write) = plan.writes().next().unwrap();
    assert!(write.to_string().contains("nothing undoes"), "{write}");
}

#[test]
fn knobs_turn_in_a_fixed_order() {
    let (machine, _folder) = xeon();
    let levels_given =
        [("online", "0-6"), ("smt", "off"), ("idle", "C1"), ("governor", "performance")];
    let mut reversed = levels_given;
    reversed.reverse();
    let order = |levels: &[(&str, &str)]| {
        let plan = plan(&machine.root, levels);
        let writes: Vec<String> = plan.writes().map(|(_, _, write)| write.to_string()).collect();
        (plan.levels().map(|(knob, _)| knob.to_owned()).collect::<Vec<_>>(), writes)
    };
    assert_eq!(order(&levels_given), order(&reversed));
    assert_eq!(order(&levels_given).0, ["governor", "idle", "smt", "online"]);
    refused(&machine.root, &[("smt", "off"), ("smt", "on")], &["twice"]);
    refused(&machine.root, &[("volume", "11")], &["no knob `volume`", "idle"]);
}

#[test]
fn forbidden_writes_are_reported_before_any_write() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    let plan = plan(&machine.root, &[("governor", "performance"), ("aslr", "off")]);
    let path = format!("{CPUS}/cpufreq/policy5/scaling_governor");
    machine.remove(&path);
    let refusals = plan.refused();
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].0.place.path, path);
    let error = plan.apply(Journal::open(&machine.root, folder.path()).unwrap()).err().unwrap();
    assert!(error.to_string().contains("policy5/scaling_governor does not exist"), "{error}");
    machine.write(&path, "powersave\n");
    assert_as_before(&machine, &before);
}

#[test]
fn a_failure_half_way_puts_back_what_was_turned() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    let plan = plan(&machine.root, &[("governor", "performance"), ("turbo", "off")]);
    let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
    let journal = Journal::open(&machine.root, folder.path()).unwrap();
    // The file goes after eight governors were written.
    let mut moments = 0;
    let error = plan.apply_with_events(journal, &mut |_| {
        moments += 1;
        if moments == 10 {
            fs::remove_file(machine.path(&no_turbo)).unwrap();
        }
    });
    let error = error.err().unwrap().to_string();
    assert!(error.contains("no_turbo does not exist"), "{error}");
    machine.write(&no_turbo, "0\n");
    assert_as_before(&machine, &before);
    assert!(!folder.path().join("running.journal").exists());
}

#[test]
fn a_panic_puts_the_knobs_back() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    let root = machine.root.clone();
    let state = folder.path().to_owned();
    let ended = thread::spawn(move || {
        let journal = Journal::open(&root, &state).unwrap();
        let _turned = plan(&root, &[("governor", "performance")]).apply(journal).unwrap();
        panic!("as a load may");
    });
    assert!(ended.join().is_err());
    assert_as_before(&machine, &before);
}

#[test]
fn a_target_displays_its_part() {
    let (machine, _folder) = xeon();
    let plan = plan(&machine.root, &[("ddio_ways", "4")]);
    let (_, _, write) = plan.writes().next().unwrap();
    let KnobTarget { path, .. } = &write.place;
    assert_eq!(write.to_string(), format!("{path} at 0xc8b: 0x600 -> 0x780"));
}
