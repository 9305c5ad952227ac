//! `kill -9` in the middle: whatever was acknowledged is there, whatever was not is not
//! there by half.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::Run;
use record::{ResultsFile, RunFilter};

use crate::example;

const FILE: &str = "KVMETER_TEST_RESULTS";
const KILLS: u32 = 25;

/// The same every time it is asked for, different for each ordinal.
fn run(ordinal: u32) -> Run {
    let mut run = example::run("e", ordinal);
    run.series =
        (0..200).map(|n| example::point(f64::from(n + ordinal), model::Op::Read)).collect();
    run
}

/// The other half of the test below, in a child: keeps runs until it is killed, and says
/// which are kept. By itself it has nothing to do.
#[test]
fn write_until_killed() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut file = ResultsFile::open_or_create(path).unwrap();
    if file.executions().unwrap().is_empty() {
        file.begin(&example::execution("e")).unwrap();
    }
    let from = file.finished_runs("e").unwrap().last().map_or(0, |last| last + 1);
    for ordinal in from.. {
        file.write_run(&run(ordinal)).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nkept {ordinal}").unwrap();
        out.flush().unwrap();
    }
}

fn child(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::write_until_killed", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn every_acknowledged_run_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let mut acknowledged = BTreeSet::new();
    let mut interrupted = 0;
    for kill in 0..KILLS {
        let mut child = child(&path);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut kept = lines.filter_map(|line| line.strip_prefix("kept ")?.parse::<u32>().ok());
        // Some are killed while they make the file, the others at some point of a run.
        if kill % 5 != 0 {
            acknowledged.extend(kept.by_ref().take(2));
        }
        std::thread::sleep(Duration::from_micros(u64::from(kill) * 211));
        child.kill().unwrap();
        acknowledged.extend(kept);
        child.wait().unwrap();
        interrupted += u32::from(folder.path().join("results.sqlite-journal").exists());

        // Read first, so that reading alone has to cope with what was left.
        match ResultsFile::read(&path) {
            Ok(file) => {
                let done = file.finished_runs("e").unwrap();
                assert!(done.is_superset(&acknowledged), "{acknowledged:?} in {done:?}");
                // Those that were kept but not yet said so count from now on.
                acknowledged.extend(&done);
            }
            Err(error) => assert!(acknowledged.is_empty(), "{error}"),
        }
    }
    assert!(acknowledged.len() > 20, "only {} runs were kept", acknowledged.len());
    eprintln!("{KILLS} kills, {} runs, {interrupted} in the middle", acknowledged.len());

    let file = ResultsFile::open(&path).unwrap();
    for kept in file.runs(&RunFilter::all()).unwrap() {
        assert_eq!(kept, run(kept.ordinal));
    }
    drop(file);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}
