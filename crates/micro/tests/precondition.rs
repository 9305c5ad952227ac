//! Refusals, writes, and reports of failing devices.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use micro::precondition::{
    Consent, DeviceSystem, JobEnd, JobPhase, PreconditionError, PreconditionJob,
    PreconditionRequest, Purge, SteadyRule, Target, TargetKind,
};

const MIB: u64 = 1 << 20;
/// Steady within a factor of a hundred: these tests check the sequence, not the throughput.
const RULE: SteadyRule = SteadyRule { window: 2, holds: |rounds| rounds[0] < 100.0 * rounds[1] };
const NEVER: SteadyRule = SteadyRule { window: 2, holds: |_| false };

fn file(folder: &Path, bytes: u64) -> Target {
    let path = folder.join("disk.img");
    Target::inspect(&DeviceSystem::live(), &path, Some(bytes)).unwrap()
}

fn named(names: &[String]) -> Consent {
    Consent { names: names.to_vec(), overwrite: Vec::new() }
}

fn job<'a>(
    target: &'a Target,
    order: &PreconditionRequest,
    resume: bool,
) -> Result<PreconditionJob<'a>, PreconditionError> {
    let mut state = target.path.clone();
    state.set_extension("json");
    PreconditionJob::new(target, order.clone(), &named(&target.names[..1]), state, resume)
}

/// Blocks of 4 KiB of a file that are not zero.
fn written(path: &Path) -> Vec<bool> {
    fs::read(path).unwrap().chunks(4096).map(|block| block.iter().any(|byte| *byte != 0)).collect()
}

/// Why a file system has no direct I/O here, if so.
fn no_direct_io(folder: &Path) -> bool {
    let target = file(folder, MIB);
    let order = PreconditionRequest { times: 0.0, ..PreconditionRequest::default() };
    let done =
        job(&target, &order, false).unwrap().run(None, RULE, &AtomicBool::new(false), &mut |_| {});
    let missing =
        done.as_ref().is_err_and(|error| error.to_string().contains("past the page cache"));
    if missing {
        eprintln!("skipped: {} has no direct I/O", folder.display());
    }
    missing
}

#[test]
fn writes_the_share_with_unique_blocks() {
    let folder = tempfile::tempdir().unwrap();
    if no_direct_io(folder.path()) {
        return;
    }
    let target = file(folder.path(), 16 * MIB);
    let order = PreconditionRequest { share: 0.75, times: 2.0, ..PreconditionRequest::default() };
    let mut phases = Vec::new();
    let report = job(&target, &order, false)
        .unwrap()
        .run(None, RULE, &AtomicBool::new(false), &mut |progress| phases.push(progress.phase))
        .unwrap();
    assert_eq!(report.ended, JobEnd::Done);
    assert_eq!((report.range_bytes, report.total_bytes), (12 * MIB, 32 * MIB));
    assert_eq!(report.written_bytes, report.total_bytes);
    assert_eq!((phases[0], *phases.last().unwrap()), (JobPhase::Purging, JobPhase::Sequential));
    let blocks = written(&target.path);
    assert!(blocks[..3072].iter().all(|written| *written), "a block was left out");
    assert!(blocks[3072..].iter().all(|written| !written), "beyond the share");
    // A device that folds equal blocks into one has nothing to fold.
    let content = fs::read(&target.path).unwrap();
    let mut all: Vec<&[u8]> = content[..12 << 20].chunks(4096).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 3072);
    assert!(!target.path.with_extension("json").exists(), "nothing is left to resume");
}

#[test]
fn an_interrupted_job_resumes_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    if no_direct_io(folder.path()) {
        return;
    }
    let target = file(folder.path(), 16 * MIB);
    let order = PreconditionRequest {
        times: 4.0,
        rate: Some(40e6),
        purge: Purge::None,
        ..PreconditionRequest::default()
    };
    let stop = AtomicBool::new(false);
    let mut on_progress = |progress: &micro::precondition::JobProgress| {
        stop.store(progress.bytes > 4 * MIB, Ordering::Relaxed);
    };
    let report =
        job(&target, &order, false).unwrap().run(None, RULE, &stop, &mut on_progress).unwrap();
    assert_eq!(report.ended, JobEnd::Stopped);
    assert!(report.written_bytes > 4 * MIB && report.written_bytes < report.total_bytes);
    // Another invocation, and another order is another job.
    drop(target);
    let target = file(folder.path(), 16 * MIB);
    assert_eq!(target.content, [], "preconditioned blocks are no content");
    let other = PreconditionRequest { share: 0.5, ..order.clone() };
    let error = job(&target, &other, true).unwrap_err();
    assert!(error.to_string().contains("other settings"), "{error}");
    // A record lists allowed losses: one that others could have written is not followed.
    let note = target.path.with_extension("json");
    let mode = |mode| fs::set_permissions(&note, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o666);
    let error = job(&target, &order, true).unwrap_err();
    assert!(
        error.is_request() && error.to_string().contains("can be written by others"),
        "{error}"
    );
    mode(0o600);
    let mut first = None;
    let limit = Some(Duration::from_secs(60));
    let going_on = job(&target, &order, true).unwrap();
    let done = going_on.run(limit, RULE, &AtomicBool::new(false), &mut |progress| {
        first.get_or_insert(progress.bytes);
    });
    let done = done.unwrap();
    assert!(first.unwrap() >= report.written_bytes, "it began anew");
    assert_eq!((done.ended, done.written_bytes), (JobEnd::Done, 64 * MIB));
    assert!(written(&target.path).iter().all(|written| *written));
    let error = job(&target, &order, true).unwrap_err();
    assert!(error.to_string().contains("nothing to resume"), "{error}");
}

