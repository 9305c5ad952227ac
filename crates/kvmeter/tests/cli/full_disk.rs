//! A full disk during a load: a clear error, and nothing of earlier runs lost.

use std::path::Path;
use std::process::Command;

use crate::tool::Place;

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
fn a_disk_that_fills_up_during_the_load_is_told_and_loses_nothing() {
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
    let said = crate::tool::said(child.wait_with_output().unwrap());
    assert_eq!(said.code, 2, "{said:#?}");
    assert!(said.err.contains("space"), "{}", said.err);
    std::fs::remove_file(&room).unwrap();
    // Earlier results are whole, and the directory works again.
    assert_eq!(place.json(&["report", "r.sqlite", "--json"]).as_array().unwrap().len(), 1);
    place.ok(&["bench", "rocksdb:disk/db", "--records", "1k", "--ops", "1k", "--quiet"]);
}
