//! Leftovers of earlier sessions in the staging file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use spill::{Options, Store};

use crate::hook_fs::{Call, hook_fs};
use crate::{copy, in_memory, tiny};

const SLOT_HEADERS_AT: usize = 4096;
const SLOT_HEADER_LEN: usize = 64;
const SLOTS: usize = 64;
const BYTES_AT: usize = SLOT_HEADERS_AT + SLOTS * SLOT_HEADER_LEN;
/// Where the records of a segment begin.
const FILE_HEADER_LEN: u32 = 64;

/// Segment and offset in each slot header.
fn slot_begins(staging: &[u8]) -> Vec<(u32, u32)> {
    let begin = |slot: usize| {
        let bits = u64::from_le_bytes(
            *staging[SLOT_HEADERS_AT + slot * SLOT_HEADER_LEN..].first_chunk().unwrap(),
        );
        ((bits >> 32) as u32, bits as u32)
    };
    (0..SLOTS).map(begin).collect()
}

/// Power loss leaves new bytes of a slot under its old header, but not the segment that they belong
/// to, so its number is reused. After a kill of the next session these records must not follow
/// those of the new segment.
fn check_loss_and_kill(by_both_streams: bool) {
    const VALUE: [u8; 1000] = [7; 1000];
    let home = in_memory();
    let path = |name: &str| home.path().join(name);
    let options = Options { memory: 32 << 20, ..tiny() };
    let open = |name: &str| {
        let store = Store::open(path(name), options.clone()).unwrap();
        let table = store.table("t").unwrap();
        (store, table)
    };
    let (store, table) = open("first");
    table.put(b"key", b"there").unwrap();
    store.flush().unwrap();
    drop((store, table));

    let (store, table) = open("first");
    let staging = || std::fs::read(path("first").join("staging")).unwrap();
    let mut before = staging();
    // Until the first slot belongs to a segment of this session.
    let mut made = 0;
    let (segment, mut number) = (0_u32..)
        .find_map(|number| {
            table.put(&number.to_be_bytes(), &VALUE).unwrap();
            let now = slot_begins(&staging());
            let newest = slot_begins(&before).iter().map(|begin| begin.0).max().unwrap();
            let new =
                now.iter().position(|&(segment, at)| at == FILE_HEADER_LEN && segment > newest);
            made += u32::from(new.is_some());
            if new == Some(0) && made >= 2 {
                return Some((now[0].0, number));
            }
            before = staging();
            None
        })
        .unwrap();
    let lost = number;
    number += 1;
    table.put(&number.to_be_bytes(), &VALUE).unwrap();
    if by_both_streams {
        (0..2).for_each(|_| table.put(&(number + 1).to_be_bytes(), &VALUE).unwrap());
    } else {
        table.delete(b"key").unwrap();
    }
    copy(&path("first"), &path("lost"));
    let mut torn = staging();
    torn[..BYTES_AT].copy_from_slice(&before[..BYTES_AT]);
    std::fs::write(path("lost").join("staging"), torn).unwrap();
    for gone in segment..segment + 3 {
        let _ = std::fs::remove_file(path("lost").join(format!("log/{gone:08}.log")));
    }
    drop((store, table));

    let (store, table) = open("lost");
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"there"[..]));
    assert_eq!(table.get(&lost.to_be_bytes()).unwrap(), None, "it may be lost");
    assert!(table.get(&(lost - 1).to_be_bytes()).unwrap().is_some());
    // As many of the same length.
    (0..1 + u32::from(by_both_streams))
        .for_each(|_| table.put(b"\xff\xff\xff\xff", &VALUE).unwrap());
    table.put(b"\xff\xff\xff\xfe", &VALUE).unwrap();
    copy(&path("lost"), &path("killed"));
    drop((store, table));

    let (_store, table) = open("killed");
    assert!(table.get(b"\xff\xff\xff\xfe").unwrap().is_some());
    assert_eq!(table.get(b"key").unwrap().as_deref(), Some(&b"there"[..]), "nobody deleted it");
}

#[test]
fn records_lost_to_power_failure_do_not_reappear() {
    check_loss_and_kill(false);
    check_loss_and_kill(true);
}

/// An unreadable slot without records does not block opening: it is overwritten, and a read-only
/// opener ignores it.
#[test]
fn unreadable_unused_slot_is_overwritten() {
    const BAD: u64 = 4_000_000;
    let home = in_memory();
    let store = Store::open(home.path(), tiny()).unwrap();
    store.table("t").unwrap().put(b"key", b"value").unwrap();
    drop(store);
    for read_only in [true, false] {
        let tried: Arc<[AtomicBool; 2]> = Arc::default();
        let seen = Arc::clone(&tried);
        let fs = hook_fs("staging", move |call| match call {
            Call::Read(from, to) if (from..to).contains(&BAD) => {
                seen[0].store(true, Ordering::SeqCst);
                Err(rustix::io::Errno::IO.into())
            }
            Call::Write => {
                seen[1].store(true, Ordering::SeqCst);
                Ok(())
            }
            _ => Ok(()),
        });
        let store = Store::open_on(fs, home.path(), Options { read_only, ..tiny() }).unwrap();
        assert_eq!(store.table("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
        for tried in tried.iter() {
            assert_eq!(tried.load(Ordering::SeqCst), !read_only);
        }
    }
}

/// Data that a failed sync did not write is not durable, whatever the page cache says.
#[test]
fn slots_are_cleared_again_after_a_failed_sync() {
    let home = in_memory();
    {
        let store = Store::open(home.path(), tiny()).unwrap();
        let table = store.table("t").unwrap();
        (0..40_u32).for_each(|key| table.put(&key.to_be_bytes(), &[7; 1000]).unwrap());
    }
    let writes_of = |fails: bool| {
        let writes = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&writes);
        let fs = hook_fs("staging", move |call| {
            match call {
                Call::Write => drop(counted.fetch_add(1, Ordering::SeqCst)),
                Call::Sync if fails => return Err(std::io::Error::from_raw_os_error(libc::EIO)),
                _ => {}
            }
            Ok(())
        });
        assert_eq!(Store::open_on(fs, home.path(), tiny()).is_err(), fails);
        writes.load(Ordering::SeqCst)
    };
    assert!(writes_of(true) > 0);
    assert!(writes_of(false) > 40);
    assert!(writes_of(false) < 10);
}
