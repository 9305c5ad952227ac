use std::path::{Path, PathBuf};

use record::{RecordError, ResultsFile};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::example;

/// A folder and a path in it at which there is nothing yet.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    (folder, path)
}

/// A results file with one run.
fn good(path: &Path) {
    let mut file = ResultsFile::create(path).unwrap();
    file.begin(&example::execution("e")).unwrap();
    file.write_run(&example::run("e", 0)).unwrap();
}

/// What each way of opening says; the file has to be as it was, with nothing beside it.
fn refusals(path: &Path) -> [RecordError; 3] {
    let before = std::fs::read(path).ok();
    let errors = [
        ResultsFile::open(path).unwrap_err(),
        ResultsFile::open_or_create(path).unwrap_err(),
        ResultsFile::read(path).unwrap_err(),
    ];
    assert_eq!(std::fs::read(path).ok(), before, "it was changed");
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    errors
}

#[test]
fn a_missing_file_is_not_made_by_reading() {
    let (_folder, path) = place();
    for error in [ResultsFile::open(&path).unwrap_err(), ResultsFile::read(&path).unwrap_err()] {
        assert!(matches!(error, RecordError::Missing(_)), "{error}");
    }
    assert!(!path.exists());
    ResultsFile::open_or_create(&path).unwrap();
    ResultsFile::open_or_create(&path).unwrap();
    assert!(matches!(ResultsFile::create(&path).unwrap_err(), RecordError::Exists(_)));
}

#[test]
fn garbage_is_not_a_results_file() {
    for bytes in ["x".repeat(3), "run,seconds\n1,2\n".repeat(999)] {
        let (_folder, path) = place();
        std::fs::write(&path, bytes).unwrap();
        for error in refusals(&path) {
            assert!(matches!(error, RecordError::NotResults(_)), "{error}");
        }
    }
}

#[test]
fn a_folder_is_not_a_results_file() {
    let (_folder, path) = place();
    std::fs::create_dir(&path).unwrap();
    for error in refusals(&path) {
        assert!(matches!(error, RecordError::NotAFile(_)), "{error}");
    }
    assert!(matches!(ResultsFile::create(&path).unwrap_err(), RecordError::Exists(_)));
}

#[test]
fn an_empty_file_is_refused_or_becomes_a_results_file() {
    let (_folder, path) = place();
    std::fs::write(&path, "").unwrap();
    for error in [ResultsFile::open(&path).unwrap_err(), ResultsFile::read(&path).unwrap_err()] {
        assert!(matches!(error, RecordError::Empty(_)), "{error}");
    }
    assert!(matches!(ResultsFile::create(&path).unwrap_err(), RecordError::Exists(_)));
    let mut file = ResultsFile::open_or_create(&path).unwrap();
    file.begin(&example::execution("e")).unwrap();
}

#[test]
fn another_applications_database_is_left_alone() {
    let (_folder, path) = place();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE run (id)").unwrap();
    for error in refusals(&path) {
        assert!(matches!(error, RecordError::Foreign(_)), "{error}");
    }
}

#[test]
fn a_newer_schema_names_both_versions() {
    let (_folder, path) = place();
    good(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    for error in refusals(&path) {
        assert!(matches!(error, RecordError::NewerSchema { found: 99, known: 10, .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("99") && message.contains("up to 10"), "{message}");
        assert!(message.contains("upgrade kvmeter"), "{message}");
    }
}

#[test]
fn a_file_that_was_cut_short_is_damaged() {
    let (_folder, path) = place();
    good(&path);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    for error in refusals(&path) {
        assert!(matches!(error, RecordError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(".recover"), "{error}");
    }
}

#[test]
fn overwritten_pages_never_panic() {
    let (_folder, path) = place();
    good(&path);
    let bytes = std::fs::read(&path).unwrap();
    let mut damaged = 0;
    for page in 1..bytes.len() / 4096 {
        let mut torn = bytes.clone();
        torn[page * 4096..(page + 1) * 4096].fill(0xa5);
        std::fs::write(&path, torn).unwrap();
        let read = ResultsFile::read(&path).and_then(|file| {
            file.executions()?;
            file.runs(&record::RunFilter::all())
        });
        match read {
            Ok(runs) => assert_eq!(runs, [example::run("e", 0)]),
            Err(RecordError::Damaged { .. }) => damaged += 1,
            Err(other) => panic!("page {page}: {other:?}"),
        }
    }
    assert!(damaged > 5, "{damaged}");
}

#[test]
fn errors_name_values_of_the_wrong_type() {
    let change = [
        ("UPDATE reading SET unit = 'furlongs'", "furlongs"),
        ("UPDATE run SET loop = 'helical'", "helical"),
        ("UPDATE series SET operation = 'ponder'", "ponder"),
        ("UPDATE latency SET histogram = x'00ff'", "histogram"),
        ("UPDATE run SET threads = -1", "-1"),
        ("UPDATE run SET label = x'ff'", "label"),
    ];
    for (sql, named) in change {
        let (_folder, path) = place();
        good(&path);
        Connection::open(&path).unwrap().execute(sql, []).unwrap();
        let error = ResultsFile::read(&path).unwrap().runs(&record::RunFilter::all()).unwrap_err();
        let known = matches!(error, RecordError::Damaged { .. } | RecordError::UnknownName { .. });
        assert!(known && error.to_string().contains(named), "{sql}: {error:?}");
    }
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_done() {
    let (_folder, path) = place();
    let file = ResultsFile::create(&path).unwrap();
    for error in
        [ResultsFile::open(&path).unwrap_err(), ResultsFile::open_or_create(&path).unwrap_err()]
    {
        assert!(matches!(error, RecordError::Locked { .. }), "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    }
    let link = path.with_file_name("link.sqlite");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(ResultsFile::open(&link).unwrap_err(), RecordError::Locked { .. }));
    drop(file);
    ResultsFile::open(&link).unwrap();
}
