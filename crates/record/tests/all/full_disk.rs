//! A full disk and a read-only one, on a small file system of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use model::Run;
use record::{RecordError, ResultsFile, RunFilter};
use tempfile::TempDir;

use crate::example;

/// A mounted tmpfs; unmounted when dropped.
struct Mount {
    folder: TempDir,
}

impl Mount {
    /// None where this process may not mount.
    fn tmpfs(size: &str) -> Option<Mount> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], folder.path());
        if !mounted {
            eprintln!("skipped: mounting a tmpfs needs root");
        }
        mounted.then_some(Mount { folder })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("results.sqlite")
    }

    /// Free blocks.
    fn free(&self) -> String {
        let asked = Command::new("stat").args(["-f", "-c", "%f"]).arg(self.folder.path()).output();
        String::from_utf8(asked.unwrap().stdout).unwrap()
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], self.folder.path()));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    let output = Command::new("mount").args(arguments).arg(at).output();
    output.is_ok_and(|output| output.status.success())
}

fn large_run(ordinal: u32) -> Run {
    let mut run = example::run("e", ordinal);
    run.series = (0..2000).map(|n| example::point(n.into(), model::Op::Read)).collect();
    run
}

#[test]
fn a_full_disk_costs_only_the_run_that_did_not_fit() {
    let Some(disk) = Mount::tmpfs("1m") else { return };
    let mut file = ResultsFile::create(disk.file()).unwrap();
    file.begin(&example::execution("e")).unwrap();
    let mut kept = Vec::new();
    let refused = loop {
        let run = large_run(u32::try_from(kept.len()).unwrap());
        match file.write_run(&run) {
            Ok(()) => kept.push(run),
            Err(error) => break error,
        }
        assert!(kept.len() < 1000, "the disk never fills");
    };
    assert!(matches!(refused, RecordError::Full(_)), "{refused:?}");
    assert!(!kept.is_empty());
    assert_eq!(file.runs(&RunFilter::all()).unwrap(), kept);

    // With room again, the same file goes on, without being opened anew.
    disk.remount("size=4m");
    let run = large_run(u32::try_from(kept.len()).unwrap());
    file.write_run(&run).unwrap();
    kept.push(run);
    drop(file);
    assert_eq!(ResultsFile::read(disk.file()).unwrap().runs(&RunFilter::all()).unwrap(), kept);
}

/// Writes a file until the disk is full.
fn fill(disk: &Mount) {
    let mut other = std::fs::File::create(disk.folder.path().join("other")).unwrap();
    while std::io::Write::write_all(&mut other, &[1; 4096]).is_ok() {}
}

#[test]
fn a_run_fits_into_its_reservation() {
    let Some(disk) = Mount::tmpfs("2m") else { return };
    let mut file = ResultsFile::create(disk.file()).unwrap();
    file.begin(&example::execution("e")).unwrap();
    file.reserve(512 << 10).unwrap();
    fill(&disk);
    let run = large_run(0);
    file.write_run(&run).unwrap();
    assert_eq!(file.runs(&RunFilter::all()).unwrap(), [run]);
    // That was for one run, and the next one is not to be begun.
    let refused = file.reserve_again().unwrap_err();
    assert!(matches!(refused, RecordError::NoRoom { .. }), "{refused:?}");
    // What does not fit any more costs none of the others.
    let refused = (1..100).find_map(|ordinal| file.write_run(&large_run(ordinal)).err()).unwrap();
    assert!(matches!(refused, RecordError::Full(_)), "{refused:?}");
    assert!(!file.runs(&RunFilter::all()).unwrap().is_empty());
    // With room again, space is set aside once more, and once.
    std::fs::remove_file(disk.folder.path().join("other")).unwrap();
    file.reserve_again().unwrap();
    let free = disk.free();
    file.reserve_again().unwrap();
    assert_eq!(disk.free(), free);
    drop(file);
    assert_eq!(std::fs::read_dir(disk.folder.path()).unwrap().count(), 1, "no name is left");
}

#[test]
fn a_run_is_stored_without_free_inodes() {
    let Some(disk) = Mount::tmpfs("8m,nr_inodes=8") else { return };
    let mut file = ResultsFile::create(disk.file()).unwrap();
    file.begin(&example::execution("e")).unwrap();
    file.reserve(512 << 10).unwrap();
    let mut names = 0..100;
    while std::fs::write(disk.folder.path().join(format!("{:?}", names.next())), "").is_ok() {}
    file.write_run(&large_run(0)).unwrap();
}

#[test]
fn a_full_disk_is_reported_before_a_run() {
    let Some(disk) = Mount::tmpfs("600k") else { return };
    let mut file = ResultsFile::create(disk.file()).unwrap();
    let refused = file.reserve(512 << 10).unwrap_err();
    assert!(matches!(refused, RecordError::NoRoom { .. }), "{refused:?}");
    assert!(refused.to_string().contains("512 KiB"), "{refused}");
}

#[test]
fn a_failed_create_leaves_nothing_behind() {
    let Some(disk) = Mount::tmpfs("64k") else { return };
    // The schema alone is larger.
    std::fs::write(disk.folder.path().join("other"), vec![0; 40 << 10]).unwrap();
    let refused = ResultsFile::create(disk.file()).unwrap_err();
    assert!(matches!(refused, RecordError::Full(_)), "{refused:?}");
    assert_eq!(std::fs::read_dir(disk.folder.path()).unwrap().count(), 1);
}

#[test]
fn read_only_media_can_be_read_and_not_written() {
    let Some(disk) = Mount::tmpfs("1m") else { return };
    let mut file = ResultsFile::create(disk.file()).unwrap();
    file.begin(&example::execution("e")).unwrap();
    file.write_run(&example::run("e", 0)).unwrap();
    drop(file);
    disk.remount("ro");
    let file = ResultsFile::read(disk.file()).unwrap();
    assert_eq!(file.runs(&RunFilter::all()).unwrap(), [example::run("e", 0)]);
    for error in [
        ResultsFile::open(disk.file()).unwrap_err(),
        ResultsFile::create(disk.folder.path().join("new.sqlite")).unwrap_err(),
    ] {
        assert!(matches!(error, RecordError::ReadOnly(_)), "{error:?}");
    }
}

#[test]
fn an_interrupted_write_on_read_only_media_is_explained() {
    let Some(disk) = Mount::tmpfs("4m") else { return };
    let mut file = ResultsFile::create(disk.file()).unwrap();
    file.begin(&example::execution("e")).unwrap();
    drop(file);
    // What a kill in the middle of a commit leaves: pages in the file, the old ones beside.
    let journal = disk.folder.path().join("results.sqlite-journal");
    let saved = disk.folder.path().join("saved");
    {
        let connection = rusqlite::Connection::open(disk.file()).unwrap();
        connection.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN").unwrap();
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
                    INSERT INTO fact SELECT 1, 100 + i, 'n', 'v', NULL, 's' FROM n";
        connection.execute_batch(fill).unwrap();
        std::fs::copy(&journal, &saved).unwrap();
        let torn = std::fs::read(disk.file()).unwrap();
        drop(connection);
        std::fs::write(disk.file(), torn).unwrap();
        std::fs::rename(&saved, &journal).unwrap();
    }
    disk.remount("ro");
    let error = ResultsFile::read(disk.file()).and_then(|file| file.executions()).unwrap_err();
    assert!(matches!(error, RecordError::Interrupted(_)), "{error:?}");
    disk.remount("rw");
    assert_eq!(
        ResultsFile::read(disk.file()).unwrap().executions().unwrap(),
        [example::execution("e")]
    );
    assert!(!journal.exists());
}
