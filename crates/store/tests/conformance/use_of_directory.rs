//! No store touches a directory that it must not touch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use store::{ADAPTERS, Directory, DirectoryState, StoreError, StoreUrl};
use tempfile::TempDir;

use crate::conformance::support::{Test, at, on_disk_here, places, with};

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.metadata().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

fn refused(url: &StoreUrl) -> String {
    match Directory::claim(url, 0) {
        Err(error @ StoreError::Directory { .. }) => error.to_string(),
        other => panic!("{url}: {other:?}"),
    }
}

struct Nothing;
impl Test for Nothing {
    fn run<S: store::Store>(&self, _: &S, _: &str) {}
}

#[test]
fn refuses_a_foreign_store_and_leaves_it_untouched() {
    for place in places() {
        with(&place.url, &Nothing);
        // The store's own files, as another program would have made them.
        let mut foreign = place.url.data_path();
        if !files(&foreign).is_empty() {
            let before = files(&foreign);
            let url = place.url.at(&foreign);
            assert!(refused(&url).contains("kvmeter did not make"), "{url}");
            assert_eq!(files(&foreign), before, "{url}");
        }
        // RocksDB's databases lie one folder deeper.
        foreign.push("0000");
        if foreign.is_dir() {
            let before = files(&foreign);
            assert!(before.contains_key("CURRENT"));
            let url = place.url.at(&foreign);
            assert!(refused(&url).contains("kvmeter did not make"), "{url}");
            assert_eq!(files(&foreign), before, "{url}");
        }
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    struct InUse<'a>(&'a StoreUrl);
    impl Test for InUse<'_> {
        fn run<S: store::Store>(&self, _: &S, _: &str) {
            assert!(refused(self.0).contains("in use"), "{}", self.0);
        }
    }
    for place in places() {
        with(&place.url, &InUse(&place.url));
        with(&place.url, &Nothing);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_refused() {
    for place in places() {
        let file = place.home.path().join("file");
        fs::write(&file, "text").unwrap();
        assert!(refused(&place.url.at(&file)).contains("not a directory"));
        assert!(refused(&place.url.at(&file.join("below"))).contains("not a directory"));
        // Even root may not make a directory here.
        let url = place.url.at(Path::new("/proc/kvmeter/store"));
        assert!(matches!(Directory::claim(&url, 0), Err(StoreError::Directory { .. })), "{url}");
        assert_eq!(fs::read(&file).unwrap(), b"text");
    }
}

#[test]
fn detects_another_data_format() {
    for adapter in on_disk_here() {
        let home = TempDir::new().unwrap();
        let url = at(adapter.scheme, home.path(), "");
        with(&url, &Nothing);
        for option in adapter.options {
            let other = match (option.name, option.default) {
                ("databases", _) => "7",
                ("compression", _) => "none",
                (_, "off") => "on",
                _ => continue,
            };
            let url = at(adapter.scheme, home.path(), &format!("?{}={other}", option.name));
            let mismatch = Directory::claim(&url, 0).unwrap().mismatch();
            assert_eq!(mismatch.is_some(), option.shapes_data, "{url}: {mismatch:?}");
        }
    }
}

#[test]
fn clearing_makes_room_for_another_store() {
    let home = TempDir::new().unwrap();
    for adapter in on_disk_here() {
        let url = at(adapter.scheme, home.path(), "");
        let mut directory = Directory::claim(&url, 0).unwrap();
        directory.clear().unwrap();
        assert_eq!(directory.disk_bytes().unwrap(), 0);
        drop(directory);
        with(&url, &Nothing);
        assert!(matches!(Directory::inspect(home.path()).unwrap(), DirectoryState::Ours(_)));
    }
}

#[test]
fn suggests_the_nearest_option() {
    for adapter in on_disk_here() {
        for option in adapter.options {
            let url = format!("{}:/tmp/x?{}x=1", adapter.scheme, option.name);
            let error = url.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean `{}`?", option.name)), "{error}");
        }
    }
}

#[test]
fn lists_available_stores() {
    for adapter in ADAPTERS {
        let networked = matches!(adapter.location, store::DataLocation::Servers { .. });
        match adapter.available() {
            Ok(version) if networked => assert!(version.contains("server"), "{version}"),
            Ok(version) => assert!(version.contains('.'), "{version}"),
            Err(unavailable) => {
                let name = adapter.scheme;
                let remedy = if adapter.is_built_in() { "install it" } else { "--features" };
                assert!(unavailable.remedy.contains(remedy), "{name}: {unavailable:?}");
                let refused = at(name, Path::new("/tmp/x"), "").check().unwrap_err().to_string();
                assert!(refused.contains(remedy), "{name}: {refused}");
            }
        }
    }
}
