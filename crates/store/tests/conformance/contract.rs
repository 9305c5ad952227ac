//! Reads, writes, scans: the same answers from every store.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use store::{KeyBatch, Session, Store, StoreUrl, StoreVisitor, open};

use crate::conformance::support::{Pair, Test, places, places_and_servers, read, scan, with};

/// One test over all stores: a type, so that it can be compiled for each.
macro_rules! over_all_stores {
    ($(fn $name:ident($store:ident, $label:ident) $body:block)*) => {$(
        #[test]
        fn $name() {
            struct This;
            impl Test for This {
                fn run<S: Store>(&self, $store: &S, $label: &str) $body
            }
            for place in places_and_servers() {
                with(&place.url, &This);
            }
        }
    )*};
}

over_all_stores! {
    fn reads_what_was_written(store, name) {
        assert!(store.capabilities().stores_values, "{name}");
        let mut session = store.session().unwrap();
        assert_eq!(read(&mut session, b"key").unwrap(), None, "{name}");
        session.insert(b"key", b"first").unwrap();
        assert_eq!(read(&mut session, b"key").unwrap().unwrap(), b"first", "{name}");
        session.update(b"key", b"the second").unwrap();
        assert_eq!(read(&mut session, b"key").unwrap().unwrap(), b"the second", "{name}");
        session.update(b"another", b"by update").unwrap();
        assert_eq!(read(&mut session, b"another").unwrap().unwrap(), b"by update", "{name}");
        for near in [b"ke" as &[u8], b"key ", b"kez", b"key\0"] {
            assert_eq!(read(&mut session, near).unwrap(), None, "{name}");
        }
    }

    fn deleted_keys_are_absent(store, name) {
        let mut session = store.session().unwrap();
        session.delete(b"never there").unwrap();
        session.insert(b"key", b"value").unwrap();
        session.delete(b"key").unwrap();
        assert_eq!(read(&mut session, b"key").unwrap(), None, "{name}");
        session.insert(b"key", b"again").unwrap();
        assert_eq!(read(&mut session, b"key").unwrap().unwrap(), b"again", "{name}");
        session.delete(b"key").unwrap();
        store.settle(Duration::from_secs(60)).unwrap();
        assert_eq!(read(&mut session, b"key").unwrap(), None, "{name}");
    }

    fn every_value_and_key_is_taken(store, name) {
        let mut session = store.session().unwrap();
        let large: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let long = vec![b'k'; 250];
        let pairs: [(&[u8], &[u8]); 7] = [
            (b"empty", b""),
            (b"large", &large),
            (b"\0", b"a zero"),
            (b"\0\0", b"two zeros"),
            (b"a\0b", b"a zero within"),
            (b"\xff\xff\xff\xff", b"the highest"),
            (&long, b"long"),
        ];
        for (key, value) in pairs {
            session.insert(key, value).unwrap();
        }
        for settled in [false, true] {
            for (key, value) in pairs {
                let there = read(&mut session, key).unwrap();
                assert!(there.as_deref() == Some(value), "{name}: {key:?}, settled {settled}");
            }
            store.settle(Duration::from_secs(60)).unwrap();
        }
        session.update(b"large", b"small").unwrap();
        assert_eq!(read(&mut session, b"large").unwrap().unwrap(), b"small", "{name}");
    }

    fn a_multi_get_finds_each_key(store, name) {
        let mut session = store.session().unwrap();
        let key = |number: u32| format!("key{number:03}").into_bytes();
        let value = |number: u32| vec![number as u8; number as usize * 7];
        for number in (0..100).step_by(2) {
            session.insert(&key(number), &value(number)).unwrap();
        }
        let mut keys = KeyBatch::default();
        session.multi_get(&keys, |_, _| panic!("{name}: there is no key")).unwrap();
        for settled in [false, true] {
            // Out of order, every second one absent, one twice.
            let numbers: Vec<u32> = (0..100).map(|at| at * 37 % 100).chain([4]).collect();
            keys.clear();
            numbers.iter().for_each(|number| keys.push(&key(*number)));
            let mut found = vec![None; keys.len()];
            session
                .multi_get(&keys, |index, value| {
                    assert!(found[index].replace(value.to_vec()).is_none(), "{name}: {index} twice");
                })
                .unwrap();
            for (number, found) in numbers.iter().zip(found) {
                let expected = (number % 2 == 0).then(|| value(*number));
                assert!(found == expected, "{name}: {number}, settled {settled}");
            }
            store.settle(Duration::from_secs(60)).unwrap();
        }
    }

    fn scans_are_in_order(store, name) {
        // Several databases or tables order the keys within each one only.
        if !store.capabilities().scan || ["databases=", "tables="].iter().any(|split| name.contains(split)) {
            return;
        }
        let mut session = store.session().unwrap();
        assert_eq!(scan(&mut session, b"", 10).unwrap(), [], "{name}");
        let key = |number: u32| format!("key{number:04}").into_bytes();
        // Every other key, inserted out of order, in part on disk and in part in memory.
        for number in (0..200).rev() {
            session.insert(&key(number * 7 % 200 * 2), &number.to_be_bytes()).unwrap();
            if number == 100 {
                store.settle(Duration::from_secs(60)).unwrap();
            }
        }
        let keys = |pairs: Vec<Pair>| -> Vec<Vec<u8>> {
            pairs.into_iter().map(|(key, _)| key).collect()
        };
        let from_10 = keys(scan(&mut session, &key(10), 5).unwrap());
        assert_eq!(from_10, [10, 12, 14, 16, 18].map(key), "{name}: from a key");
        let from_11 = keys(scan(&mut session, &key(11), 2).unwrap());
        assert_eq!(from_11, [12, 14].map(key), "{name}: from between keys");
        let last = keys(scan(&mut session, &key(396), 100).unwrap());
        assert_eq!(last, [396, 398].map(key), "{name}: over the end");
        assert_eq!(scan(&mut session, &key(399), 100).unwrap(), [], "{name}: past the end");
        assert_eq!(scan(&mut session, &key(10), 0).unwrap(), [], "{name}: none");
        let all = keys(scan(&mut session, &key(0), 1000).unwrap());
        assert_eq!(all, (0..200).map(|it| key(it * 2)).collect::<Vec<_>>(), "{name}: all");
    }

    fn scans_see_what_was_written(store, name) {
        if !store.capabilities().scan {
            return;
        }
        let mut session = store.session().unwrap();
        let mut other = store.session().unwrap();
        session.insert(b"key", b"first").unwrap();
        let shown = |session: &mut S::Session<'_>| scan(session, b"key", 1).unwrap();
        let pair = |value: &[u8]| vec![(b"key".to_vec(), value.to_vec())];
        assert_eq!(shown(&mut session), pair(b"first"), "{name}");
        assert_eq!(shown(&mut other), pair(b"first"), "{name}");
        session.update(b"key", b"second").unwrap();
        assert_eq!(shown(&mut session), pair(b"second"), "{name}");
        assert_eq!(shown(&mut other), pair(b"second"), "{name}: by another session");
        store.settle(Duration::from_secs(60)).unwrap();
        session.update(b"key", b"third").unwrap();
        assert_eq!(shown(&mut other), pair(b"third"), "{name}: after a flush");
        other.delete(b"key").unwrap();
        assert_eq!(shown(&mut session), [], "{name}: deleted");
    }

    fn threads_do_not_disturb_each_other(store, name) {
        const THREADS: u32 = 4;
        const KEYS: u32 = 300;
        let key = |thread: u32, number: u32| format!("{number:05} of {thread}").into_bytes();
        let value = |thread: u32, number: u32| vec![thread as u8; 50 + number as usize];
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mut session = store.session().unwrap();
                    for number in 0..KEYS {
                        session.insert(&key(thread, number), b"not yet").unwrap();
                        session.update(&key(thread, number), &value(thread, number)).unwrap();
                        let back = number / 2;
                        let there = read(&mut session, &key(thread, back)).unwrap();
                        assert_eq!(there, Some(value(thread, back)), "{name}");
                    }
                });
            }
        });
        let mut session = store.session().unwrap();
        for thread in 0..THREADS {
            for number in 0..KEYS {
                let there = read(&mut session, &key(thread, number)).unwrap();
                assert_eq!(there, Some(value(thread, number)), "{name}");
            }
        }
    }

    fn describes_itself(store, name) {
        let version = store.version();
        assert!(version.contains(|it: char| it.is_ascii_digit()), "{name}: {version}");
        let mut session = store.session().unwrap();
        for number in 0..100_u32 {
            session.insert(&number.to_be_bytes(), &[1; 100]).unwrap();
        }
        let before = store.statistics();
        let names: BTreeSet<_> = before.iter().map(|it| it.name.as_str()).collect();
        assert!(!before.is_empty(), "{name}");
        assert_eq!(names.len(), before.len(), "{name}: a name is there twice");
        for number in 0..100_u32 {
            session.update(&number.to_be_bytes(), &[2; 100]).unwrap();
        }
        store.settle(Duration::from_secs(60)).unwrap();
        let after: BTreeMap<_, _> =
            store.statistics().into_iter().map(|it| (it.name, it.value)).collect();
        for earlier in before {
            let later = after[&earlier.name];
            assert!(later.is_finite() && later >= 0.0, "{name}: {} {later}", earlier.name);
            let total = earlier.name.ends_with(".total");
            assert!(!total || later >= earlier.value, "{name}: {} went back", earlier.name);
        }
    }
}

