//! A process that is killed at every step of turning, with and without its supervisor: on a
//! recorded machine, and on this one where it can be turned.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Recorded;
use host::Root;
use host::knob::{Journal, Knobs, ProofOutcome, supervisor};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const ROOT: &str = "KNOB_TEST_ROOT";
const STATE: &str = "KNOB_TEST_STATE";
const LEVELS: &str = "KNOB_TEST_LEVELS";
const STEP: &str = "KNOB_TEST_STEP";
const ALONE: &str = "KNOB_TEST_ALONE";

fn given(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This program again, as one of its tests.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command
}

/// The process that is killed; it does nothing unless a test below starts it.
#[test]
fn turns_and_dies() {
    let (Some(root), Some(state), Some(step)) = (given(ROOT), given(STATE), given(STEP)) else {
        return;
    };
    let (root, step): (Root, usize) = (Root::at(root), step.parse().unwrap());
    let text = given(LEVELS).unwrap();
    let levels: Vec<(&str, &str)> =
        text.split_whitespace().map(|pair| pair.split_once('=').unwrap()).collect();
    let plan = Knobs::plan(&root, &levels).unwrap();
    let mut journal = Journal::open(&root, Path::new(&state)).unwrap();
    if given(ALONE).is_none() {
        journal = journal.supervised_by(again("watches"));
    }
    let mut seen = 0;
    let turned = plan
        .apply_with_events(journal, &mut |_| {
            if seen == step {
                kill(Pid::this(), Signal::SIGKILL).unwrap();
            }
            seen += 1;
        })
        .unwrap();
    // No step is left: it dies with everything turned, or, one step later, ends in order.
    if seen == step {
        kill(Pid::this(), Signal::SIGKILL).unwrap();
    }
    turned.restore().unwrap();
}

/// Its supervisor.
#[test]
fn watches() {
    let (Some(root), Some(state)) = (given(ROOT), given(STATE)) else { return };
    if given(STEP).is_some() {
        supervisor::run(&Root::at(root), Path::new(&state)).unwrap();
    }
}

/// Kills at every step and answers how many steps there are. `turned` looks whether anything is
/// turned; `restored` panics if anything is.
fn kill_at_every_step(
    root: &Path,
    levels: &str,
    alone: bool,
    is_turned: &dyn Fn() -> bool,
) -> usize {
    let state = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (mut killed, mut left) = (0, 0);
    for step in 0.. {
        let mut command = again("turns_and_dies");
        command
            .env(ROOT, root)
            .env(STATE, state.path())
            .env(LEVELS, levels)
            .env(STEP, step.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if alone {
            command.env(ALONE, "1");
        }
        let status = command.status().unwrap();
        if !alone {
            // The supervisor has the lock until it has put everything back.
            let limit = Instant::now() + Duration::from_secs(20);
            let lock = File::open(state.path().join("lock")).unwrap();
            while lock.try_lock().is_err() {
                assert!(Instant::now() < limit, "the supervisor does not end");
                std::thread::sleep(Duration::from_millis(2));
            }
            drop(lock);
            assert!(!is_turned(), "killed at step {step}, the supervisor left knobs turned");
            assert!(!state.path().join("running.journal").exists(), "step {step}");
        }
        left += usize::from(is_turned());
        let recovered = Journal::recover(&Root::at(root), state.path()).unwrap();
        assert!(!is_turned(), "killed at step {step}, the next start left knobs turned");
        assert!(alone || recovered.is_empty(), "{recovered:?}");
        if status.success() {
            assert!(recovered.is_empty(), "{recovered:?}");
            break;
        }
        killed += 1;
        assert!(killed < 200, "it is killed for ever");
    }
    // Without a supervisor the kills do leave knobs turned: this test can fail.
    assert_eq!(left > 0, alone);
    killed
}

fn files(at: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path(), all),
            false => {
                let text = fs::read(entry.path()).unwrap().trim_ascii().to_vec();
                all.insert(entry.path(), text);
            }
        }
    }
}

#[test]
fn a_recorded_machine_comes_back_from_a_kill_at_every_step() {
    for alone in [false, true] {
        let machine = Recorded::named("xeon-4114");
        machine.write("/proc/irq/60/smp_affinity_list", "0-7\n");
        machine.write("/sys/kernel/irq/60/actions", "eth0\n");
        let snapshot = || {
            let mut all = BTreeMap::new();
            files(&machine.path("/"), &mut all);
            all
        };
        let before = snapshot();
        let levels = "governor=performance@0-1 turbo=off cat=4@0 idle=C1@0-1 smt=off aslr=off \
                      irq_affinity=3@60";
        let steps = kill_at_every_step(&machine.path("/"), levels, alone, &|| snapshot() != before);
        // Watched; seven knobs noted; 2 + 1 + 3 + 4 + 1 + 1 + 1 writes; and all of it.
        assert_eq!(steps, 1 + 7 + 13 + 1);
    }
}

/// One test at a time turns this machine, of whichever process.
fn this_machine() -> Option<File> {
    let live = Root::live();
    let can = Knobs::plan(&live, &[("idle", "none"), ("online", "0")])
        .is_ok_and(|plan| plan.refused().is_empty() && plan.writes().count() > 1);
    if !can {
        eprintln!("skipped: this user may not turn idle states and CPUs here");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("kvmeter-test-turns-this-machine")).unwrap();
    lock.lock().unwrap();
    Some(lock)
}

