//! A full disk is reported, crashes nothing, and the store works again when there is space.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use store::{Session, Store, StoreError, StoreUrl};
use tempfile::TempDir;

use crate::conformance::support::{Test, at, on_disk_here, read, with};

/// Set in the child only: the store that it fills.
const URL: &str = "KVMETER_STORE_FULL_DISK_URL";
const ABORTED: i32 = 6;

/// A small file system in memory, unmounted when it is dropped.
struct SmallDisk {
    home: TempDir,
}

impl SmallDisk {
    /// `None` where one may not be mounted: without root, or in a container.
    fn mount(size: &str) -> Option<Self> {
        let home = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "kvmeter-test"])
            .arg(home.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { home }),
            Ok(output) => {
                eprint!("skipped: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                eprintln!("skipped: mount: {error}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.home.path()).output();
    }
}

struct Fill;
impl Test for Fill {
    fn run<S: Store>(&self, store: &S, name: &str) {
        let mut session = store.session().unwrap();
        // Does not compress, so that the disk fills.
        let mut noise = 1_u64;
        let mut value = vec![0; 64 << 10];
        let mut error = None;
        for number in 0..4096_u32 {
            for byte in &mut value {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (noise >> 56) as u8;
            }
            match session.insert(&number.to_be_bytes(), &value) {
                Ok(()) => {}
                Err(full) => {
                    error = Some(full);
                    break;
                }
            }
        }
        let error = error.unwrap_or_else(|| panic!("{name}: 256 MiB on a disk of 96"));
        assert!(matches!(error, StoreError::Full(_)), "{name}: {error:?}");
        // The session stays usable.
        let _ = read(&mut session, &0_u32.to_be_bytes());
        let _ = session.insert(b"one more", &value);
    }
}

struct WorksAgain;
impl Test for WorksAgain {
    fn run<S: Store>(&self, store: &S, name: &str) {
        let mut session = store.session().unwrap();
        let first = read(&mut session, &0_u32.to_be_bytes()).unwrap();
        assert_eq!(first.map(|it| it.len()), Some(64 << 10), "{name}: what was acknowledged");
        session.insert(b"after", b"there is room").unwrap();
        assert_eq!(read(&mut session, b"after").unwrap().unwrap(), b"there is room", "{name}");
    }
}

/// The child's own entry; does nothing in an ordinary run of the tests.
#[test]
fn child_that_fills_the_disk() {
    let Ok(url) = env::var(URL) else { return };
    let url: StoreUrl = url.parse().unwrap();
    with(&url, &Fill);
}

/// Fills the disk in a process of its own. Debian's RocksDB 7.8 is built with assertions, one of
/// which a full disk may break: then the library ends the process, and what was acknowledged must
/// be there all the same.
fn fill(url: &StoreUrl) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "conformance::full_disk::child_that_fills_the_disk", "--nocapture"])
        .env(URL, url.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let own_assertion = output.status.signal() == Some(ABORTED)
        && url.scheme == "rocksdb"
        && said.contains("rocksdb::")
        && said.contains("Assertion `");
    match own_assertion {
        true => eprintln!("the library ended the process: {said}"),
        false => assert!(output.status.success(), "{url}: {said}"),
    }
}

#[test]
fn reports_and_survives_a_full_disk() {
    for adapter in on_disk_here() {
        // The freed space must suffice for the store's recovery.
        let Some(disk) = SmallDisk::mount("256m") else { return };
        let filler = disk.path().join("filler");
        fs::write(&filler, vec![1; 160 << 20]).unwrap();
        let url = at(adapter.scheme, &disk.path().join("store"), "");
        fill(&url);
        fs::remove_file(&filler).unwrap();
        with(&url, &WorksAgain);
    }
}
