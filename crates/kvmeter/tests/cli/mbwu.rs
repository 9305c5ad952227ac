//! Work units, on loop devices that are throttled equally, and what is refused before a device
//! is written to. What needs root says when it is skipped.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::slice::slice;
use crate::tool::{CommandOutput, Place, command_output, until};

/// A small raw store: what a device does and nothing else.
pub const STUDY: &str = r#"
name = "units"
sequence = ["half"]
[store.raw]
[data]
records = 500
key = { form = "text", size = 16 }
value = { size = 4096 }
[load]
threads = 8
[workloads.half]
from = "ycsb-a"
[measure]
warm_up = "300ms"
time = "1s"
[probes]
idle = "0s"
[mbwu]
threads = [1, 8]
"#;

/// One rig at a time: they share the machine.
static ALONE: Mutex<()> = Mutex::new(());

fn rig_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mbwu-rig")
}

/// What the groups of this place's rigs are told by.
fn own_name(place: &Place) -> String {
    let name = place.path().file_name().unwrap().to_string_lossy();
    name.trim_start_matches('.').to_owned()
}

/// kvmeter on a rig; none, said, where there cannot be one.
fn rig(place: &Place, flags: &[&str], args: &[&str]) -> Option<CommandOutput> {
    rig_within(place, flags, &[], args)
}

/// The same, with kvmeter and its devices as the arguments of another command.
fn rig_within(
    place: &Place,
    flags: &[&str],
    within: &[&str],
    args: &[&str],
) -> Option<CommandOutput> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut kvmeter = place.command(args);
    let mut command = Command::new(rig_program());
    command.args(flags).arg("--").args(within);
    command.arg(kvmeter.get_program()).args(kvmeter.get_args());
    command
        .current_dir(place.path())
        .env("TMPDIR", place.path())
        .env("MBWU_RIG", own_name(place))
        .stdin(Stdio::null());
    for (key, value) in kvmeter.env("HOME", place.path()).get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let done = command_output(command.output().unwrap());
    let skipped = done.code == 77;
    if skipped {
        eprintln!("skipped: {}", done.err);
    }
    nothing_stays(place);
    (!skipped).then_some(done)
}

/// No loop device, mount or group of this place's rigs.
fn nothing_stays(place: &Place) {
    let here = place.path().display().to_string();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&here), "{mounts}");
    assert_eq!(loops_of(place), [""; 0]);
    let groups = Command::new("find")
        .args([
            "/sys/fs/cgroup",
            "-maxdepth",
            "2",
            "-name",
            &format!("mbwu-rig-{}.*", own_name(place)),
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&groups.stdout), "");
    let left = std::fs::read_dir(place.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("mbwu-rig")), "{left:?}");
}