#[test]
fn an_irreplaceable_record_is_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    if no_direct_io(folder.path()) {
        return;
    }
    let target = file(folder.path(), MIB);
    let note = target.path.with_extension("json");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let order = PreconditionRequest { rate: Some(1e6), ..PreconditionRequest::default() };
    let stopped = || {
        let limit = Some(Duration::from_millis(100));
        let job = job(&target, &order, false).unwrap();
        job.run(limit, RULE, &AtomicBool::new(false), &mut |_| {}).unwrap()
    };
    // As another umask left it, in a folder of this user's: the new one is this user's alone.
    fs::write(&note, "").unwrap();
    mode(&note, 0o664);
    assert_eq!(stopped().ended, JobEnd::TimeLimit);
    assert_eq!(fs::metadata(&note).unwrap().permissions().mode() & 0o777, 0o600);
    job(&target, &order, true).unwrap();
    // Where others put files it may be another's.
    mode(&note, 0o666);
    mode(folder.path(), 0o777);
    let error = job(&target, &order, false).unwrap_err();
    assert!(error.is_request() && error.to_string().contains("disk.json"), "{error}");
    mode(folder.path(), 0o700);
    if std::os::unix::fs::chown(&note, Some(12_345), None).is_ok() {
        assert_eq!(stopped().ended, JobEnd::TimeLimit);
        job(&target, &order, true).unwrap();
    }
    fs::remove_file(&note).unwrap();
    std::os::unix::fs::symlink("elsewhere", &note).unwrap();
    let error = job(&target, &order, false).unwrap_err().to_string();
    assert!(error.contains("is a symbolic link"), "{error}");
    fs::remove_file(&note).unwrap();
    fs::create_dir(&note).unwrap();
    job(&target, &order, false).unwrap_err();
}

#[test]
fn a_time_limit_ends_the_job() {
    let folder = tempfile::tempdir().unwrap();
    if no_direct_io(folder.path()) {
        return;
    }
    let target = file(folder.path(), 16 * MIB);
    let order = PreconditionRequest { rate: Some(1e6), ..PreconditionRequest::default() };
    let limit = Some(Duration::from_millis(300));
    let report =
        job(&target, &order, false).unwrap().run(limit, RULE, &AtomicBool::new(false), &mut |_| {});
    assert_eq!(report.unwrap().ended, JobEnd::TimeLimit);
}

#[test]
fn random_writes_end_steady_or_after_the_last_round() {
    let folder = tempfile::tempdir().unwrap();
    if no_direct_io(folder.path()) {
        return;
    }
    let random = Some((Duration::from_millis(100), 4));
    let order =
        PreconditionRequest { share: 0.5, times: 0.0, random, ..PreconditionRequest::default() };
    let run = |rule| {
        let target = file(folder.path(), 16 * MIB);
        let job = job(&target, &order, false).unwrap();
        job.run(None, rule, &AtomicBool::new(false), &mut |_| {}).unwrap()
    };
    let steady = run(RULE);
    let rounds = steady.random.unwrap();
    assert!(steady.ended == JobEnd::Done && rounds.steady && rounds.rounds.len() == 2);
    assert!(rounds.rounds.iter().all(|iops| *iops > 0.0));
    let never = run(NEVER);
    assert_eq!(never.ended, JobEnd::NotSteady);
    assert_eq!(never.random.map(|random| random.rounds.len()), Some(4));
    let blocks = written(&folder.path().join("disk.img"));
    assert!(blocks[..2048].iter().any(|written| *written));
    assert!(blocks[2048..].iter().all(|written| !written), "beyond the share");
}

