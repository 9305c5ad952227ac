//! Refusals and writes on loop devices, which need root. A test without one says that it is skipped.

#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use micro::precondition::volume::{MadeFileSystem, own_mounts};
use micro::precondition::{
    Consent, DeviceSystem, JobEnd, JobReport, PreconditionError, PreconditionJob,
    PreconditionRequest, Purge, SteadyRule, Target,
};

const MIB: u64 = 1 << 20;
const RULE: SteadyRule = SteadyRule { window: 1, holds: |_| true };

/// A loop device on a file of zeros, detached when this is dropped.
struct Disk {
    device: PathBuf,
    file: PathBuf,
}

impl Disk {
    fn new(folder: &Path, name: &str) -> Option<Disk> {
        let file = folder.join(name);
        fs::File::create(&file).unwrap().set_len(32 * MIB).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        match output {
            Ok(output) if output.status.success() => {
                let device = String::from_utf8(output.stdout).unwrap();
                Some(Disk { device: PathBuf::from(device.trim()), file })
            }
            _ => {
                eprintln!("skipped: loop devices need root and losetup");
                None
            }
        }
    }

    fn made(folder: &Path, name: &str, program: &str, args: &[&str]) -> Option<Disk> {
        let disk = Disk::new(folder, name)?;
        disk.run(program, args).then_some(disk)
    }

    /// A program that another test starts at the same time may have the device for a moment.
    fn run(&self, program: &str, args: &[&str]) -> bool {
        (0..5).any(|_| {
            let done = Command::new(program).args(args).arg(&self.device).output();
            let done = done.is_ok_and(|done| done.status.success());
            if !done {
                eprintln!("skipped: {program} does not work here");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            done
        })
    }

    fn look(&self) -> Target {
        Target::inspect(&DeviceSystem::live(), &self.device, None).unwrap()
    }

    fn is_blank(&self) -> bool {
        fs::read(&self.file).unwrap().iter().all(|byte| *byte == 0)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).output();
    }
}

fn consent(target: &Target, words: &[&str]) -> Consent {
    let overwrite = words.iter().map(|word| (*word).to_owned()).collect();
    Consent { names: target.names[..1].to_vec(), overwrite }
}

fn write(
    target: &Target,
    consent: &Consent,
    state: PathBuf,
) -> Result<JobReport, PreconditionError> {
    let order =
        PreconditionRequest { purge: Purge::None, times: 0.5, ..PreconditionRequest::default() };
    let job = PreconditionJob::new(target, order, consent, state, false)?;
    job.run(None, RULE, &AtomicBool::new(false), &mut |_| {})
}

