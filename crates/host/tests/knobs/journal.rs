//! The journal: one process at a time, what was kept, and what it does with lines and files that are
//! not its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use host::Root;
use host::knob::{Journal, KnobError, RestoreOutcome, status};
use nix::sys::resource::{Resource, setrlimit};

use crate::common::Recorded;
use crate::{CPUS, assert_as_before, plan, snapshot, state, turn, xeon};

#[test]
fn two_processes_do_not_turn_knobs_at_once() {
    let (machine, folder) = xeon();
    let journal = Journal::open(&machine.root, folder.path()).unwrap();
    let error = Journal::open(&machine.root, folder.path()).err().unwrap();
    let pid = format!("process {}", std::process::id());
    assert!(matches!(error, KnobError::Busy { .. }) && error.to_string().contains(&pid), "{error}");
    drop(journal);
    Journal::open(&machine.root, folder.path()).unwrap();
}

#[test]
fn kept_knobs_stay_until_they_are_restored_and_others_stand_on_them() {
    let (machine, folder) = xeon();
    let before = snapshot(&machine);
    turn(&machine, folder.path(), &[("governor", "performance")]).keep().unwrap();
    turn(&machine, folder.path(), &[("turbo", "off"), ("aslr", "off")]).keep().unwrap();
    let kept = snapshot(&machine);
    assert!(!kept.changed(&before).is_empty());
    let of = |name: &str| {
        let all = status(&machine.root, Some(folder.path())).unwrap();
        all.into_iter().find(|status| status.about.name == name).unwrap().kept
    };
    assert_eq!((of("turbo").as_deref(), of("idle")), (Some("off"), None));
    drop(turn(&machine, folder.path(), &[("turbo", "on")]));
    assert_as_before(&machine, &kept);
    let mut journal = Journal::open(&machine.root, folder.path()).unwrap();
    assert!(journal.recovered().is_empty());
    let restored = journal.restore_kept().unwrap().unwrap();
    assert_eq!(
        restored,
        RestoreOutcome::Done { written: 10, foreign: Vec::new(), unread: Vec::new() }
    );
    assert_as_before(&machine, &before);
    assert_eq!(journal.restore_kept().unwrap(), None);
}

#[test]
fn a_journal_of_an_earlier_boot_is_set_aside_and_not_replayed() {
    let (machine, folder) = xeon();
    turn(&machine, folder.path(), &[("governor", "performance")]).keep().unwrap();
    let running = folder.path().join("running.journal");
    fs::copy(folder.path().join("kept.journal"), &running).unwrap();
    machine.write("/proc/sys/kernel/random/boot_id", "another-boot\n");
    let turned = snapshot(&machine);
    let recovered = Journal::recover(&machine.root, folder.path()).unwrap();
    assert_eq!(recovered.len(), 2);
    for stale in recovered {
        match stale {
            RestoreOutcome::Stale { entries: 8, aside } => assert!(aside.exists()),
            other => panic!("{other:?}"),
        }
    }
    assert_as_before(&machine, &turned);
    assert!(!running.exists());
    assert!(Journal::recover(&machine.root, folder.path()).unwrap().is_empty());
}

#[test]
fn a_line_that_was_cut_off_is_of_a_write_that_was_not_done() {
    let (machine, folder) = xeon();
    turn(&machine, folder.path(), &[("governor", "performance@3")]).keep().unwrap();
    let running = folder.path().join("running.journal");
    fs::rename(folder.path().join("kept.journal"), &running).unwrap();
    let whole = fs::read_to_string(&running).unwrap();
    fs::write(&running, format!("{whole}{{\"boot_id\":\"01")).unwrap();
    let recovered = Journal::recover(&machine.root, folder.path()).unwrap();
    assert_eq!(
        recovered,
        [RestoreOutcome::Done { written: 1, foreign: Vec::new(), unread: Vec::new() }]
    );
}

/// The kept journal of ASLR that is off, and its one line.
fn kept_aslr(machine: &Recorded, folder: &Path) -> (std::path::PathBuf, String) {
    turn(machine, folder, &[("aslr", "off")]).keep().unwrap();
    let kept = folder.join("kept.journal");
    let line = fs::read_to_string(&kept).unwrap();
    assert_eq!(machine.root.value("/proc/sys/kernel/randomize_va_space").unwrap(), "0");
    (kept, line)
}