#[test]
fn an_unconfirmed_target_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    let target = Target::inspect(&DeviceSystem::live(), &path, None).unwrap();
    assert_eq!((target.kind, target.bytes), (TargetKind::File, MIB));
    let state = folder.path().join("state");
    let new = |consent: &Consent| {
        PreconditionJob::new(&target, PreconditionRequest::default(), consent, state.clone(), false)
            .map(drop)
    };
    for given in [vec![], vec!["another.img".to_owned()]] {
        let error = new(&named(&given)).unwrap_err();
        assert!(error.is_request() && error.to_string().contains("--confirm"), "{error}");
        assert!(error.to_string().contains("disk.img"), "{error}");
    }
    // A file that holds something wants that to be named, too, and by no other file's word.
    let mut consent = named(&["disk.img".to_owned()]);
    let error = new(&consent).unwrap_err().to_string();
    assert!(error.contains("data of no known kind") && error.contains("--overwrite data:"));
    consent.overwrite = vec!["data:00000000".to_owned(), "ext4".to_owned(), "data".to_owned()];
    new(&consent).unwrap_err();
    consent.overwrite = vec![target.content[0].token.clone()];
    new(&consent).unwrap();
    assert!(
        PreconditionJob::describe(&target, &PreconditionRequest::default()).unwrap()[2]
            .contains("2MiB sequentially")
    );
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 7) && !state.exists());
}

#[test]
fn refuses_invalid_settings() {
    let folder = tempfile::tempdir().unwrap();
    let target = file(folder.path(), 16 * MIB);
    let orders = [
        (PreconditionRequest { share: 0.0, ..PreconditionRequest::default() }, "share of 0"),
        (PreconditionRequest { share: 1.1, ..PreconditionRequest::default() }, "share of 1.1"),
        (PreconditionRequest { times: -1.0, ..PreconditionRequest::default() }, "-1 times"),
        (PreconditionRequest { depth: 0, ..PreconditionRequest::default() }, "0 writes in flight"),
        (PreconditionRequest { rate: Some(0.0), ..PreconditionRequest::default() }, "never ends"),
        (
            PreconditionRequest {
                random: Some((Duration::ZERO, 25)),
                ..PreconditionRequest::default()
            },
            "longer than 0 s",
        ),
        (
            PreconditionRequest { purge: Purge::Sanitize, ..PreconditionRequest::default() },
            "cannot be sanitized",
        ),
        (
            PreconditionRequest { purge: Purge::Format, ..PreconditionRequest::default() },
            "cannot be sanitized or formatted",
        ),
    ];
    for (order, words) in orders {
        let error = job(&target, &order, false).unwrap_err();
        assert!(error.is_request() && error.to_string().contains(words), "{words}: {error}");
    }
    let small = file(folder.path(), 100 << 10);
    let error = job(&small, &PreconditionRequest::default(), false).unwrap_err();
    assert!(error.to_string().contains("too small"), "{error}");
    assert!(!target.path.exists(), "nothing was made");
}

#[test]
fn refuses_paths_that_are_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let system = DeviceSystem::live();
    let refused = |path: &str, size| {
        Target::inspect(&system, &folder.path().join(path), size).unwrap_err().to_string()
    };
    assert!(refused("", None).contains("neither a block device nor a file"));
    assert!(refused("missing", None).contains("--size"));
    assert!(refused("no/folder/x", None).contains("does not exist"));
}

/// A recorded machine with one disk, `sda` (8:0), and what makes it one that must not be written.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    fn new() -> Recorded {
        let recorded = Recorded { folder: tempfile::tempdir().unwrap() };
        recorded.write("sys/block/sda/dev", "8:0\n");
        recorded.write("sys/block/sda/size", "2048000\n");
        recorded.write("sys/block/sda/ro", "0\n");
        recorded.write("sys/block/sda/device/model", "Model X\n");
        recorded.write("sys/block/sda/device/serial", "S123\n");
        recorded.write("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
        recorded.write("proc/swaps", "Filename Type Size Used Priority\n");
        recorded
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn why(&self, number: &str) -> String {
        DeviceSystem::at(self.folder.path()).check(number).unwrap_err()
    }
}