/// Loop devices on files of this place. The kernel frees one when its last user is gone.
fn loops_of(place: &Place) -> Vec<String> {
    let here = place.path().display().to_string();
    let all = std::fs::read_dir("/sys/block").unwrap().flatten();
    let of_here = all.filter(|entry| {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        backing.unwrap_or_default().contains(&here)
    });
    of_here.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Folders are used as they are, whatever the study would do to block devices.
#[test]
fn runs_say_which_share_was_preconditioned() {
    let place = Place::new();
    std::fs::create_dir(place.file("one")).unwrap();
    let study = STUDY
        .replace("threads = [1, 8]", "threads = [1]\nrounds = 5\nprecondition = { share = 0.75 }");
    place.write("study.toml", &study.replace("time = \"1s\"", "time = \"200ms\""));
    place.run(&["run", "study.toml", "--out", "units.sqlite", "--device", "one"]);
    let runs = place.ok(&["export", "units.sqlite", "--format", "csv", "--table", "runs"]);
    let (head, rows) = runs.split_once('\n').unwrap();
    let at = head.split(',').position(|name| name == "setting.mbwu.precondition").unwrap();
    assert!(rows.lines().count() >= 5, "{runs}");
    for row in rows.lines() {
        assert_eq!(row.split(',').nth(at), Some("none"), "{row}");
    }
    let readings = place.ok(&["export", "units.sqlite", "--format", "csv", "--table", "readings"]);
    assert!(readings.contains(",management_traffic.device,"), "{readings}");
}

fn units(place: &Place) -> Value {
    let done = place.run(&["mbwu", "units.sqlite", "--json"]);
    done.json()
}

#[test]
fn two_equal_devices_are_two_units() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let args = ["run", "study.toml", "--out", "units.sqlite"];
    let Some(done) = rig(&place, &["--devices", "2", "--iops", "200", "--size", "64M"], &args)
    else {
        return;
    };
    assert_eq!(done.code, 0, "{done:#?}");
    assert!(done.out.contains("the device was the bottleneck"), "{}", done.out);
    let json = units(&place);
    assert_eq!((&json["proven"], &json["bottleneck"]), (&true.into(), &"device".into()));
    // 200 reads and 200 writes a second, in equal parts.
    let unit = json["mbwu_ops_s"].as_f64().unwrap();
    assert!((300.0..440.0).contains(&unit), "{json:#}");
    let count = json["units"].as_f64().unwrap();
    assert!((1.8..=2.2).contains(&count), "{json:#}");
    assert_eq!(json["ended_by"], "devices");
    // Both had their part of every round, and were busy.
    for round in json["rounds"].as_array().unwrap().iter().filter(|r| r["devices"] == 2) {
        let each: Vec<f64> = round["device_throughput_ops_s"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .collect();
        assert!(each.len() == 2 && each[0] / each[1] < 1.5 && each[1] / each[0] < 1.5, "{round:#}");
        assert!(round["device_busy"].as_array().unwrap().len() == 2);
    }
    let page = std::fs::read_to_string(place.file("units.html")).unwrap();
    assert!(page.contains("Work units (MBWU)"));
}

#[test]
fn a_platform_with_little_cpu_generates_less_and_the_cpu_is_named() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let flags = ["--devices", "2", "--iops", "1200", "--cpu", "3", "--size", "64M"];
    let args = ["run", "study.toml", "--out", "units.sqlite", "--set", "mbwu.threads=[32]"];
    let Some(done) = rig(&place, &flags, &args) else { return };
    assert!(done.code == 0 || done.code == 1, "{done:#?}");
    let json = units(&place);
    match json["bottleneck"].as_str() {
        // One device alone was still the device's: two of them are not two units.
        Some("device") => assert!(json["units"].as_f64().unwrap() < 1.8, "{json:#}"),
        // Not even one: then it is called no unit.
        Some("cpu") => assert_eq!(json["proven"], false, "{json:#}"),
        _ => panic!("{json:#}"),
    }
    let last = json["growth"].as_array().unwrap().last().unwrap();
    assert_eq!(last["bottleneck"], "cpu", "{json:#}");
    assert!(json["conclusion"].as_str().unwrap().contains("the CPU"), "{json:#}");
}

#[test]
fn a_killed_rig_leaves_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let rig = Command::new(rig_program())
        .args(["--devices", "2", "--size", "32M", "--", "sh", "-c", "touch ready; sleep 300"])
        .current_dir(place.path())
        .env("TMPDIR", place.path())
        .env("MBWU_RIG", own_name(&place))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let rig = RefCell::new(rig);
    until("the rig or its refusal", || {
        place.file("ready").exists() || rig.borrow_mut().try_wait().unwrap().is_some()
    });
    if !place.file("ready").exists() {
        eprintln!("skipped: there is no rig here");
        return;
    }
    rig.borrow_mut().kill().unwrap();
    rig.borrow_mut().wait().unwrap();
    until("the end of what it made", || {
        let left = std::fs::read_dir(place.path()).unwrap().flatten();
        !left.into_iter().any(|one| one.file_name().to_string_lossy().starts_with("mbwu-rig"))
    });
    nothing_stays(&place);
}

