//! Several results files in one.

use std::path::{Path, PathBuf};

use record::{RecordError, ResultsFile, RunFilter, RunSelection, merge};
use tempfile::TempDir;

use crate::example;

/// A results file of one execution with two runs on a machine of this name.
fn measured(folder: &TempDir, name: &str, machine: &str) -> PathBuf {
    let path = folder.path().join(name);
    let mut execution = example::execution(&format!("execution of {name}"));
    execution.machine.id = machine.to_owned();
    let mut file = ResultsFile::create(&path).unwrap();
    file.begin(&execution).unwrap();
    for ordinal in 0..2 {
        let mut run = example::run(&execution.id, ordinal);
        run.id = format!("{name} {ordinal}");
        file.write_run(&run).unwrap();
    }
    path
}

fn whole(path: &Path) -> RunSelection {
    RunSelection::read(path, RunFilter::all()).unwrap()
}

#[test]
fn merged_runs_keep_their_execution_and_machine() {
    let folder = tempfile::tempdir().unwrap();
    let parts =
        [measured(&folder, "a", "arm"), measured(&folder, "b", "x86")].map(|path| whole(&path));
    let out = folder.path().join("both");
    merge(&parts, &out).unwrap();
    let both = whole(&out);
    let expected: Vec<_> = parts.iter().flat_map(|part| part.executions.clone()).collect();
    assert_eq!(both.executions, expected);
    let expected: Vec<_> = parts.iter().flat_map(|part| part.runs.clone()).collect();
    assert_eq!(both.runs, expected);
    let machines: Vec<&str> =
        both.pairs().iter().map(|(execution, _)| execution.machine.id.as_str()).collect();
    assert_eq!(machines, ["arm", "arm", "x86", "x86"]);
    // And goes on to be merged.
    let third = [both, whole(&measured(&folder, "c", "x86"))];
    merge(&third, &folder.path().join("three")).unwrap();
    assert_eq!(whole(&folder.path().join("three")).runs.len(), 6);
}

#[test]
fn merge_refuses_duplicates_and_existing_files() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (measured(&folder, "a", "arm"), measured(&folder, "b", "x86"));
    let copy = folder.path().join("copy");
    std::fs::copy(&a, &copy).unwrap();
    let out = folder.path().join("out");
    let refused = merge(&[whole(&a), whole(&b), whole(&copy)], &out).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, RecordError::ExecutionTwice { .. }), "{text}");
    assert!(text.contains("/a and") && text.contains("/copy both hold"), "{text}");
    assert!(!out.exists());
    let refused = merge(&[whole(&a), whole(&b)], &a).unwrap_err();
    assert!(matches!(refused, RecordError::Exists(_)), "{refused}");
    assert_eq!(whole(&a).runs.len(), 2);
    // A run of one id under another execution's name: nothing of the other is kept either.
    let mut twin = whole(&b);
    twin.runs[1].id = twin.runs[0].id.clone();
    assert!(merge(&[whole(&a), twin], &out).is_err());
    assert!(!out.exists());
}
