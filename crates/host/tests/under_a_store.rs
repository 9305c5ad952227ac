//! From a store's path down to the disks.

#[cfg(test)]
mod common;

use std::path::Path;

use common::Recorded;
use host::{Root, storage};
use model::Fact;

fn fact<'a>(facts: &'a [Fact], name: &str) -> &'a Result<String, String> {
    let fact = facts.iter().find(|fact| fact.name == name);
    &fact.unwrap_or_else(|| panic!("no fact {name}")).value
}

#[track_caller]
fn is(facts: &[Fact], name: &str, value: &str) {
    assert_eq!(fact(facts, name).as_deref(), Ok(value), "{name}");
}

#[test]
fn a_plain_disk() {
    let vm = Recorded::named("vm");
    let facts = storage(&vm.root, Path::new("/var/../home/store"));
    is(&facts, "store.mount", "/");
    is(&facts, "store.filesystem", "ext4");
    is(&facts, "store.options", "rw,relatime,discard");
    is(&facts, "store.device", "vda");
    is(&facts, "store.device.scheduler", "mq-deadline");
    is(&facts, "store.device.rotational", "yes");
    is(&facts, "store.device.queue_depth", "256");
    is(&facts, "store.device.size", "256 GiB");
    let reason = fact(&facts, "store.device.model").as_ref().unwrap_err();
    assert_eq!(reason, "/sys/block/vda/device/model does not exist");
    assert!(fact(&facts, "store.free").as_ref().unwrap_err().contains("recorded machine"));
}

#[test]
fn a_logical_volume_on_a_partition() {
    let xeon = Recorded::named("xeon");
    let facts = storage(&xeon.root, Path::new("/home/store"));
    is(&facts, "store.source", "/dev/mapper/vg-root");
    is(&facts, "store.device", "dm-0 on nvme0n1p3 on nvme0n1");
    is(&facts, "store.device.model", "INTEL SSDPE2KX010T8");
    is(&facts, "store.device.scheduler", "none");
}

#[test]
fn an_array_and_a_file_on_it() {
    let xeon = Recorded::named("xeon");
    let facts = storage(&xeon.root, Path::new("/array/store"));
    is(&facts, "store.device", "md0 on (sda, sdb)");
    is(&facts, "store.device.sda.queue_depth", "64");
    is(&facts, "store.device.sdb.rotational", "yes");
    let facts = storage(&xeon.root, Path::new("/looped/store"));
    is(&facts, "store.device", "loop3 on /array/images/store.img on md0 on (sda, sdb)");
}

#[test]
fn a_file_system_with_a_number_of_its_own() {
    let xeon = Recorded::named("xeon");
    let facts = storage(&xeon.root, Path::new("/butter/store"));
    is(&facts, "store.device", "nvme0n1p4 on nvme0n1");
    is(&facts, "store.options", "rw,relatime,compress=zstd:1");
}

#[test]
fn no_disk_is_said_with_the_reason() {
    let (vm, xeon, arm) = (Recorded::named("vm"), Recorded::named("xeon"), Recorded::named("arm"));
    for (machine, path, reason) in [
        (&vm, "/dev/shm/store", "tmpfs is in memory"),
        (&xeon, "/remote/store", "nfs4 from `server:/export` is not on a block device"),
        (&arm, "/store", "upper folder /var/lib/x/d/diff is not visible"),
    ] {
        let facts = storage(&machine.root, Path::new(path));
        let found = fact(&facts, "store.device").as_ref().unwrap_err();
        assert!(found.contains(reason), "{found}");
    }
    let facts = storage(&Recorded::empty().root, Path::new("/store"));
    assert!(facts.iter().all(|fact| fact.value.is_err()), "{facts:?}");
}

#[test]
fn devices_in_a_circle_end() {
    let xeon = Recorded::named("xeon");
    xeon.write("/sys/block/sda/slaves/md0", "");
    let facts = storage(&xeon.root, Path::new("/array/store"));
    let reason = fact(&facts, "store.device").as_ref().unwrap_err();
    assert!(reason.contains("deep"), "{reason}");
    xeon.write("/sys/block/loop3/loop/backing_file", "/looped/itself.img\n");
    let facts = storage(&xeon.root, Path::new("/looped/store"));
    assert!(fact(&facts, "store.device").as_ref().unwrap_err().contains("deep"));
}

#[test]
fn a_folder_of_this_machine_that_does_not_exist_yet() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::live();
    let path = dir.path().join("not/yet/here");
    let facts = storage(&root, &path);
    assert!(fact(&facts, "store.filesystem").is_ok(), "{facts:?}");
    assert!(fact(&facts, "store.free").is_ok(), "{facts:?}");
    assert!(host::free_bytes(&root, &path).unwrap() > 0);
    assert!(!path.exists());
}