#[test]
fn block_devices_are_overwritten_only_if_confirmed() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let flags = ["--raw", "--devices", "1", "--iops", "2000", "--size", "64M"];
    let run = ["run", "study.toml", "--out", "units.sqlite", "--set", "mbwu.threads=[32]"];
    let Some(done) = rig(&place, &flags, &run) else { return };
    assert_eq!(done.code, 2, "{done:#?}");
    assert!(done.err.contains("loses all its content; confirm it with --confirm"), "{}", done.err);

    let more = ["--dry-run", "--set", "mbwu.precondition={share=0.5}"];
    let dry = rig(&place, &flags, &[&run[..], &more[..]].concat()).unwrap();
    assert_eq!(dry.code, 0, "{dry:#?}");
    for words in ["discard every block", "within the first 32MiB (50 %)", "gets an ext4"] {
        assert!(dry.out.contains(words), "{words}: {}", dry.out);
    }
    assert!(!place.file("units.sqlite").exists());

    // The loop device's name is what lies behind it, which the rig knows: the lower loop device.
    let confirmed: Vec<String> =
        (0..64).flat_map(|loop_| ["--confirm".to_owned(), format!("/dev/loop{loop_}")]).collect();
    let mut args: Vec<&str> = run.to_vec();
    args.extend(["--set", "mbwu.precondition={share=0.5}"]);
    args.extend(confirmed.iter().map(String::as_str));
    let done = rig(&place, &flags, &args).unwrap();
    assert!(done.code == 0 || done.code == 1, "{done:#?}");
    assert!(units(&place)["mbwu_ops_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_killed_evaluation_resumes_at_the_next_round() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let device = place.path().join("disk");
    std::fs::create_dir(&device).unwrap();
    let set = ["--set", "measure.time=500ms", "--device", "disk"];
    let args = [&["run", "study.toml", "--out", "units.sqlite"][..], &set[..]].concat();
    let child = RefCell::new(place.start(&args));
    let rounds = || {
        let done = place.run(&["mbwu", "units.sqlite", "--json"]);
        let json: Option<Value> = serde_json::from_str(&done.out).ok();
        json.and_then(|json| Some(json["rounds"].as_array()?.clone())).unwrap_or_default()
    };
    until("two rounds", || rounds().len() >= 2 || child.borrow_mut().try_wait().unwrap().is_some());
    if child.borrow_mut().try_wait().unwrap().is_some() {
        let done = command_output(child.into_inner().wait_with_output().unwrap());
        if done.err.contains("block device") || done.err.contains("direct I/O") {
            eprintln!("skipped: {}", done.err);
            return;
        }
        panic!("{done:#?}");
    }
    child.borrow_mut().kill().unwrap();
    child.borrow_mut().wait().unwrap();
    let before = rounds();
    let done = place.run(&[&args[..], &["--resume"][..]].concat());
    assert!(done.code == 0 || done.code == 1, "{done:#?}");
    assert!(done.err.contains("rounds are done"), "{}", done.err);
    let after = rounds();
    assert!(after.len() > before.len() && after[..before.len()] == before[..], "it began anew");
    assert_ne!(units(&place)["ended_by"], "cut_short");
    // Once more, as if it had been killed before its report: no further round.
    let again = place.run(&[&args[..], &["--resume"][..]].concat());
    assert_eq!(again.code, done.code, "{again:#?}");
    assert_eq!(rounds().len(), after.len());
}

#[test]
fn what_makes_no_sense_is_refused_before_a_device_is_written_to() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    std::fs::create_dir(place.file("disk")).unwrap();
    let run = ["run", "study.toml", "--device", "disk"];
    place.refused(&["run", "study.toml"], &["no device is named", "--device PATH"]);
    place.refused(&["run", "study.toml", "--device", "none"], &["--device none"]);
    place.refused(&["run", "study.toml", "--device", "study.toml"], &["is not a folder"]);
    place.refused(&["run", "quickstart", "--device", "disk"], &["a study with [mbwu]"]);
    let set = |assignment: &str, words: &[&str]| {
        place.refused(&[&run[..], &["--set", assignment][..]].concat(), words);
    };
    set("mbwu.threads=[4,2]", &["rising numbers"]);
    set("mbwu.rounds=3", &["takes 5 to 1000 rounds"]);
    set("mbwu.databases=[16]", &["each needs one of its own"]);
    set("mbwu.rate=[\"2k\",\"1k\"]", &["rising rates"]);
    set("mbwu.rate=[\"1k\"]", &["one number of threads"]);
    set("mbwu.gain=2", &["share from 0.001 to 0.5"]);
    set("mbwu.roundz=3", &["rounds"]);
    set("measure.threads=4", &["mbwu.threads"]);
    set("measure.rate=4", &["mbwu.rate"]);
    set("why.frequency=99", &["the rounds of a work unit are not profiled"]);
    set("repeats=2", &["one repeat"]);
    set("store.raw.path=x", &["leave it out"]);
    set("sequence=[\"ycsb-d\"]", &["reads, updates, scans"]);
    set("mbwu.precondition={share=1.5}", &["at most 1"]);
    // Two folders of one file system are one device.
    std::fs::create_dir(place.file("other")).unwrap();
    place.refused(&[&run[..], &["--device", "other"][..]].concat(), &["--device"]);
    set("data.records=1000M", &["are needed"]);
    assert!(std::fs::read_dir(place.file("disk")).unwrap().next().is_none(), "nothing was written");
    let page = place.file("kept.sqlite").display().to_string();
    place.ok(&["bench", "null", "--ops", "1k", "--out", &page]);
    place.refused(&["mbwu", &page], &["has no rounds"]);
}