#[test]
fn a_device_in_use_is_refused() {
    let fine = Recorded::new();
    DeviceSystem::at(fine.folder.path()).check("8:0").unwrap();

    let one = Recorded::new();
    one.write("sys/block/sda/ro", "1\n");
    assert!(one.why("8:0").contains("read-only"));
    let one = Recorded::new();
    one.write("proc/self/mountinfo", "40 27 8:0 / /my\\040data rw - xfs /dev/sda rw\n");
    assert!(one.why("8:0").contains("mounted at /my data"));
    let one = Recorded::new();
    one.write("proc/self/mountinfo", "40 27 0:33 / /btr rw - btrfs /dev/sda rw\n");
    assert!(one.why("8:0").contains("mounted at /btr"), "a number of its own");
    let one = Recorded::new();
    one.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda partition 1 0 -2\n");
    assert!(one.why("8:0").contains("/dev/sda is used as swap"));
    let one = Recorded::new();
    fs::create_dir_all(one.folder.path().join("sys/block/sda/holders/dm-3")).unwrap();
    assert!(one.why("8:0").contains("used by dm-3"));
    let one = Recorded::new();
    one.write("sys/block/loop7/loop/backing_file", "/dev/sda\n");
    assert!(one.why("8:0").contains("used by loop7"));

    let parts = Recorded::new();
    parts.write("sys/block/sda/sda1/partition", "1\n");
    parts.write("sys/block/sda/sda1/dev", "8:1\n");
    assert!(parts.why("8:0").contains("has partitions (sda1)"));
    assert!(parts.why("8:1").contains("is a partition; name the whole device"));
    parts.write("proc/self/mountinfo", "40 27 8:1 / /home rw - ext4 /dev/sda1 rw\n");
    assert!(parts.why("8:0").contains("mounted at /home"));
    assert!(parts.why("9:9").contains("no device 9:9"));
}

#[test]
fn other_namespaces_of_a_controller_are_checked() {
    let one = Recorded::new();
    for (name, number) in [("nvme0n1", "259:0"), ("nvme0n2", "259:1"), ("nvme1n1", "259:2")] {
        one.write(&format!("sys/block/{name}/dev"), &format!("{number}\n"));
        one.write(&format!("sys/block/{name}/ro"), "0\n");
    }
    let others = |name| DeviceSystem::at(one.folder.path()).others_in_use(name);
    assert_eq!(others("nvme0n1"), None);
    one.write("proc/self/mountinfo", "40 27 259:1 / /home rw - ext4 /dev/nvme0n2 rw\n");
    assert!(others("nvme0n1").is_some_and(|why| why.starts_with("nvme0n2 is mounted at /home")));
    assert_eq!(others("nvme0n2"), None, "the other one is free");
    assert_eq!(others("nvme1n1"), None, "of another controller");
    assert_eq!(others("sda"), None);
}

/// Runs a command in mounts of its own with a file system of 4 MiB in memory at the folder that
/// it gets; None where that cannot be.
fn on_a_full_disk(script: &str) -> Option<std::process::Output> {
    let folder = tempfile::tempdir().unwrap();
    let inside = format!("mount -t tmpfs -o size=4m none \"$1\" && {script}");
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &inside, "sh"]).arg(folder.path());
    command.env("TEST", std::env::current_exe().unwrap());
    let output = command.output();
    match output {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("unshare failed") => {
            Some(output)
        }
        _ => {
            eprintln!("skipped: mounting a small file system needs root");
            None
        }
    }
}

#[test]
fn an_error_is_reported_with_its_sector_and_not_retried() {
    let Some(output) = on_a_full_disk(
        "FULL=\"$1\" exec \"$TEST\" --ignored --exact in_a_full_file_system --nocapture",
    ) else {
        return;
    };
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output_text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output_text.contains("1 passed"), "{output_text}");
}

#[test]
#[ignore = "is run by the test above, in a file system that is full"]
fn in_a_full_file_system() {
    let folder = PathBuf::from(std::env::var("FULL").unwrap());
    let target = file(&folder, 64 * MIB);
    let order =
        PreconditionRequest { purge: Purge::None, depth: 4, ..PreconditionRequest::default() };
    let done =
        job(&target, &order, false).unwrap().run(None, RULE, &AtomicBool::new(false), &mut |_| {});
    let error = done.unwrap_err();
    let words = error.to_string();
    if words.contains("past the page cache") {
        eprintln!("this kernel's tmpfs has no direct I/O");
        return;
    }
    assert!(!error.is_request(), "the device failed, not the request");
    let sector = words.split("at sector ").nth(1).and_then(|rest| rest.split(' ').next());
    let sector: u64 = sector.unwrap_or_else(|| panic!("no sector: {words}")).parse().unwrap();
    // What came before it is there, and it itself is not.
    let file = fs::File::open(&target.path).unwrap();
    let mut block = [0; 512];
    file.read_exact_at(&mut block, 0).unwrap();
    assert!(block.iter().any(|byte| *byte != 0));
    assert!((MIB / 512..5 * MIB / 512).contains(&sector), "{words}");
    assert!(words.contains("other writes in flight"), "{words}");
    // How far it was stays noted, so that it can go on when there is room.
    assert!(target.path.with_extension("json").exists());
}
