//! Tests of the simulated disk itself.

use std::collections::BTreeSet;

use spill::fs::{Access, File, Mode, read_exact_at, write_all_at};

use super::*;

fn at(name: &str) -> PathBuf {
    Path::new("/disk").join(name)
}

/// A file with durable name and content.
fn durable_file(sim: &Sim, name: &str, content: &[u8]) -> Arc<dyn File> {
    let file = sim.open(&at(name), Mode::New).unwrap();
    write_all_at(&*file, content, 0).unwrap();
    file.sync().unwrap();
    sim.sync_dir(Path::new("/disk")).unwrap();
    file
}

fn power_cut(sim: &Sim, loss: Loss, seed: u64) -> Sim {
    sim.image(End::PowerCut(loss), seed)
}

#[test]
fn synced_content_survives_every_power_cut() {
    let sim = Sim::new(1);
    let content: Vec<u8> = (0..5000).map(|byte| byte as u8).collect();
    let _file = durable_file(&sim, "a", &content);
    for loss in Loss::ALL {
        for seed in 0..20 {
            assert_eq!(power_cut(&sim, loss, seed).content(&at("a")).unwrap(), content);
        }
    }
}

#[test]
fn unsynced_sectors_survive_independently() {
    let sim = Sim::new(3);
    let file = durable_file(&sim, "a", &[1; 4 * SECTOR]);
    file.write_at(&[2; 4 * SECTOR], 0).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let left = power_cut(&sim, Loss::Some(4), seed).content(&at("a")).unwrap();
        assert_eq!(left.len(), 4 * SECTOR);
        let sectors: Vec<u8> = left.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert!(left.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        seen.insert(sectors);
    }
    assert_eq!(seen.len(), 16, "each combination of four sectors");
    let all = power_cut(&sim, Loss::Nothing, 0).content(&at("a")).unwrap();
    assert_eq!(all, [2; 4 * SECTOR]);
    for seed in 0..20 {
        let later = power_cut(&sim, Loss::Earlier, seed).content(&at("a")).unwrap();
        assert!(later.is_sorted(), "later sectors survived earlier ones");
    }
}

#[test]
fn unsynced_lengths_are_lost_or_zero_filled() {
    let sim = Sim::new(3);
    let file = durable_file(&sim, "a", &[1; 700]);
    file.write_at(&[2; 1000], 700).unwrap();
    let mut lengths = BTreeSet::new();
    for seed in 0..100 {
        let left = power_cut(&sim, Loss::Some(4), seed).content(&at("a")).unwrap();
        assert!((700..=1700).contains(&left.len()));
        assert!(left[..512].iter().all(|byte| *byte == 1));
        assert!(left[700..].iter().all(|byte| *byte == 2 || *byte == 0));
        lengths.insert(left.len());
    }
    assert!(lengths.contains(&700) && lengths.contains(&1700) && lengths.len() > 10);
    file.set_len(100).unwrap();
    assert_eq!(power_cut(&sim, Loss::Everything, 0).content(&at("a")).unwrap().len(), 700);
    assert_eq!(power_cut(&sim, Loss::Nothing, 0).content(&at("a")).unwrap(), [1; 100]);
}

#[test]
fn names_are_durable_once_their_directory_is_synced() {
    let sim = Sim::new(5);
    let file = durable_file(&sim, "a", b"old");
    let new = sim.open(&at("b"), Mode::New).unwrap();
    write_all_at(&*new, b"new", 0).unwrap();
    new.sync().unwrap();
    assert_eq!(power_cut(&sim, Loss::Everything, 0).files(), [at("a")]);
    sim.rename(&at("b"), &at("a")).unwrap();
    drop((file, new));
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let left = power_cut(&sim, Loss::Some(4), seed);
        let names: Vec<PathBuf> = left.files();
        seen.insert((names, left.content(&at("a")).unwrap()));
    }
    let a = || vec![at("a")];
    let expected =
        [(a(), b"old".to_vec()), (a(), b"new".to_vec()), (vec![at("a"), at("b")], b"old".to_vec())];
    assert_eq!(seen, BTreeSet::from(expected));
    sim.sync_dir(Path::new("/disk")).unwrap();
    assert_eq!(power_cut(&sim, Loss::Everything, 0).content(&at("a")).unwrap(), b"new");
}

#[test]
fn removed_file_reappears_until_its_directory_is_synced() {
    let sim = Sim::new(6);
    drop(durable_file(&sim, "a", b"here"));
    sim.remove(&at("a")).unwrap();
    assert!(sim.files().is_empty());
    assert_eq!(power_cut(&sim, Loss::Everything, 0).content(&at("a")).unwrap(), b"here");
    sim.sync_dir(Path::new("/disk")).unwrap();
    assert!(power_cut(&sim, Loss::Everything, 0).files().is_empty());
}

