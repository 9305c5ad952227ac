//! What lies on a device is named before it is overwritten. Loop devices need root; a test that
//! cannot have one says that it is skipped.

use std::path::Path;
use std::process::Command;

use crate::tool::{Place, command_output};

/// A loop device on a file, detached when this is dropped.
struct Disk(String);

impl Disk {
    fn new(place: &Place, bytes: u64) -> Option<Disk> {
        let file = place.file("disk.img");
        std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Disk(String::from_utf8(output.stdout).unwrap().trim().to_owned()))
            }
            _ => {
                eprintln!("skipped: loop devices need root and losetup");
                None
            }
        }
    }

    fn with_file_system(&self, uuid: &str) -> bool {
        let mkfs = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-L", "home", "-U", uuid])
            .arg(&self.0)
            .status();
        let made = mkfs.is_ok_and(|status| status.success());
        if !made {
            eprintln!("skipped: needs mkfs.ext4");
        }
        made
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

fn uuid_of(device: &str) -> String {
    let output = Command::new("blkid").args(["-p", "-o", "value", "-s", "UUID", device]).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

const UUID: &str = "3f2a91c0-1122-3344-5566-778899aabbcc";

#[test]
fn a_file_system_is_overwritten_only_if_named() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, 32 << 20) else { return };
    if !disk.with_file_system(UUID) {
        return;
    }
    let device = disk.0.as_str();
    let dry = place.ok(&["precondition", device, "--dry-run"]);
    for words in ["an ext4 file system `home` (UUID 3f2a91c0", "--overwrite ext4:3f2a91c0"] {
        assert!(dry.contains(words), "{words}: {dry}");
    }
    let file = place.file("disk.img").display().to_string();
    let base = ["precondition", device, "--times", "1", "--no-purge"];
    let run = |more: &[&str]| place.run(&[&base[..], more].concat());
    let word = "--overwrite ext4:3f2a91c0";
    for (more, words) in [
        (vec![], word),
        (vec!["--confirm", &file], word),
        (vec!["--overwrite", "ext4:3f2a91c0"], "--confirm"),
        (vec!["--confirm", &file, "--overwrite", "ext4"], word),
        (vec!["--confirm", &file, "--overwrite", "ext4:00000000"], word),
    ] {
        let result = run(&more);
        assert_eq!(result.code, 2, "{more:?}: {result:#?}");
        assert!(result.err.contains(words), "{more:?}: {}", result.err);
    }
    assert_eq!(uuid_of(device).trim(), UUID, "it was written to");
    let result = run(&["--confirm", &file, "--overwrite", "ext4:3f2a91c0"]);
    assert_eq!(result.code, 0, "{result:#?}");
    // What it wrote itself is nobody's loss.
    let result = run(&["--confirm", &file]);
    assert_eq!(result.code, 0, "{result:#?}");
}

const STUDY: &str = r#"
name = "units"
sequence = ["half"]
[store.raw]
[data]
records = 200
key = { form = "text", size = 16 }
value = { size = 4096 }
[workloads.half]
from = "ycsb-a"
[measure]
warm_up = "50ms"
time = "200ms"
[probes]
idle = "0s"
[mbwu]
threads = [1]
rounds = 5
"#;

#[test]
fn a_resumed_evaluation_mounts_only_the_file_system_that_it_made() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let Some(disk) = Disk::new(&place, 64 << 20) else { return };
    if !disk.with_file_system(UUID) {
        return;
    }
    let device = disk.0.as_str();
    let file = place.file("disk.img").display().to_string();
    let run = ["run", "study.toml", "--out", "units.sqlite", "--device", device];
    let resume = [&run[..], &["--resume"]].concat();
    place.refused(&resume, &["units.sqlite", "no file system of this evaluation"]);
    place.refused(&[&run[..], &["--confirm", &file]].concat(), &["--overwrite ext4:3f2a91c0"]);
    let words = ["--confirm", &file, "--overwrite", "ext4:3f2a91c0"];
    let done = place.run(&[&run[..], &words].concat());
    assert!(done.code == 0 || done.code == 1, "{done:#?}");
    let made = uuid_of(device);
    assert!(made.trim() != UUID && !made.is_empty());
    let again = place.run(&resume);
    assert_eq!(again.code, done.code, "{again:#?}");
    assert!(again.err.contains("rounds are done"), "{}", again.err);
    // The device of another: neither mounted nor written to.
    assert!(disk.with_file_system(UUID));
    let before = std::fs::read(Path::new(&file)).unwrap();
    place.refused(&resume, &["not the file system of this evaluation", made.trim(), UUID]);
    assert!(std::fs::read(Path::new(&file)).unwrap() == before, "it was written to");
}

#[test]
fn the_progress_of_a_device_is_found_whatever_other_disks_there_are() {
    let place = Place::new();
    let Some(disk) = Disk::new(&place, 32 << 20) else { return };
    let (device, file) = (disk.0.as_str(), place.file("disk.img").display().to_string());
    let base = ["precondition", device, "--times", "1", "--no-purge", "--rate", "8MB"];
    let run = |more: &[&str]| {
        let mut command = place.command(&[&base[..], &["--confirm", &file], more].concat());
        command_output(command.env("KVMETER_STATE_DIR", place.file("mine")).output().unwrap())
    };
    // Another disk on a file of this name: one of the two names is not this disk's alone.
    let elsewhere = Place::new();
    let Some(other) = Disk::new(&elsewhere, 1 << 20) else { return };
    let cut = run(&["--limit", "1s"]);
    assert_eq!(cut.code, 1, "{cut:#?}");
    let notes: Vec<_> =
        std::fs::read_dir(place.file("mine")).unwrap().map(Result::unwrap).collect();
    let name = notes[0].file_name().into_string().unwrap();
    assert!(notes.len() == 1 && name.starts_with("precondition-"), "{notes:?}");
    drop(other);
    let without = run(&["--resume", "--limit", "1s"]);
    assert_eq!(without.code, 1, "{without:#?}");
    let _again = Disk::new(&elsewhere, 1 << 20);
    let resumed = run(&["--resume"]);
    assert_eq!(resumed.code, 0, "{resumed:#?}");
}
