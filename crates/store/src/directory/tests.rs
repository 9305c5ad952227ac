use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// Any store that lives in a directory and is built in.
fn url(path: &Path) -> StoreUrl {
    let adapter = crate::ADAPTERS.iter().find(|it| it.on_disk() && it.is_built_in()).unwrap();
    format!("{}:{}", adapter.scheme, path.display()).parse().unwrap()
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn reason(refused: Result<Directory, StoreError>) -> String {
    match refused {
        Err(error @ StoreError::Directory { .. }) => error.to_string(),
        other => panic!("not refused for its directory: {other:?}"),
    }
}

#[test]
fn creates_and_reopens_a_directory() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("a/b");
    let url = url(&path);
    assert_eq!(Directory::inspect(&path).unwrap(), DirectoryState::Absent);
    let mut directory = Directory::claim(&url, 1000).unwrap();
    assert_eq!(names(&path), ["KVMETER.json", "KVMETER.lock", "data"]);
    assert_eq!(directory.marker().dataset, None);
    assert_eq!(directory.marker().scheme, url.scheme);
    directory.set_dataset("ten", 10, "Any 1.0").unwrap();
    assert!(directory.holds("ten") && !directory.holds("nine"));
    drop(directory);

    let mut directory = Directory::claim(&url, 1000).unwrap();
    assert!(directory.holds("ten"));
    assert_eq!((directory.marker().records, &*directory.marker().store_version), (10, "Any 1.0"));
    directory.unset_dataset().unwrap();
    drop(directory);
    let directory = Directory::claim(&url, 1000).unwrap();
    assert!(!directory.holds("ten"));
}

#[test]
fn clear_keeps_other_files() {
    let home = TempDir::new().unwrap();
    let url = url(home.path());
    let mut directory = Directory::claim(&url, 0).unwrap();
    fs::create_dir(directory.data_path().join("deep")).unwrap();
    fs::write(directory.data_path().join("deep/file"), vec![1; 100_000]).unwrap();
    fs::write(home.path().join("notes.txt"), "mine").unwrap();
    directory.set_dataset("ten", 10, "Any 1.0").unwrap();
    assert!(directory.disk_bytes().unwrap() >= 100_000);
    directory.clear().unwrap();
    assert_eq!(directory.disk_bytes().unwrap(), 0);
    assert!(!directory.holds("ten"));
    assert_eq!(names(home.path()), ["KVMETER.json", "KVMETER.lock", "data", "notes.txt"]);
}

#[test]
fn refuses_foreign_files_and_leaves_them_untouched() {
    let home = TempDir::new().unwrap();
    let url = url(home.path());
    for name in ["CURRENT", "MANIFEST-000004", "000005.sst", "LOG"] {
        fs::write(home.path().join(name), name).unwrap();
    }
    let before = names(home.path());
    let message = reason(Directory::claim(&url, 0));
    assert!(message.contains("did not make (000005.sst, CURRENT, LOG, ...)"), "{message}");
    assert_eq!(names(home.path()), before);
    assert_eq!(fs::read_to_string(home.path().join("CURRENT")).unwrap(), "CURRENT");
}

#[test]
fn a_file_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("file");
    fs::write(&path, "text").unwrap();
    let at = url(&path);
    assert!(reason(Directory::claim(&at, 0)).contains("is not a directory"));
    let below = url(&path.join("below"));
    assert!(reason(Directory::claim(&below, 0)).contains("is not a directory"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
}

#[test]
fn refuses_another_users_directory_in_a_shared_folder() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    let home = TempDir::new().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let path = home.path().join("db");
    fs::create_dir(&path).unwrap();
    symlink("/etc/passwd", path.join(Directory::LOCK)).unwrap();
    assert!(reason(Directory::claim(&url(&path), 0)).contains("is a symbolic link of user "));
    fs::remove_file(path.join(Directory::LOCK)).unwrap();
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root can give a directory to another user");
        return;
    }
    chown(&path, Some(12_345), None).unwrap();
    assert!(reason(Directory::claim(&url(&path), 0)).contains("belongs to user 12345"));
    assert_eq!(names(&path), [""; 0]);
}

#[test]
fn a_directory_in_use_is_refused() {
    let home = TempDir::new().unwrap();
    let url = url(home.path());
    let first = Directory::claim(&url, 0).unwrap();
    assert!(reason(Directory::claim(&url, 0)).contains("in use"));
    drop(first);
    Directory::claim(&url, 0).unwrap();
}

#[test]
fn checks_space_before_writing() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("new");
    let url = url(&path);
    let message = reason(Directory::claim(&url, 1 << 60));
    assert!(message.contains("1048576TiB are needed and "), "{message}");
    assert_eq!(Directory::inspect(&path).unwrap(), DirectoryState::Absent);
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        eprintln!("skipped: root may write anywhere");
        return;
    }
    let home = TempDir::new().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let at = url(home.path());
    assert!(reason(Directory::claim(&at, 0)).contains("cannot be written"));
    assert_eq!(names(home.path()).len(), 0);
}

#[test]
fn refuses_a_dangling_link() {
    let home = TempDir::new().unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(home.path().join("nowhere"), &link).unwrap();
    let message = reason(Directory::claim(&url(&link), 0));
    assert!(message.contains("is a dangling link"), "{message}");
    assert_eq!(names(home.path()), ["link"]);
}

#[test]
fn a_broken_marker_is_refused() {
    let home = TempDir::new().unwrap();
    let url = url(home.path());
    for text in ["{", "{\"format\": 9}", "[]"] {
        fs::write(home.path().join(DatasetMarker::FILE), text).unwrap();
        let message = reason(Directory::claim(&url, 0));
        assert!(message.contains("KVMETER.json cannot be read"), "{message}");
    }
    assert_eq!(names(home.path()), ["KVMETER.json"]);
}

#[test]
fn recovers_an_interrupted_claim() {
    let home = TempDir::new().unwrap();
    let url = url(home.path());
    fs::write(home.path().join(Directory::LOCK), "").unwrap();
    fs::write(home.path().join(".KVMETER.json.aB3.new"), "{\"form").unwrap();
    assert_eq!(Directory::inspect(home.path()).unwrap(), DirectoryState::Empty);
    let mut directory = Directory::claim(&url, 0).unwrap();
    directory.set_dataset("ten", 10, "Any 1.0").unwrap();
    assert_eq!(names(home.path()), ["KVMETER.json", "KVMETER.lock", "data"]);
}

#[test]
fn detects_data_of_another_store() {
    let home = TempDir::new().unwrap();
    let url = url(home.path());
    let mut directory = Directory::claim(&url, 0).unwrap();
    assert_eq!(directory.mismatch(), None);
    let other = DatasetMarker { scheme: "other".to_owned(), ..directory.marker().clone() };
    directory.replace_marker(other).unwrap();
    drop(directory);
    let mut directory = Directory::claim(&url, 0).unwrap();
    let why = directory.mismatch().unwrap();
    assert!(why.contains("holds data of `other`"), "{why}");
    directory.clear().unwrap();
    assert_eq!(directory.mismatch(), None);
}

#[test]
fn null_has_no_directory() {
    let error = Directory::claim(&"null".parse().unwrap(), 0).unwrap_err();
    assert!(matches!(error, StoreError::Request(_)));
}

#[test]
fn amounts_are_rounded_down() {
    assert_eq!(rounded(0).to_string(), "0");
    assert_eq!(rounded(1023).to_string(), "1023");
    assert_eq!(rounded((20 << 30) + 12_345).to_string(), "20GiB");
    assert_eq!(rounded((9 << 30) + 12_345).to_string(), "9GiB");
}