#[test]
fn a_line_that_cannot_be_read_is_set_aside_and_everything_else_restored() {
    let (machine, folder) = xeon();
    let cut = "{\"boot_id\":\"01";
    let (kept, line) = kept_aslr(&machine, folder.path());
    let text = [
        // The next line is glued to one that was cut off, and the one behind it is fine.
        format!("{cut}{line}"),
        format!("what?\n{line}"),
        format!("{line}\u{0}\u{0}\n"),
        format!("{cut}{cut}{line}{cut}"),
    ];
    for (number, text) in text.iter().enumerate() {
        machine.write("/proc/sys/kernel/randomize_va_space", "0\n");
        fs::write(&kept, text).unwrap();
        // Neither showing nor turning is in the way.
        assert!(status(&machine.root, Some(folder.path())).is_ok());
        let mut journal = Journal::open(&machine.root, folder.path()).unwrap();
        match journal.restore_kept().unwrap().unwrap() {
            RestoreOutcome::Done { written: 1, foreign, unread } => {
                assert!(foreign.is_empty(), "{foreign:?}");
                assert_eq!(unread.len(), 1, "{unread:?}");
                assert!(unread[0].contains(" of kept.journal cannot be read"), "{unread:?}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(machine.root.value("/proc/sys/kernel/randomize_va_space").unwrap(), "2");
        let aside = folder.path().join(format!("unread-{}-kept.journal", number + 1));
        assert_eq!(fs::read_to_string(aside).unwrap(), *text);
        assert!(!kept.exists());
    }
}

#[test]
fn a_line_after_a_truncated_one_is_read() {
    let (machine, folder) = xeon();
    let (kept, line) = kept_aslr(&machine, folder.path());
    fs::write(&kept, format!("{line}{{\"boot_id\":\"01")).unwrap();
    turn(&machine, folder.path(), &[("governor", "performance@3")]).keep().unwrap();
    let mut journal = Journal::open(&machine.root, folder.path()).unwrap();
    match journal.restore_kept().unwrap().unwrap() {
        RestoreOutcome::Done { written: 2, unread, .. } => {
            assert_eq!(unread.len(), 1, "{unread:?}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn foreign_targets_in_a_journal_are_not_followed() {
    let (machine, folder) = xeon();
    machine.write("/etc/passwd", "root\n");
    let (kept, line) = kept_aslr(&machine, folder.path());
    for place in ["/etc/passwd", "/sys/devices/system/cpu/../../../../etc/passwd"] {
        machine.write("/proc/sys/kernel/randomize_va_space", "0\n");
        let hostile = line.replace("/proc/sys/kernel/randomize_va_space", place);
        fs::write(&kept, format!("{hostile}{line}")).unwrap();
        let mut journal = Journal::open(&machine.root, folder.path()).unwrap();
        match journal.restore_kept().unwrap().unwrap() {
            RestoreOutcome::Done { written: 1, unread, .. } => {
                assert!(unread[0].contains("where no knob writes"), "{unread:?}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(machine.root.value("/etc/passwd").unwrap(), "root");
    }
}

#[test]
fn a_journal_that_others_could_write_is_refused() {
    let (machine, folder) = xeon();
    let (kept, _) = kept_aslr(&machine, folder.path());
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let refused = |words: &str| {
        let opened = Journal::open(&machine.root, folder.path());
        let error = opened.and_then(|mut journal| journal.restore_kept()).unwrap_err();
        assert!(error.is_request() && error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("KVMETER_STATE_DIR"), "{error}");
        assert_eq!(machine.root.value("/proc/sys/kernel/randomize_va_space").unwrap(), "0");
    };
    mode(&kept, 0o666);
    refused("kept.journal can be written by others");
    mode(&kept, 0o600);
    mode(folder.path(), 0o777);
    refused("can be written by others");
    mode(folder.path(), 0o700);
    let elsewhere = state();
    let other = elsewhere.path().join("journal");
    fs::rename(&kept, &other).unwrap();
    symlink(&other, &kept).unwrap();
    refused("kept.journal is a symbolic link");
    fs::remove_file(&kept).unwrap();
    fs::rename(&other, &kept).unwrap();
    if nix::unistd::geteuid().is_root() {
        chown(&kept, Some(12_345), None).unwrap();
        refused("belongs to user 12345");
        chown(folder.path(), Some(12_345), None).unwrap();
        refused("belongs to user 12345");
        chown(folder.path(), Some(0), None).unwrap();
        chown(&kept, Some(0), None).unwrap();
    }
    let mut journal = Journal::open(&machine.root, folder.path()).unwrap();
    assert!(journal.restore_kept().unwrap().is_some());
}

#[test]
fn lines_that_do_not_fit_on_the_disk_are_taken_back() {
    let (machine, folder) = xeon();
    let (kept, line) = kept_aslr(&machine, folder.path());
    // A limit on the size of files fails in the middle of a line, as a full disk does.
    let limit = line.len() as u64 + 20;
    let script = format!(
        "{} --exact journal::keeps_with_little_room --nocapture",
        std::env::current_exe().unwrap().display()
    );
    let said = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("KNOB_TEST_ROOT", machine.path("/"))
        .env("KNOB_TEST_STATE", folder.path())
        .env("KNOB_TEST_LIMIT", limit.to_string())
        // Pipes: its output may not go to a file, which has the limit, too.
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    assert_eq!(fs::read_to_string(&kept).unwrap(), line, "half of a line stays");
    let mut journal = Journal::open(&machine.root, folder.path()).unwrap();
    let restored = journal.restore_kept().unwrap().unwrap();
    assert!(matches!(restored, RestoreOutcome::Done { written: 1, .. }), "{restored:?}");
}

/// The process of the test above.
#[test]
fn keeps_with_little_room() {
    let given = |name: &str| std::env::var(name).ok();
    let (Some(root), Some(state), Some(limit)) =
        (given("KNOB_TEST_ROOT"), given("KNOB_TEST_STATE"), given("KNOB_TEST_LIMIT"))
    else {
        return;
    };
    let root = Root::at(root);
    let journal = Journal::open(&root, Path::new(&state)).unwrap();
    let turned = plan(&root, &[("governor", "performance@3")]).apply(journal).unwrap();
    let limit: u64 = limit.parse().unwrap();
    // Writing on then is an error and no signal.
    let ignored = nix::sys::signal::SigSet::from_iter([nix::sys::signal::Signal::SIGXFSZ]);
    ignored.thread_block().unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, limit, limit).unwrap();
    let error = turned.keep().unwrap_err();
    assert!(error.to_string().contains("kept.journal"), "{error}");
}

#[test]
fn a_foreign_value_is_replaced_and_reported() {
    let (machine, folder) = xeon();
    let turned = turn(&machine, folder.path(), &[("aslr", "off")]);
    machine.write("/proc/sys/kernel/randomize_va_space", "1\n");
    match turned.restore().unwrap() {
        RestoreOutcome::Done { written: 1, foreign, .. } => {
            assert!(
                foreign[0].contains("had the value 1, which kvmeter had not written"),
                "{foreign:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(machine.root.value("/proc/sys/kernel/randomize_va_space").unwrap(), "2");
}

#[test]
fn an_unrestorable_value_is_reported_and_stays_in_the_journal() {
    let (machine, folder) = xeon();
    let turned = turn(&machine, folder.path(), &[("governor", "performance"), ("aslr", "off")]);
    let path = format!("{CPUS}/cpufreq/policy2/scaling_governor");
    machine.remove(&path);
    let error = turned.restore().unwrap_err().to_string();
    assert!(error.contains(&path) && error.contains("running.journal"), "{error}");
    assert_eq!(machine.root.value("/proc/sys/kernel/randomize_va_space").unwrap(), "2");
    machine.write(&path, "performance\n");
    let recovered = Journal::recover(&machine.root, folder.path()).unwrap();
    assert_eq!(
        recovered,
        [RestoreOutcome::Done { written: 1, foreign: Vec::new(), unread: Vec::new() }]
    );
    assert_eq!(machine.root.value(&path).unwrap(), "powersave");
}
