//! Drop order at shutdown.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use spill::fs::{Fs, Os};
use spill::{Options, Store, Table};

use crate::hook_fs::{Call, hook_fs};
use crate::{in_memory, tiny};

/// Number of removed files, and of those removed without the lock.
fn removals_after(hold: impl FnOnce(&Store, &Table) -> Box<dyn std::any::Any>) -> (u32, u32) {
    let home = in_memory();
    let dir = home.path().to_owned();
    let counts: Arc<[AtomicU32; 2]> = Arc::default();
    let counted = Arc::clone(&counts);
    let fs = hook_fs("/log/", move |call| {
        if call == Call::Remove {
            let is_free = Os::new().lock(&dir).is_ok();
            counted[0].fetch_add(1, Ordering::Relaxed);
            counted[1].fetch_add(u32::from(is_free), Ordering::Relaxed);
        }
        Ok(())
    });
    let store = Store::open_on(fs, home.path(), tiny()).unwrap();
    let table = store.table("t").unwrap();
    let fill = |round| {
        (0..300_u32).for_each(|key| table.put(&key.to_be_bytes(), &[round; 1000]).unwrap());
        store.flush().unwrap();
    };
    fill(0);
    let held = hold(&store, &table);
    (1..5).for_each(fill);
    store.settle(Duration::from_secs(5)).unwrap();
    drop((table, store));
    counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    drop(held);
    (counts[0].load(Ordering::Relaxed), counts[1].load(Ordering::Relaxed))
}

/// Files kept by a range or snapshot are removed before anybody else can open the store.
#[test]
fn held_files_are_released_before_the_directory_lock() {
    let (removed, unlocked) = removals_after(|_, table| Box::new(table.range(..)));
    assert!(removed > 0 && unlocked == 0, "{unlocked} of {removed}");
    let (removed, unlocked) = removals_after(|store, _| Box::new(store.snapshot()));
    assert!(removed > 0 && unlocked == 0, "{unlocked} of {removed}");
}

/// A thread-local may use a table when the thread ends.
#[test]
fn table_is_usable_from_thread_local_destructors() {
    struct ThreadLocalTable(Table, Arc<AtomicU32>);
    impl Drop for ThreadLocalTable {
        fn drop(&mut self) {
            self.0.put(b"bye", b"value").unwrap();
            assert_eq!(self.0.get(b"bye").unwrap().unwrap(), b"value");
            assert_eq!(
                self.0.multi_get(&[b"key", b"bye"]).unwrap().into_iter().flatten().count(),
                2
            );
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread_local! {
        static KEPT: RefCell<Option<ThreadLocalTable>> = const { RefCell::new(None) };
    }
    let home = in_memory();
    let store = Store::open(home.path(), Options::default()).unwrap();
    let table = store.table("t").unwrap();
    table.put(b"key", b"value").unwrap();
    store.flush().unwrap();
    let ended = Arc::new(AtomicU32::new(0));
    for reads_first in [true, false] {
        let kept = ThreadLocalTable(table.clone(), Arc::clone(&ended));
        std::thread::spawn(move || {
            if reads_first {
                kept.0.get(b"key").unwrap();
            }
            KEPT.with_borrow_mut(|place| *place = Some(kept));
            KEPT.with_borrow(|place| place.as_ref().map(|kept| kept.0.get(b"key").unwrap()));
        })
        .join()
        .unwrap();
    }
    assert_eq!(ended.load(Ordering::Relaxed), 2);
}