#[test]
fn lost_directory_takes_its_files_along() {
    let sim = Sim::new(7);
    sim.create_dir(&at("x/y")).unwrap();
    let file = sim.open(&at("x/y/a"), Mode::New).unwrap();
    file.sync().unwrap();
    sim.sync_dir(&at("x/y")).unwrap();
    sim.sync_dir(&at("x")).unwrap();
    assert!(power_cut(&sim, Loss::Everything, 0).files().is_empty());
    sim.sync_dir(Path::new("/disk")).unwrap();
    assert_eq!(power_cut(&sim, Loss::Everything, 0).files(), [at("x/y/a")]);
}

#[test]
fn hard_links_share_content() {
    let sim = Sim::new(8);
    let file = durable_file(&sim, "a", b"first");
    sim.hard_link(&at("a"), &at("b")).unwrap();
    write_all_at(&*file, b"later", 0).unwrap();
    assert_eq!(sim.content(&at("b")).unwrap(), b"later");
    sim.remove(&at("a")).unwrap();
    assert_eq!(sim.content(&at("b")).unwrap(), b"later");
    let left = sim.image(End::Kill, 0);
    assert_eq!(left.files(), [at("b")]);
}

#[test]
fn mapped_stores_survive_the_process_not_power_loss() {
    let sim = Sim::new(9);
    let file = sim.open(&at("a"), Mode::New).unwrap();
    file.allocate(8192).unwrap();
    file.sync().unwrap();
    sim.sync_dir(Path::new("/disk")).unwrap();
    let map = file.map(8192, Access::ReadWrite).unwrap();
    let store = |position: usize, byte: u8| {
        // SAFETY: inside the mapping, which nobody else uses.
        unsafe { map.start().as_ptr().add(position).write(byte) }
    };
    let loaded = |position: usize| {
        // SAFETY: as above.
        unsafe { map.start().as_ptr().add(position).read() }
    };
    store(5000, 7);
    let mut read = [0; 1];
    read_exact_at(&*file, &mut read, 5000).unwrap();
    assert_eq!(read, [7]);
    write_all_at(&*file, &[8], 5001).unwrap();
    assert_eq!(loaded(5001), 8);

    let survivors = |sim: &Sim| sim.content(&at("a")).unwrap()[5000];
    assert_eq!(survivors(&sim.image(End::Kill, 0)), 7);
    assert_eq!(survivors(&power_cut(&sim, Loss::Everything, 0)), 0);
    assert_eq!(survivors(&power_cut(&sim, Loss::Nothing, 0)), 7);
    file.sync().unwrap();
    store(5002, 9);
    let left = power_cut(&sim, Loss::Everything, 0).content(&at("a")).unwrap();
    assert_eq!(left[5000..5003], [7, 8, 0]);
    drop(map);
    assert_eq!(power_cut(&sim, Loss::Nothing, 0).content(&at("a")).unwrap()[5002], 9);
    // The next process sees what is not durable yet, and a power cut can still take it.
    let next = sim.image(End::Kill, 0);
    assert_eq!(next.content(&at("a")).unwrap()[5002], 9);
    assert_eq!(power_cut(&next, Loss::Everything, 0).content(&at("a")).unwrap()[5002], 0);
}

#[test]
fn mapped_stores_can_be_torn_by_a_kill() {
    let sim = Sim::new(10);
    let file = sim.open(&at("a"), Mode::New).unwrap();
    file.allocate(4096).unwrap();
    let map = file.map(4096, Access::ReadWrite).unwrap();
    let before = sim.disk.state().stores();
    // SAFETY: inside the mapping, which nobody else uses.
    unsafe { map.start().as_ptr().write_bytes(3, 64) };
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let left = sim.disk.state().torn_image(&before, seed).content(&at("a")).unwrap();
        assert!(left[64..].iter().all(|byte| *byte == 0));
        seen.insert(left[..64].iter().step_by(8).copied().collect::<Vec<u8>>());
    }
    assert!(seen.len() > 20 && seen.contains(&vec![3; 8]));
}

#[test]
fn pages_dropped_by_a_failed_sync_never_reach_the_device() {
    for forget in [false, true] {
        let sim = Sim::new(11);
        let file = durable_file(&sim, "a", &[1; 1024]);
        write_all_at(&*file, &[2; 1024], 0).unwrap();
        sim.fail(sim.calls(), Fault::LostSync { forget });
        assert!(file.sync().is_err());
        assert_eq!(sim.content(&at("a")).unwrap(), [if forget { 1 } else { 2 }; 1024]);
        file.sync().unwrap();
        assert_eq!(power_cut(&sim, Loss::Nothing, 0).content(&at("a")).unwrap(), [1; 1024]);
        // Rewritten data is synced again, even if it is the same.
        write_all_at(&*file, &[2; 512], 0).unwrap();
        file.sync().unwrap();
        let left = power_cut(&sim, Loss::Everything, 0).content(&at("a")).unwrap();
        assert_eq!((left[0], left[512]), (2, 1));
    }
}