#[test]
fn preconditioning_a_file() {
    let place = Place::new();
    let base = ["precondition", "disk.img", "--size", "8MiB"];
    let dry = place.ok(&[&base[..], &["--dry-run", "--lbas", "75%"][..]].concat());
    for words in ["16MiB sequentially", "within the first 6MiB (75 %)", "--confirm \"disk.img\""] {
        assert!(dry.contains(words), "{words}: {dry}");
    }
    assert!(!place.file("disk.img").exists());
    place.refused(&base, &["loses all", "`disk.img`"]);
    place.refused(&[&base[..], &["--confirm", "other"][..]].concat(), &["is not `other`"]);
    let done = place.run(&[&base[..], &["--confirm", "disk.img", "--json"][..]].concat());
    if done.err.contains("past the page cache") {
        eprintln!("skipped: {}", done.err);
        return;
    }
    assert_eq!(done.code, 0, "{done:#?}");
    let report = done.json();
    assert_eq!((&report["ended"], &report["purge"]), (&"done".into(), &"discarded".into()));
    assert_eq!(report["written_bytes"], 16 << 20);
    assert_eq!(std::fs::metadata(place.file("disk.img")).unwrap().len(), 8 << 20);
}

#[test]
fn a_device_that_is_in_use_is_not_preconditioned() {
    let place = Place::new();
    // The rig's devices are mounted where the command runs.
    let script = "device=$(findmnt --noheadings --output SOURCE --target \"${@: -1}\"); \
                  exec \"${@:1:$#-2}\" \"$device\" --confirm x";
    let within = ["bash", "-c", script, "bash"];
    let Some(done) = rig_within(&place, &["--size", "32M"], &within, &["precondition"]) else {
        return;
    };
    assert_eq!(done.code, 2, "{done:#?}");
    assert!(done.err.contains("is mounted at"), "{}", done.err);
}

/// A device that can be made to fail: a loop device on a file of a file system that is shut down
/// when two rounds are done. Its arguments are a folder and a command, which gets the device.
const FAILING: &str = r#"
    here=$1; shift
    truncate -s 400M "$here/outer.img"
    outer=$(losetup --find --show "$here/outer.img") || exit 77
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$outer"
    mkdir "$here/outer" "$here/inner"; mount "$outer" "$here/outer"
    truncate -s 300M "$here/outer/inner.img"
    inner=$(losetup --find --show --direct-io=on "$here/outer/inner.img") || exit 77
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$inner"
    mount "$inner" "$here/inner"
    undo() { umount -l "$here/inner"; losetup -d "$inner"; umount -l "$here/outer"; losetup -d "$outer"; }
    trap undo EXIT
    "$@" --device "$here/inner" & own=$!
    for try in $(seq 600); do
        [ "$(grep -c raise "$here/said")" -lt 2 ] || break
        kill -0 $own 2>/dev/null || { wait $own; exit; }
        sleep 0.1
    done
    # EXT4_IOC_SHUTDOWN without a word to the journal.
    perl -e 'open(F, "<", $ARGV[0]) or die; my $how = pack("L", 2);
        ioctl(F, 0x8004587D, $how) or die "no shutdown: $!"' "$here/outer" || { kill $own; exit 77; }
    echo 3 >/proc/sys/vm/drop_caches
    for try in $(seq 2000); do kill -0 $own 2>/dev/null || break; sleep 0.1; done
    kill -KILL $own 2>/dev/null && echo "it hangs"
    wait $own