#[test]
fn data_persists_after_close() {
    struct Write;
    impl Test for Write {
        fn run<S: Store>(&self, store: &S, _: &str) {
            let mut session = store.session().unwrap();
            for number in 0..500_u32 {
                session.insert(&number.to_be_bytes(), &[number as u8; 300]).unwrap();
            }
            session.delete(&7_u32.to_be_bytes()).unwrap();
        }
    }
    struct Read;
    impl Test for Read {
        fn run<S: Store>(&self, store: &S, name: &str) {
            let mut session = store.session().unwrap();
            for number in 0..500_u32 {
                let there = read(&mut session, &number.to_be_bytes()).unwrap();
                let expected = (number != 7).then(|| vec![number as u8; 300]);
                assert_eq!(there, expected, "{name}: {number}");
            }
        }
    }
    for place in places_and_servers() {
        with(&place.url, &Write);
        with(&place.url, &Read);
        with(&place.url, &Read);
    }
}

#[test]
fn options_in_force_can_be_used_as_a_url() {
    struct Options;
    impl StoreVisitor for Options {
        type Output = Vec<(String, String)>;
        fn visit<S: Store>(self, store: S) -> Self::Output {
            store.options()
        }
    }
    for place in places() {
        let url = &place.url;
        let directory = store::Directory::claim(url, 0).unwrap();
        let options = open(url, Options).unwrap();
        let known = url.describe().unwrap();
        let names: Vec<_> = options.iter().map(|(name, _)| name.as_str()).collect();
        let declared: Vec<_> = known.options.iter().map(|option| option.name).collect();
        assert_eq!(names, declared, "{url}");
        for given in &url.options {
            assert!(options.contains(given), "{url}: {given:?} is not among {options:?}");
        }
        let again = StoreUrl { options: options.clone(), ..url.clone() };
        let again: StoreUrl = again.to_string().parse().unwrap();
        assert_eq!(open(&again, Options).unwrap(), options, "{url}");
        drop(directory);
    }
}

#[test]
fn null_answers_at_once() {
    struct Null;
    impl StoreVisitor for Null {
        type Output = ();
        fn visit<S: Store>(self, store: S) {
            let capabilities = store.capabilities();
            assert!(
                !capabilities.stores_values && capabilities.survives.is_none() && capabilities.scan
            );
            let mut session = store.session().unwrap();
            session.insert(b"key", b"value").unwrap();
            assert!(session.read(b"key", |_| panic!("it has no value to lend")).unwrap());
            assert_eq!(session.scan(b"key", 9, |_, _| panic!("nor pairs")).unwrap(), 9);
            session.delete(b"key").unwrap();
        }
    }
    open(&"null".parse().unwrap(), Null).unwrap();
}