#[test]
fn injected_fault_hits_one_call() {
    let sim = Sim::new(12);
    let file = durable_file(&sim, "a", &[1; 100]);
    let fails = |fault| {
        sim.fail(sim.calls(), fault);
        let error = file.write_at(&[2; 10], 0).unwrap_err();
        assert_eq!(sim.fired().unwrap().kind, Kind::Write);
        assert_eq!(file.write_at(&[2; 10], 0).unwrap(), 10);
        error
    };
    assert_eq!(fails(Fault::Full).kind(), io::ErrorKind::StorageFull);
    assert_eq!(fails(Fault::Interrupted).kind(), io::ErrorKind::Interrupted);
    assert_eq!(fails(Fault::Broken).raw_os_error(), Some(Errno::IO.raw_os_error()));
    sim.fail(sim.calls(), Fault::Short);
    assert_eq!(file.write_at(&[3; 10], 0).unwrap(), 5);
    sim.fail(sim.calls(), Fault::Short);
    assert_eq!(file.read_at(&mut [0; 7], 0).unwrap(), 4);
    // A fault that cannot hit such a call is ignored.
    sim.fail(sim.calls(), Fault::Full);
    file.sync().unwrap();
    assert_eq!(sim.fired(), None);
}

#[test]
fn full_disk_accepts_what_fits() {
    let sim = Sim::new(13);
    let first = durable_file(&sim, "a", &[1; 8192]);
    sim.set_capacity(Some(16384));
    let second = sim.open(&at("b"), Mode::New).unwrap();
    assert_eq!(second.write_at(&[2; 10000], 100).unwrap(), 8092);
    let full = |result: io::Result<usize>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    };
    full(second.write_at(&[2; 10], 8192));
    full(second.allocate(8193).map(|()| 0));
    // Allocated blocks can be rewritten.
    assert_eq!(second.write_at(&[3; 8192], 0).unwrap(), 8192);
    sim.remove(&at("a")).unwrap();
    full(second.write_at(&[2; 10], 8192));
    drop(first);
    assert_eq!(second.write_at(&[2; 10], 8192).unwrap(), 10);
    assert_eq!(sim.used(), 12288);
}

#[test]
fn directory_lock_has_one_holder() {
    let sim = Sim::new(14);
    let held = sim.lock(Path::new("/disk")).unwrap();
    let refused = |sim: &Sim| sim.lock(Path::new("/disk")).err().map(|error| error.kind());
    assert_eq!(refused(&sim), Some(io::ErrorKind::WouldBlock));
    // The next process may have it: its holder is dead.
    assert_eq!(refused(&sim.image(End::Kill, 0)), None);
    drop(held);
    assert_eq!(refused(&sim), None);
}

#[test]
fn read_only_disk_rejects_changes() {
    let sim = Sim::new(15);
    drop(durable_file(&sim, "a", b"here"));
    sim.set_read_only(true);
    let refused = |result: io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ReadOnlyFilesystem);
    };
    refused(sim.create_dir(&at("x")));
    refused(sim.open(&at("a"), Mode::Write).map(drop));
    refused(sim.open(&at("b"), Mode::New).map(drop));
    refused(sim.rename(&at("a"), &at("b")));
    refused(sim.remove(&at("a")));
    refused(sim.hard_link(&at("a"), &at("b")));
    sim.create_dir(Path::new("/disk")).unwrap();
    let file = sim.open(&at("a"), Mode::Read).unwrap();
    assert_eq!(file.len().unwrap(), 4);
}

#[test]
fn writeback_happens_at_any_time() {
    let sim = Sim::new(16);
    let file = durable_file(&sim, "a", &[0; 16 * SECTOR]);
    let mut seen = BTreeSet::new();
    for round in 1..200_u8 {
        write_all_at(&*file, &[round; 16 * SECTOR], 0).unwrap();
        seen.extend(power_cut(&sim, Loss::Everything, 0).content(&at("a")).unwrap());
    }
    assert!(seen.len() > 5, "{seen:?}");
}

#[test]
fn same_seed_gives_the_same_disk() {
    let run = || {
        let sim = Sim::new(17);
        let file = durable_file(&sim, "a", &[0; 4096]);
        sim.start_trace();
        for round in 1..50_u8 {
            write_all_at(&*file, &[round; 4096], 0).unwrap();
        }
        let left = power_cut(&sim, Loss::Some(4), 3).content(&at("a")).unwrap();
        (sim.take_trace(), left)
    };
    assert_eq!(run(), run());
}