"#;

/// What kvmeter says of a device that fails after two rounds; none where there cannot be one.
fn on_a_failing_device(place: &Place, args: &[&str]) -> Option<CommandOutput> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::write(place.file("said"), "").unwrap();
    let kvmeter = place.command(args);
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", FAILING, "bash"]).arg(place.path());
    // What it says as it goes is looked at from inside.
    command.args(["bash", "-c", "\"$@\" 2>>said", "bash"]);
    command.arg(kvmeter.get_program()).args(kvmeter.get_args()).current_dir(place.path());
    for (key, value) in kvmeter.get_envs() {
        if let Some(value) = value {
            command.env(key, value);
        }
    }
    let mut done = command_output(command.stdin(Stdio::null()).output().unwrap());
    if done.code == 77 || done.err.contains("unshare failed") || done.err.contains("not found") {
        eprintln!(
            "skipped: a failing device needs root, loop devices, ext4 and perl: {}",
            done.err
        );
        return None;
    }
    done.err += &std::fs::read_to_string(place.file("said")).unwrap();
    Some(done)
}

/// How many failed requests of loop devices the kernel logged.
fn logged_errors() -> usize {
    let log = Command::new("dmesg").output().unwrap();
    String::from_utf8_lossy(&log.stdout).matches("I/O error, dev loop").count()
}

#[test]
fn a_device_that_fails_ends_the_evaluation_with_its_sector_and_keeps_what_was_measured() {
    for store in slice(["raw", "lmdb", "fjall", "spill"], 4) {
        // The kernel logs ten failed requests of all devices in five seconds and keeps the others to
        // itself (print_ratelimited of the block layer): those of the device before must be over.
        std::thread::sleep(Duration::from_millis(5500));
        let logged_before = logged_errors();
        let place = Place::new();
        place.write("study.toml", &STUDY.replace("store.raw", &format!("store.{store}")));
        let mut args =
            vec!["run", "study.toml", "--out", "units.sqlite", "--set", "mbwu.threads=[1,2,3,4]"];
        if store == "spill" {
            // Segments for a small device.
            args.extend(["--set", "store.spill.segment=1MiB"]);
        }
        let Some(done) = on_a_failing_device(&place, &args) else { return };
        if done.err.contains("built without feature") {
            eprintln!("skipped: {store} is not in this build");
            continue;
        }
        assert_eq!(done.code, 1, "{store}: {done:#?}");
        assert!(!done.out.contains("it hangs"), "{store}: {done:#?}");
        let named = done.err.contains("I/O error, dev loop") && done.err.contains("sector");
        assert!(
            named || done.err.contains("SIGBUS") || logged_errors() == logged_before,
            "{store}: {}",
            done.err
        );
        let rounds = units(&place)["rounds"].as_array().unwrap().len();
        assert!(rounds >= 2, "{store}: {rounds} rounds are kept");
        until("the devices are free", || loops_of(&place).is_empty());
        nothing_stays(&place);
    }
}

#[test]
fn a_device_that_cannot_be_written_or_holds_too_little_is_refused() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let small = ["--size", "32M"];
    let script = "mount -o remount,ro \"${@: -1}\" && exec \"$@\"";
    let within = ["bash", "-c", script, "bash"];
    let Some(done) = rig_within(&place, &small, &within, &["run", "study.toml"]) else { return };
    assert_eq!(done.code, 2, "{done:#?}");
    assert!(done.err.to_lowercase().contains("read-only"), "{}", done.err);
    let many = ["run", "study.toml", "--set", "data.records=20k"];
    let done = rig(&place, &small, &many).unwrap();
    assert_eq!(done.code, 2, "{done:#?}");
    assert!(done.err.contains("are needed"), "{}", done.err);
}

