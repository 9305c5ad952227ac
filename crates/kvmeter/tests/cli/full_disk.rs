//! A full disk: a clear error, nothing of earlier runs lost, and no finished run either.

use std::path::Path;
use std::process::Command;

use crate::tool::{CommandOutput, Place, command_output, until};

/// A small file system of its own; needs root.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(at: &'a Path, size: &str) -> Option<Small<'a>> {
        std::fs::create_dir(at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .output()
            .unwrap();
        if mount.status.success() {
            return Some(Small(at));
        }
        eprintln!("skipped: {}", String::from_utf8_lossy(&mount.stderr));
        None
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_during_the_load_loses_nothing() {
    let place = Place::new();
    let disk = place.file("disk");
    let Some(_small) = Small::mount(&disk, "120M") else { return };
    place.ok(&["bench", "rocksdb:disk/db", "--records", "1k", "--ops", "1k", "--out", "r.sqlite"]);
    // The check before the load passes; then the room is taken by somebody else.
    let room = disk.join("taken");
    let study = format!(
        "name = \"full\"\nsequence = [\"load\", \"ycsb-a\"]\n[store.rocksdb]\npath = \"{}\"\n\
         compression = \"none\"\n[data]\nrecords = 60000\n",
        disk.join("db").display()
    );
    place.write("full.toml", &study);
    let child = place.start(&["run", "full.toml", "--out", "full.sqlite"]);
    crate::tool::until("the results file", || place.file("full.sqlite").exists());
    std::fs::write(&room, vec![0u8; 90 << 20]).or_else(|_| std::fs::write(&room, [0])).unwrap();
    let result = crate::tool::command_output(child.wait_with_output().unwrap());
    assert_eq!(result.code, 2, "{result:#?}");
    assert!(result.err.contains("space"), "{}", result.err);
    std::fs::remove_file(&room).unwrap();
    // Earlier results are whole, and the directory works again.
    assert_eq!(place.json(&["report", "r.sqlite", "--json"]).as_array().unwrap().len(), 1);
    place.ok(&["bench", "rocksdb:disk/db", "--records", "1k", "--ops", "1k", "--quiet"]);
}

/// Bytes that are free.
fn free(at: &Path) -> u64 {
    let df = Command::new("df").args(["--block-size=1", "--output=avail"]).arg(at).output();
    let text = String::from_utf8(df.unwrap().stdout).unwrap();
    text.lines().last().unwrap().trim().parse().unwrap()
}

#[test]
fn a_disk_that_fills_up_during_a_run_loses_no_run() {
    let place = Place::new();
    let disk = place.file("disk");
    let Some(_small) = Small::mount(&disk, "2M") else { return };
    place.write(
        "full.toml",
        "name = \"full\"\nsequence = [\"ycsb-c\"]\n[store.null]\n\
                              [measure]\ntime = \"2s\"\n",
    );
    for (file, args) in [
        ("disk/bench.sqlite", vec!["bench", "null", "--time", "2s"]),
        ("disk/run.sqlite", vec!["run", "full.toml", "--html", "page.html"]),
    ] {
        let child = place.start(&[&args[..], &["--json", "--out", file]].concat());
        // A new file has some 150 KB; the rest is what was set aside.
        until("the reserve", || place.file(file).exists() && free(&disk) < (2 << 20) - (600 << 10));
        let mut taken = std::fs::File::create(disk.join("taken")).unwrap();
        while std::io::Write::write_all(&mut taken, &[1; 4096]).is_ok() {}
        let result = command_output(child.wait_with_output().unwrap());
        assert!(result.code < 2, "{args:?}: {result:#?}");
        let run = result.json()["run"].clone();
        std::fs::remove_file(disk.join("taken")).unwrap();
        assert_eq!(place.json(&["report", file, "--json"])[0]["run"], run, "{args:?}");
        std::fs::remove_file(place.file(file)).unwrap();
    }
}

#[test]
fn a_full_disk_is_reported_before_measuring() {
    let place = Place::new();
    let disk = place.file("disk");
    let Some(_small) = Small::mount(&disk, "600K") else { return };
    place.refused(
        &["bench", "null", "--time", "1h", "--out", "disk/r.sqlite"],
        &["lacks the", "KiB", "--out"],
    );
}

#[test]
fn a_workload_file_that_cannot_be_written_loses_nothing() {
    let place = Place::new();
    let disk = place.file("disk");
    let Some(_small) = Small::mount(&disk, "64K") else { return };
    let line = |request: u32| format!("{request},key:{:08},12,100,1,get,0\n", request % 7);
    place.write("requests.csv", &(0..500).map(line).collect::<String>());
    let describe = ["workload", "describe", "requests.csv", "--out", "disk/mine.toml"];
    place.ok(&describe);
    let before = std::fs::read_to_string(disk.join("mine.toml")).unwrap();
    std::fs::write(disk.join("taken"), vec![0u8; 1 << 20]).unwrap_err();
    let result = place.run(&describe);
    assert_eq!(result.code, 2, "{result:#?}");
    for words in ["--out disk/mine.toml", "space"] {
        assert!(result.err.contains(words), "{}", result.err);
    }
    assert!(result.out.contains("It only reads"), "the description is shown: {}", result.out);
    assert_eq!(std::fs::read_to_string(disk.join("mine.toml")).unwrap(), before);
}

#[test]
fn a_capture_on_a_full_disk_keeps_what_was_written() {
    let place = Place::new();
    let disk = place.file("disk");
    let Some(_small) = Small::mount(&disk, "512K") else { return };
    // Keys that do not compress, in several blocks of a second each.
    let line = |request: u64| {
        let key = model::random::mix(request);
        format!("{}.{:06} [0 a:1] \"GET\" \"{key:016x}\"\n", request / 8000, request % 8000 * 125)
    };
    place.write("m.log", &(0..100_000).map(line).collect::<String>());
    let result = place.run(&["workload", "capture", "m.log", "--out", "disk/t.kvtrace"]);
    assert_eq!(result.code, 2, "{result:#?}");
    for words in ["disk/t.kvtrace", "space", "--trace-skip-bad 1"] {
        assert!(result.err.contains(words), "{}", result.err);
    }
    let describe = ["workload", "describe", "disk/t.kvtrace", "--trace-skip-bad", "1", "--json"];
    let requests = place.json(&describe)["requests"].as_u64().unwrap();
    assert!((8000..100_000).contains(&requests), "{requests}");
}

/// Measures with a results file that goes away meanwhile.
fn unkept(args: &[&str], file: &str) -> CommandOutput {
    let place = Place::new();
    place.write(
        "gone.toml",
        "name = \"gone\"\nsequence = [\"ycsb-c\"]\n[store.null]\n\
                              [measure]\ntime = \"4s\"\n",
    );
    let child = place.start(args);
    until("the results file", || place.file(file).metadata().is_ok_and(|found| found.len() > 0));
    // Its run has begun by then, and has not ended.
    std::thread::sleep(std::time::Duration::from_secs(1));
    std::fs::remove_file(place.file(file)).unwrap();
    command_output(child.wait_with_output().unwrap())
}

#[test]
fn a_run_that_cannot_be_stored_is_shown() {
    let bench = ["bench", "null", "--time", "4s", "--out", "r.sqlite"];
    let run = ["run", "gone.toml", "--out", "r.sqlite", "--html", "r.html"];
    for args in [&bench[..], &run[..]] {
        let text = unkept(args, "r.sqlite");
        let json = unkept(&[args, &["--json"]].concat(), "r.sqlite");
        assert_eq!((text.code, json.code), (2, 2), "{text:#?} {json:#?}");
        assert!(text.out.contains("null ycsb-c"), "{text:#?}");
        assert!(json.json()["throughput_ops_s"].as_f64().unwrap() > 0.0);
        for result in [text, json] {
            assert!(result.err.contains("not in the file"), "{result:#?}");
            // Only a study can be resumed.
            assert_eq!(result.err.contains("--resume"), args[0] == "run", "{result:#?}");
        }
    }
    let search = ["search", "null", "--slo", "p99<1s", "--time", "4s", "--max-time", "9s"];
    let result = unkept(&[&search[..], &["--json", "--out", "r.sqlite"]].concat(), "r.sqlite");
    assert!(result.code == 2 && result.err.contains("not in the file"), "{result:#?}");
    // The only run was the closed loop that says where to begin.
    assert!(result.json()["calibration_ops_s"].as_f64().unwrap() > 0.0, "{result:#?}");
}

#[test]
fn a_disk_that_fails_ends_a_study_with_1_and_keeps_what_was_stored() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let place = Place::new();
    place.write(
        "fails.toml",
        "name = \"fails\"\nsequence = [\"ycsb-a\", \"ycsb-b\", \"ycsb-c\", \"ycsb-f\"]\n\
         [store.null]\n[measure]\ntime = \"2s\"\n",
    );
    let args = ["run", "fails.toml", "--out", "r.sqlite"];
    // With the signal ignored a write beyond the limit is an error, as one of a bad disk.
    let kvmeter = place.command(&args);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    command.arg(kvmeter.get_program()).args(kvmeter.get_args()).current_dir(place.path());
    for (name, value) in kvmeter.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let stored = || {
        let result = place.run(&["export", "r.sqlite", "--format", "json"]);
        serde_json::from_str::<Vec<serde_json::Value>>(&result.out).map_or(0, |runs| runs.len())
    };
    until("the first run", || stored() > 0);
    let process = Pid::from_raw(child.id().cast_signed());
    let limit = Rlimit { current: Some(4096), maximum: Some(4096) };
    prlimit(process, Resource::Fsize, limit).unwrap();
    let result = command_output(child.wait_with_output().unwrap());
    assert_eq!(result.code, 1, "{result:#?}");
    for words in ["r.sqlite: its disk failed", "not in the file"] {
        assert!(result.err.contains(words), "{words}: {}", result.err);
    }
    let kept = stored();
    assert!((1..4).contains(&kept), "{kept}");
    // Where the disk works again, the rest is measured.
    place.ok(&[&args[..], &["--resume"]].concat());
    assert_eq!(stored(), 4);
}