#[test]
fn an_unmounted_file_system_needs_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let uuid = ["-q", "-F", "-L", "home", "-U", "3f2a91c0-1122-3344-5566-778899aabbcc"];
    let Some(disk) = Disk::made(folder.path(), "a.img", "mkfs.ext4", &uuid) else { return };
    let before = fs::read(&disk.file).unwrap();
    let target = disk.look();
    for words in [vec![], vec!["ext4"], vec!["ext4:3f2a91c1"], vec!["xfs:3f2a91c0"]] {
        let error = write(&target, &consent(&target, &words), state.clone()).unwrap_err();
        let message = error.to_string();
        assert!(error.is_request(), "{message}");
        for part in ["`home` (UUID 3f2a91c0-1122", "--overwrite ext4:3f2a91c0"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    assert!(!state.exists() && fs::read(&disk.file).unwrap() == before, "it was written to");
    write(&target, &consent(&target, &["ext4:3f2a91c0"]), state).unwrap();
    drop(target);
    assert!(fs::read(&disk.file).unwrap() != before);

    let Some(disk) = Disk::made(folder.path(), "b.img", "mkswap", &[]) else { return };
    assert!(disk.look().content[0].token.starts_with("swap:"));
}

#[test]
fn writes_the_inspected_device_whatever_its_path_names() {
    let folder = tempfile::tempdir().unwrap();
    let disks = (Disk::new(folder.path(), "a.img"), Disk::new(folder.path(), "b.img"));
    let (Some(first), Some(second)) = disks else { return };
    let link = folder.path().join("link");
    symlink(&first.device, &link).unwrap();
    let target = Target::inspect(&DeviceSystem::live(), &link, None).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&second.device, &link).unwrap();
    write(&target, &consent(&target, &[]), folder.path().join("state")).unwrap();
    assert!(!first.is_blank() && second.is_blank());

    // A file likewise.
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    for path in [&one, &other] {
        fs::File::create(path).unwrap().set_len(MIB).unwrap();
    }
    let target = Target::inspect(&DeviceSystem::live(), &one, None).unwrap();
    fs::rename(&other, &one).unwrap();
    if write(&target, &consent(&target, &[]), folder.path().join("state")).is_ok() {
        assert!(fs::read(&one).unwrap().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn the_device_is_claimed_from_check_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(folder.path(), "a.img") else { return };
    let target = disk.look();
    let error = Target::inspect(&DeviceSystem::live(), &disk.device, None).unwrap_err();
    assert!(error.to_string().contains("is in use"), "{error}");
    assert!(!disk.run("mkfs.ext4", &["-q"]), "another program took it");
    // Who does not ask writes all the same, and is noticed.
    let writer = OpenOptions::new().write(true).open(&disk.device).unwrap();
    writer.write_all_at(b"mine", 0).unwrap();
    let error = write(&target, &consent(&target, &[]), folder.path().join("state")).unwrap_err();
    assert!(error.to_string().contains("another program wrote to it"), "{error}");
}

#[test]
fn new_content_on_a_blank_disk_needs_consent() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(folder.path(), "a.img") else { return };
    let order = PreconditionRequest {
        rate: Some(20e6),
        purge: Purge::None,
        ..PreconditionRequest::default()
    };
    let state = folder.path().join("state");
    let start = |target: &Target, words: &[&str], resume| {
        let (order, state) = (order.clone(), state.clone());
        let job = PreconditionJob::new(target, order, &consent(target, words), state, resume)?;
        let stop = AtomicBool::new(false);
        job.run(None, RULE, &stop, &mut |progress| {
            stop.store(progress.bytes > MIB, Ordering::Relaxed);
        })
    };
    assert_eq!(start(&disk.look(), &[], false).unwrap().ended, JobEnd::Stopped);
    // At the end, which is read whole.
    let writer = OpenOptions::new().write(true).open(&disk.device).unwrap();
    writer.write_all_at(&[7; 64 << 10], 31 * MIB + MIB / 2).unwrap();
    drop(writer);
    let target = disk.look();
    let error = start(&target, &[], true).unwrap_err().to_string();
    assert!(error.contains("data of no known kind"), "{error}");
    let word = target.content[0].token.clone();
    assert_eq!(start(&target, &[&word], true).unwrap().ended, JobEnd::Stopped);
    drop(target);
    // Once it was named, its remainder needs no consent, though another disk shares a name.
    let beside = folder.path().join("beside");
    fs::create_dir(&beside).unwrap();
    let other = Disk::new(&beside, "a.img").unwrap();
    assert_eq!(start(&disk.look(), &[], true).unwrap().ended, JobEnd::Stopped);
    drop(other);
    assert_eq!(start(&disk.look(), &[], true).unwrap().ended, JobEnd::Stopped);

    // Nor is it made a file system of.
    let Some(disk) = Disk::new(folder.path(), "b.img") else { return };
    let target = disk.look();
    let writer = OpenOptions::new().write(true).open(&disk.device).unwrap();
    writer.write_all_at(&[7; 64 << 10], MIB).unwrap();
    drop(writer);
    let consent = consent(&target, &[]);
    let error = MadeFileSystem::format(target, &consent).unwrap_err().to_string();
    assert!(error.contains("now holds data of no known kind"), "{error}");
    assert_eq!(fs::read(&disk.file).unwrap()[MIB as usize], 7);
}

#[test]
fn a_device_that_goes_or_shrinks_under_the_writes_is_not_called_full() {
    let folder = tempfile::tempdir().unwrap();
    let order = PreconditionRequest { purge: Purge::None, ..PreconditionRequest::default() };
    for (left, words) in [(0, "was removed"), (MIB, "shrank from 33554432 B to 1048576 B")] {
        let Some(disk) = Disk::new(folder.path(), &format!("{left}.img")) else { return };
        let target = disk.look();
        let (agreed, state) = (consent(&target, &[]), folder.path().join("state"));
        // Slow enough that there is something left to write when it goes.
        let order = PreconditionRequest { rate: Some(8e6), ..order.clone() };
        let job = PreconditionJob::new(&target, order, &agreed, state, false).unwrap();
        let mut went = false;
        let error = job
            .run(None, RULE, &AtomicBool::new(false), &mut |progress| {
                if progress.bytes > 0 && !went {
                    let file = OpenOptions::new().write(true).open(&disk.file).unwrap();
                    file.set_len(left).unwrap();
                    went = disk.run("losetup", &["--set-capacity"]);
                }
            })
            .unwrap_err();
        assert!(went && !error.is_request() && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_loop_device_is_named_by_its_backing_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(folder.path(), "a.img") else { return };
    let (hard, soft) = (folder.path().join("hard"), folder.path().join("soft"));
    fs::hard_link(&disk.file, &hard).unwrap();
    symlink(&disk.file, &soft).unwrap();
    let name = disk.device.file_name().unwrap().to_str().unwrap().to_owned();
    let refused = |path: &Path| {
        let error = Target::inspect(&DeviceSystem::live(), path, None).unwrap_err().to_string();
        assert!(error.contains(&format!("is used by {name}")), "{}: {error}", path.display());
    };
    refused(&hard);
    refused(&soft);
    fs::remove_file(&disk.file).unwrap();
    refused(&hard);
    // And a device behind a loop device, by a node of its own.
    let node = folder.path().join("node");
    let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    let made = Command::new("mknod").arg(&node).args(["b", major, minor]).status();
    if !made.is_ok_and(|made| made.success()) {
        return;
    }
    let upper = Command::new("losetup").args(["--find", "--show"]).arg(&node).output().unwrap();
    let upper = String::from_utf8(upper.stdout).unwrap().trim().to_owned();
    let upper = Disk { device: PathBuf::from(&upper), file: node };
    let error = Target::inspect(&DeviceSystem::live(), &disk.device, None).unwrap_err().to_string();
    let holder = upper.device.file_name().unwrap().to_str().unwrap();
    assert!(error.contains(&format!("is used by {holder}")), "{error}");
}

#[test]
fn backing_files_of_one_name_are_named_by_path() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let disks = (Disk::new(folder.path(), "same.img"), Disk::new(&other, "same.img"));
    let (Some(first), Some(_second)) = disks else { return };
    let target = first.look();
    let ambiguous = Consent { names: vec!["same.img".to_owned()], overwrite: Vec::new() };
    let error = target.confirm(&ambiguous).unwrap_err().to_string();
    assert!(error.contains("is also called `same.img`"), "{error}");
    assert!(error.contains(&first.file.display().to_string()), "{error}");
    target.confirm(&consent(&target, &[])).unwrap();
}

#[test]
fn mounts_only_the_file_system_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(folder.path(), "a.img") else { return };
    // Mounts are a thread's own, and end with it.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Err(why) = own_mounts() {
                eprintln!("skipped: {why}");
                return;
            }
            let target = disk.look();
            let consent = consent(&target, &[]);
            let made = MadeFileSystem::format(target, &consent).unwrap();
            let uuid = made.uuid().to_owned();
            let volume = made.mount(&folder.path().join("mounted")).unwrap();
            fs::write(volume.path().join("file"), "kept").unwrap();
            // In mounts that the process as a whole does not see.
            let error = Target::inspect(&DeviceSystem::live(), &disk.device, None).unwrap_err();
            assert!(error.to_string().contains("is in use"), "{error}");
            drop(volume);

            let made = MadeFileSystem::reopen(disk.look(), &uuid).unwrap();
            let volume = made.mount(&folder.path().join("mounted")).unwrap();
            assert_eq!(fs::read_to_string(volume.path().join("file")).unwrap(), "kept");
            drop(volume);

            let other = "3f2a91c0-1122-3344-5566-778899aabbcc";
            let error = MadeFileSystem::reopen(disk.look(), other).unwrap_err().to_string();
            assert!(error.contains(&uuid) && error.contains(other), "{error}");
            assert!(disk.run("mkfs.ext4", &["-q", "-F", "-L", "kvmeter-mbwu"]));
            let error = MadeFileSystem::reopen(disk.look(), &uuid).unwrap_err().to_string();
            assert!(error.contains("not the file system of this evaluation"), "{error}");
            assert!(disk.run("mkfs.ext4", &["-q", "-F", "-L", "other", "-U", &uuid]));
            let error = MadeFileSystem::reopen(disk.look(), &uuid).unwrap_err().to_string();
            assert!(error.contains("`other`"), "{error}");
            assert!(disk.run("mkswap", &["-f"]) && disk.run("wipefs", &["-qa"]));
            let error = MadeFileSystem::reopen(disk.look(), &uuid).unwrap_err().to_string();
            assert!(error.contains("no ext4 file system"), "{error}");
        });
    });
}
