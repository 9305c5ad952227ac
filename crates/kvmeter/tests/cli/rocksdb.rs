//! RocksDB's library, where it is and where it is not.

use std::process::Command;

use crate::tool::{CommandOutput, Place, command_output};

/// Hides every library of RocksDB that the loader knows, for one process, then runs the command.
const HIDE: &str = r#"for file in $(PATH="$PATH:/usr/sbin:/sbin" ldconfig -p | sed -n 's/.*librocksdb.* => //p')
do mount --bind /dev/null "$(readlink -f "$file")" || exit 77; done; exec "$@""#;

/// `None` where nothing may be mounted.
fn without_rocksdb(place: &Place, args: &[&str]) -> Option<CommandOutput> {
    let bare = place.command(args);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", HIDE, "sh"]).arg(bare.get_program()).args(args);
    command.current_dir(place.path()).env("HOME", place.path()).env("LD_LIBRARY_PATH", "");
    command.env("KVMETER_STATE_DIR", place.file("state/kvmeter"));
    let output = command_output(command.output().ok()?);
    let may_not = output.code == 77 || output.err.starts_with("unshare:");
    if may_not {
        eprintln!("skipped: {}", output.err);
    }
    (!may_not).then_some(output)
}

#[test]
fn a_machine_without_rocksdb_says_what_to_do_and_runs_the_rest() {
    let place = Place::new();
    let Some(refused) = without_rocksdb(&place, &["bench", "rocksdb:db"]) else { return };
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("apt-get install librocksdb"), "{}", refused.err);
    assert!(!place.file("db").exists(), "nothing is left of it");
    let Some(doctor) = without_rocksdb(&place, &["doctor", "--json"]) else { return };
    let checks = doctor.json()["checks"].as_array().unwrap().clone();
    let rocksdb = checks.iter().find(|check| check["name"] == "rocksdb").unwrap();
    assert_eq!(rocksdb["state"], "unavailable", "{rocksdb}");
    let Some(study) = without_rocksdb(&place, &["run", "quickstart", "--dry-run"]) else { return };
    assert_eq!(study.code, 0, "{study:?}");
    assert!(study.out.contains("spill"), "{}", study.out);
    let all = format!("{}{}", study.out, study.err);
    assert!(all.contains("apt-get install librocksdb"), "{all}");
}

#[test]
fn the_result_has_the_version_that_ran() {
    let place = Place::new();
    let doctor = place.json(&["doctor", "--json"]);
    let checks = doctor["checks"].as_array().unwrap();
    let json = checks.iter().find(|check| check["name"] == "rocksdb").unwrap();
    if json["state"] == "unavailable" {
        eprintln!("skipped: {json}");
        return;
    }
    let result = place.json(&[
        "bench",
        "rocksdb:db",
        "--records",
        "1k",
        "--ops",
        "1k",
        "--workload",
        "ycsb-c",
        "--json",
    ]);
    let text = result.to_string();
    let json = json["found"].as_str().unwrap();
    let version = json.split(", ").next().unwrap();
    assert!(version.starts_with("RocksDB ") && text.contains(version), "{version}: {text}");
    // `bundled`, or the path of the shared library.
    let library = json.split(", ").nth(1).unwrap().split(';').next().unwrap();
    assert!(text.contains(library), "{library}: {text}");
}