/// Runs a command while the throttle of its device goes up and down.
const UNSTEADY: &str = r#"
    group=/sys/fs/cgroup/blkio$(sed -n 's/^[0-9]*:blkio://p' /proc/self/cgroup)
    [ -e "$group/blkio.throttle.read_iops_device" ] || exit 77
    upper=$(findmnt --noheadings --output SOURCE --target "${@: -1}")
    lower=$(losetup --noheadings --output BACK-FILE "$upper")
    number=$(cat "/sys/block/$(basename "$lower")/dev")
    main=$$
    ( while kill -0 $main; do
        for iops in 40 400; do
            for what in read write; do echo "$number $iops" >"$group/blkio.throttle.${what}_iops_device"; done
            sleep 1.7
        done
    done ) >/dev/null 2>&1 &
    exec "$@"
"#;

#[test]
fn a_steady_state_that_is_never_reached_ends_with_the_most_rounds() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let within = ["bash", "-c", UNSTEADY, "bash"];
    let args = ["run", "study.toml", "--out", "units.sqlite"];
    let few = ["--set", "mbwu.rounds=6", "--set", "mbwu.threads=[8]"];
    let args = [&args[..], &few].concat();
    let Some(done) = rig_within(&place, &["--size", "64M"], &within, &args) else { return };
    assert_eq!(done.code, 1, "{done:#?}");
    let json = units(&place);
    assert_eq!((&json["steady"], &json["proven"]), (&false.into(), &false.into()), "{json:#}");
    assert_eq!(json["growth"][0]["rounds"], 6, "{json:#}");
    assert!(done.out.contains("not steady"), "{}", done.out);
}

/// Groups of version 2 as a folder, for what the rig would write there.
#[test]
fn the_rig_knows_control_groups_of_version_2() {
    let place = Place::new();
    let dry = |root: &str| {
        let output = Command::new(rig_program())
            .args(["--dry-run", "--devices", "2", "--iops", "70", "--cpu", "5", "--memory", "64M"])
            .env("MBWU_RIG_CGROUPS", place.file(root))
            .output();
        command_output(output.unwrap())
    };
    std::fs::create_dir_all(place.file("two")).unwrap();
    place.write("two/cgroup.controllers", "cpuset cpu io memory pids\n");
    let root = place.file("two").display().to_string();
    let told = dry("two").out.replace(&root, "R");
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "+cpu > R/cgroup.subtree_control",
            "mkdir R/mbwu-rig",
            "5000 100000 > R/mbwu-rig/cpu.max",
            "+memory > R/cgroup.subtree_control",
            "64M > R/mbwu-rig/memory.max",
            "+io > R/cgroup.subtree_control",
            "DEVICE1 riops=70 wiops=70 > R/mbwu-rig/io.max",
            "+io > R/cgroup.subtree_control",
            "DEVICE2 riops=70 wiops=70 > R/mbwu-rig/io.max",
            "COMMAND > R/mbwu-rig/cgroup.procs",
        ]
    );
    // Version 1 with version 2 beside it, which has the rest of the controllers.
    for folder in ["both/unified", "both/cpu", "both/memory"] {
        std::fs::create_dir_all(place.file(folder)).unwrap();
    }
    place.write("both/unified/cgroup.controllers", "io\n");
    place.write("both/cpu/cpu.cfs_quota_us", "-1\n");
    place.write("both/memory/memory.limit_in_bytes", "-1\n");
    let root = place.file("both").display().to_string();
    let told = dry("both").out.replace(&root, "R");
    for words in [
        "5000 > R/cpu/mbwu-rig/cpu.cfs_quota_us",
        "64M > R/memory/mbwu-rig/memory.limit_in_bytes",
        "DEVICE2 riops=70 wiops=70 > R/unified/mbwu-rig/io.max",
        "COMMAND > R/unified/mbwu-rig/cgroup.procs",
    ] {
        assert!(told.lines().any(|line| line == words), "{words}: {told}");
    }
    std::fs::create_dir_all(place.file("none")).unwrap();
    let none = dry("none");
    assert_eq!(none.code, 77, "{none:#?}");
    assert!(none.err.contains("no control group here has cpu"), "{}", none.err);
}
