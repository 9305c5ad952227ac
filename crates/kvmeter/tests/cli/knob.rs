//! `kvmeter knob` on a recorded machine, which any user may turn, and `knob list` on this one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::tool::{Place, command_output, until};

/// A machine with three knobs, and a folder for the journal.
fn machine() -> Place {
    let place = Place::new();
    for (path, text) in [
        ("proc/sys/kernel/random/boot_id", "boot-one"),
        ("proc/sys/kernel/randomize_va_space", "2"),
        ("proc/sys/vm/drop_caches", "0"),
        ("proc/meminfo", "Cached: 100 kB\nSReclaimable: 10 kB"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always"),
    ] {
        let file = place.file("machine").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{text}\n")).unwrap();
    }
    place
}

fn knob(place: &Place, args: &[&str]) -> Command {
    let root = place.file("machine").display().to_string();
    let mut command = place.command(&["knob", "--root", &root]);
    command.args(args).env("KVMETER_STATE_DIR", place.file("state"));
    command
}

fn held(place: &Place) -> [String; 2] {
    let read = |path: &str| {
        let text = fs::read_to_string(place.file("machine").join(path)).unwrap();
        text.trim().to_owned()
    };
    [read("proc/sys/kernel/randomize_va_space"), read("sys/kernel/mm/transparent_hugepage/enabled")]
}

fn is_before(place: &Place) -> bool {
    held(place) == ["2", "always"]
}

const TURN: [&str; 3] = ["set", "aslr=off", "thp=never"];
const TURNED: [&str; 2] = ["0", "never"];

/// A kvmeter whose command waits, with its knobs turned.
fn waiting(place: &Place) -> Child {
    let child = knob(place, &TURN)
        .args(["--", "sh", "-c", "echo $$ > pid; exec sleep 60"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the command", || fs::read_to_string(place.file("pid")).is_ok_and(|t| t.ends_with('\n')));
    assert_eq!(held(place), TURNED);
    child
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

/// Ends the command that a killed kvmeter left behind.
fn end_command(place: &Place) {
    signal("-KILL", fs::read_to_string(place.file("pid")).unwrap().trim());
}

#[test]
fn a_command_runs_under_knobs_and_its_exit_code_is_passed_on() {
    let place = machine();
    let script = "cat machine/proc/sys/kernel/randomize_va_space; exit 7";
    let done =
        command_output(knob(&place, &TURN).args(["--", "sh", "-c", script]).output().unwrap());
    assert_eq!((done.code, done.out.as_str()), (7, "0"), "{}", done.err);
    for words in ["aslr=off: unverified", "thp=never: unverified", "2 places restored"] {
        assert!(done.err.contains(words), "{}", done.err);
    }
    assert!(is_before(&place));
    assert!(!place.file("state/running.journal").exists());
    let none =
        command_output(knob(&place, &TURN).args(["--", "no-such-program"]).output().unwrap());
    assert_eq!(none.code, 2, "{}", none.err);
    assert!(none.err.contains("no-such-program") && is_before(&place), "{}", none.err);
}

#[test]
fn a_dry_run_prints_every_write_and_does_none() {
    let place = machine();
    let dry = command_output(knob(&place, &TURN).arg("--dry-run").output().unwrap());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert_eq!(
        dry.out,
        "thp=never  /sys/kernel/mm/transparent_hugepage/enabled: always -> never\n\
         aslr=off  /proc/sys/kernel/randomize_va_space: 2 -> 0\n"
    );
    assert!(is_before(&place) && !place.file("state").exists());
}

#[test]
fn without_a_command_knobs_stay_until_they_are_restored() {
    let place = machine();
    let set = command_output(knob(&place, &TURN).output().unwrap());
    assert_eq!(set.code, 0, "{}", set.err);
    assert!(set.err.contains("until `kvmeter knob restore` or the next boot"), "{}", set.err);
    assert_eq!(held(&place), TURNED);
    let list = command_output(knob(&place, &["list", "--json"]).output().unwrap()).json();
    let aslr = list.as_array().unwrap().iter().find(|k| k["knob"]["name"] == "aslr").unwrap();
    assert_eq!((&aslr["now"], &aslr["kept"]), (&"off".into(), &"off".into()));
    assert_eq!(aslr["levels"], serde_json::json!(["off", "partial", "full"]));
    let restore = command_output(knob(&place, &["restore"]).output().unwrap());
    assert!(restore.err.contains("2 places restored"), "{}", restore.err);
    assert!(is_before(&place));
    let again = command_output(knob(&place, &["restore"]).output().unwrap());
    assert_eq!((again.code, again.err.trim()), (0, "nothing is turned"));
}

#[test]
fn a_signal_ends_the_command_and_restores() {
    for (name, code) in [("-TERM", 143), ("-INT", 143), ("-HUP", 143)] {
        let place = machine();
        let child = waiting(&place);
        signal(name, &child.id().to_string());
        let done = command_output(child.wait_with_output().unwrap());
        assert_eq!(done.code, code, "{}", done.err);
        assert!(is_before(&place) && done.err.contains("restored"), "{}", done.err);
    }
}

#[test]
fn the_supervisor_of_a_killed_kvmeter_restores() {
    let place = machine();
    let mut child = waiting(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the supervisor restores", || !place.file("state/running.journal").exists());
    assert!(is_before(&place));
    end_command(&place);
}

#[test]
fn the_next_start_restores_if_the_supervisor_was_killed_too() {
    let place = machine();
    let mut child = waiting(&place);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let children = fs::read_to_string(children).unwrap();
    let command = fs::read_to_string(place.file("pid")).unwrap();
    let supervisor: Vec<&str> =
        children.split_whitespace().filter(|pid| *pid != command.trim()).collect();
    assert_eq!(supervisor.len(), 1, "{children}");
    signal("-KILL", supervisor[0]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(held(&place), TURNED);
    let next = command_output(knob(&place, &["restore"]).output().unwrap());
    assert_eq!(next.code, 0, "{}", next.err);
    let words = "an earlier kvmeter was killed while knobs were turned: 2 places restored";
    assert!(next.err.contains(words), "{}", next.err);
    assert!(is_before(&place));
    end_command(&place);
}

#[test]
fn a_second_kvmeter_is_refused_with_the_pid_of_the_first() {
    let place = machine();
    let child = waiting(&place);
    let second = command_output(knob(&place, &TURN).args(["--", "true"]).output().unwrap());
    assert_eq!(second.code, 1, "{}", second.err);
    assert!(second.err.contains(&format!("process {}", child.id())), "{}", second.err);
    assert_eq!(held(&place), TURNED);
    signal("-TERM", &child.id().to_string());
    child.wait_with_output().unwrap();
    assert!(is_before(&place));
}

#[test]
fn mistakes_list_valid_values() {
    let place = machine();
    for (args, words) in [
        (["set", "volume=11"].as_slice(), ["no knob `volume`", "thp, aslr, governor"].as_slice()),
        (&["set", "aslr=half"], &["aslr=half", "off, partial, full"]),
        (&["set", "aslr"], &["KNOB=LEVEL"]),
        (&["set", "aslr=off", "aslr=full"], &["twice"]),
        (&["set", "turbo=off"], &["turbo cannot be turned here", "no_turbo"]),
        (&["show", "volume"], &["no knob `volume`"]),
        (&["set"], &["KNOB=LEVEL"]),
    ] {
        let no = command_output(knob(&place, args).output().unwrap());
        assert_eq!(no.code, 2, "{args:?}: {}", no.err);
        for word in words {
            assert!(no.err.contains(word), "{args:?}: {}", no.err);
        }
    }
    assert!(is_before(&place));
}

#[test]
fn this_machine_s_knobs_have_levels_or_reasons() {
    let place = Place::new();
    let list = place.json(&["knob", "list", "--json"]);
    let list = list.as_array().unwrap();
    assert!(list.len() >= 17);
    for knob in list {
        let (name, levels) = (&knob["knob"]["name"], &knob["levels"]);
        let some = levels.as_array().is_some_and(|levels| !levels.is_empty());
        let reason = levels["unavailable"].as_str().is_some_and(|why| why.len() > 10);
        assert!(some || reason, "{name}: {levels}");
        let shown = place.ok(&["knob", "show", name.as_str().unwrap()]);
        assert!(shown.contains("mechanism") && shown.contains("proof"), "{shown}");
    }
}

#[test]
fn a_journal_writable_by_others_is_ignored() {
    let place = machine();
    assert_eq!(command_output(knob(&place, &TURN).output().unwrap()).code, 0);
    assert_eq!(held(&place), TURNED);
    let mode = |mode| {
        fs::set_permissions(place.file("state"), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o777);
    let refused = command_output(knob(&place, &["restore"]).output().unwrap());
    assert_eq!((refused.code, held(&place)), (2, TURNED.map(str::to_owned)), "{refused:?}");
    for word in ["can be written by others", "chmod go-w", "KVMETER_STATE_DIR"] {
        assert!(refused.err.contains(word), "{refused:?}");
    }
    mode(0o700);
    let restored = command_output(knob(&place, &["restore"]).output().unwrap());
    assert_eq!((restored.code, is_before(&place)), (0, true), "{restored:?}");
}

#[test]
fn without_a_home_no_shared_journal_is_used() {
    let place = Place::new();
    let mut command = place.command(&["knob", "restore"]);
    for name in ["HOME", "XDG_STATE_HOME", "KVMETER_STATE_DIR"] {
        command.env_remove(name);
    }
    // Root has a folder without a home.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    let Ok(output) = command.output() else {
        eprintln!("skipped: another user may not start this program");
        return;
    };
    let refused = command_output(output);
    assert!(refused.code == 2 && refused.err.contains("KVMETER_STATE_DIR"), "{refused:?}");
}

/// A control group whose cpuset has one CPU; taken away at the end.
struct OneCpu(PathBuf);

impl OneCpu {
    fn new(cpu: u32) -> Option<OneCpu> {
        let own = format!("kvmeter-test-{}", std::process::id());
        for root in ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"] {
            let root = Path::new(root);
            // Version 2 hands a controller on to groups that this file names; version 1 lacks it.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpuset");
            let folder = root.join(&own);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = OneCpu(folder);
            let put = |name: &str, text: &str| fs::write(group.0.join(name), text).is_ok();
            if put("cpuset.cpus", &cpu.to_string()) && put("cpuset.mems", "0") {
                return Some(group);
            }
        }
        eprintln!("NOT TESTED: no control group with a cpuset can be made; run as root");
        None
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        // The kernel counts a process that has just ended for a moment.
        until("an empty group", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_cpu_outside_of_the_cpuset_is_refused_before_anything_is_written() {
    let place = Place::new();
    let Some(group) = OneCpu::new(0) else { return };
    let set = |cpus: &str| {
        let level = format!("cpus={cpus}");
        let kvmeter = place.command(&["knob", "set", &level, "--", "true"]);
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(group.0.join("cgroup.procs"));
        command.arg(kvmeter.get_program()).args(kvmeter.get_args()).current_dir(place.path());
        command_output(command.env("KVMETER_STATE_DIR", place.file("state")).output().unwrap())
    };
    for cpus in ["1", "0,1"] {
        let refused = set(cpus);
        // A machine of one CPU says that there is no other one.
        let words = match std::thread::available_parallelism().map_or(1, usize::from) {
            1 => "CPU 1 is not online",
            _ => "the cpuset of this process allows CPUs 0, and not CPU 1",
        };
        assert!(refused.code == 2 && refused.err.contains(words), "{refused:?}");
    }
    let allowed = set("0");
    assert_eq!(allowed.code, 0, "{allowed:?}");
}