/// What the tests turn here, as the kernel has it.
fn held_here() -> Vec<String> {
    let live = Root::live();
    let cpus = "/sys/devices/system/cpu";
    let mut values = vec![live.value(&format!("{cpus}/online")).unwrap()];
    values.extend(live.value(&format!("{cpus}/cpuidle/current_governor")));
    for cpu in live.numbered(cpus, "cpu").unwrap() {
        let folder = format!("{cpus}/cpu{cpu}/cpuidle");
        for state in live.numbered(&folder, "state").unwrap_or_default() {
            values.extend(live.value(&format!("{folder}/state{state}/disable")));
        }
    }
    values
}

#[test]
fn this_machine_comes_back_from_a_kill_at_every_step() {
    let Some(_alone_here) = this_machine() else { return };
    let before = held_here();
    for alone in [false, true] {
        let is_turned = || held_here() != before;
        let steps = kill_at_every_step(Path::new("/"), "idle=none online=0", alone, &is_turned);
        assert!(steps >= 6, "{steps}");
    }
}

/// The lists of CPUs of every interrupt here.
fn interrupts_here() -> Vec<String> {
    let live = Root::live();
    let numbers = live.numbers("/proc/irq").unwrap_or_default();
    let list = |number: &u32| live.value(&format!("/proc/irq/{number}/smp_affinity_list")).ok();
    numbers.iter().filter_map(list).collect()
}

#[test]
fn interrupts_of_this_machine_are_moved_and_come_back() {
    let Some(_alone_here) = this_machine() else { return };
    let live = Root::live();
    let plan = || Knobs::plan(&live, &[("irq_affinity", "0")]);
    if !plan().is_ok_and(|plan| plan.refused().is_empty() && plan.writes().count() > 0) {
        eprintln!("skipped: no interrupt can be moved here");
        return;
    }
    let before = interrupts_here();
    for alone in [false, true] {
        let is_turned = || interrupts_here() != before;
        kill_at_every_step(Path::new("/"), "irq_affinity=0", alone, &is_turned);
    }
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::open(&live, state.path()).unwrap();
    let mut turned = plan().unwrap().apply(journal).unwrap();
    assert_ne!(interrupts_here(), before);
    // Whether any comes is up to the devices.
    let outcome = turned.proofs()[0].outcome.clone();
    assert!(!matches!(outcome, ProofOutcome::Refuted(_)), "{outcome:?}");
    turned.restore().unwrap();
    assert_eq!(interrupts_here(), before);
}

#[test]
fn knobs_of_this_machine_take_effect_and_are_restored() {
    let Some(_alone_here) = this_machine() else { return };
    let (live, before) = (Root::live(), held_here());
    let state = tempfile::tempdir().unwrap();
    let open = || Journal::open(&live, state.path()).unwrap();
    // A CPU that is offline is in no list of the kernel.
    let mut turned = Knobs::plan(&live, &[("online", "0")]).unwrap().apply(open()).unwrap();
    let outcome = turned.proofs()[0].outcome.clone();
    turned.restore().unwrap();
    assert_eq!(outcome, ProofOutcome::Proven("online: 0; in /proc/stat: 0".to_owned()));
    // An idle state that is disabled is not entered. Busy neighbours may leave no idle period to
    // look at for a while.
    let mut outcomes = Vec::new();
    for level in ["none", "0us"] {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let plan = Knobs::plan(&live, &[("idle", level)]).unwrap();
            let mut turned = plan.apply(open()).unwrap();
            let outcome = turned.proofs()[0].outcome.clone();
            turned.restore().unwrap();
            assert!(Instant::now() < limit, "{level}: {outcome:?}");
            match outcome {
                ProofOutcome::Unverified(_) => continue,
                outcome => break outcomes.push(outcome),
            }
        }
    }
    assert!(
        matches!(outcomes.as_slice(), [ProofOutcome::Proven(_), ProofOutcome::Proven(_)]),
        "{outcomes:?}"
    );
    assert_eq!(held_here(), before);
}

#[test]
fn settings_of_the_kernel_show_in_new_memory_and_new_processes() {
    let Some(_alone_here) = this_machine() else { return };
    let live = Root::live();
    let state = tempfile::tempdir().unwrap();
    for (knob, level) in
        [("aslr", "off"), ("aslr", "partial"), ("thp", "never"), ("thp", "madvise")]
    {
        let Ok(before) = Knobs::find(knob).unwrap().read(&live) else { continue };
        let plan = Knobs::plan(&live, &[(knob, level)]).unwrap();
        let mut turned = plan.apply(Journal::open(&live, state.path()).unwrap()).unwrap();
        let outcome = turned.proofs()[0].outcome.clone();
        turned.restore().unwrap();
        // Memory may be too fragmented for huge pages; the other effects always show.
        let may_hide = level == "madvise" && matches!(outcome, ProofOutcome::Unverified(_));
        assert!(
            matches!(outcome, ProofOutcome::Proven(_)) || may_hide,
            "{knob}={level}: {outcome:?}"
        );
        assert_eq!(Knobs::find(knob).unwrap().read(&live).unwrap(), before);
    }
}
