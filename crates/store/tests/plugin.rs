//! Plug-ins: the hash table of the examples, and what a broken one is told.
#![allow(clippy::unwrap_used)]

#[path = "shared/plugins.rs"]
mod plugins;

use std::fs;
use std::path::{Path, PathBuf};

use store::{KeyBatch, Session, Store, StoreError, StoreUrl, StoreVisitor, open};
use tempfile::TempDir;

/// Runs code on an open store.
struct With<F>(F);

impl<F: FnOnce(&dyn Fn(&str) -> Result<bool, StoreError>)> StoreVisitor for With<F> {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        let operation = |name: &str| {
            let mut session = store.session()?;
            match name {
                "get" => session.read(b"key", |_| ()),
                "put" => session.update(b"key", b"value").map(|()| true),
                "multi_get" => {
                    let (mut keys, mut found) = (KeyBatch::default(), 0);
                    ["a", "b"].iter().for_each(|key| keys.push(key.as_bytes()));
                    session.multi_get(&keys, |_, _| found += 1).map(|()| found == 2)
                }
                "remove" => session.delete(b"key").map(|()| true),
                _ => session.scan(b"key", 2, |_, _| ()).map(|pairs| pairs == 2),
            }
        };
        (self.0)(&operation);
    }
}

fn url(library: &Path, options: &str) -> StoreUrl {
    format!("plugin:{}{options}", library.display()).parse().unwrap()
}

/// A plug-in whose functions are those of a store without records, but for the given text, which
/// stands after them and before the table.
fn built(folder: &TempDir, name: &str, own: &str, table: &str) -> Option<PathBuf> {
    let source = folder.path().join(format!("{name}.c"));
    let text = format!(
        r#"
#include "kvmeter_store.h"
static int anything;
static kvmeter_status open_(const char *d, const kvmeter_option *o, size_t n, kvmeter_db **db,
                            kvmeter_error *e)
{{ (void)d; (void)o; (void)n; (void)e; *db = (kvmeter_db *)&anything; return KVMETER_OK; }}
static void close_(kvmeter_db *db) {{ (void)db; }}
static uint32_t can(kvmeter_db *db) {{ (void)db; return KVMETER_SCANS; }}
static kvmeter_status session(kvmeter_db *db, kvmeter_session **s, kvmeter_error *e)
{{ (void)e; *s = (kvmeter_session *)db; return KVMETER_OK; }}
static void end(kvmeter_session *s) {{ (void)s; }}
static kvmeter_status none(kvmeter_session *s, const void *k, size_t n, kvmeter_on_value found,
                           void *c, kvmeter_error *e)
{{ (void)s; (void)k; (void)n; (void)found; (void)c; (void)e; return KVMETER_NOT_FOUND; }}
static kvmeter_status ignore(kvmeter_session *s, const void *k, size_t n, const void *v, size_t m,
                             kvmeter_error *e)
{{ (void)s; (void)k; (void)n; (void)v; (void)m; (void)e; return KVMETER_OK; }}
static kvmeter_status gone(kvmeter_session *s, const void *k, size_t n, kvmeter_error *e)
{{ (void)s; (void)k; (void)n; (void)e; return KVMETER_OK; }}
{own}
#pragma GCC diagnostic ignored "-Woverride-init"
static const kvmeter_store_table table = {{
    .abi = KVMETER_STORE_ABI, .size = sizeof table, .name = "broken", .version = "0",
    .open = open_, .close = close_, .capabilities = can, .session_open = session,
    .session_close = end, .get = none, .put = ignore, .remove = gone, {table}
}};
const kvmeter_store_table *kvmeter_store(void) {{ return &table; }}
"#
    );
    fs::write(&source, text).unwrap();
    match plugins::build(&source, &["-Wno-unused-function"], folder.path()) {
        Ok(library) => Some(library),
        Err(why) if why.contains("No such file") => {
            eprintln!("skipped: no compiler: {why}");
            None
        }
        Err(why) => panic!("{name}: {why}"),
    }
}

#[test]
fn hash_table_stores_what_is_written() {
    let home = TempDir::new().unwrap();
    let Ok(library) = plugins::build(&plugins::example("hash_table"), &[], home.path()) else {
        eprintln!("skipped: no compiler");
        return;
    };
    struct Records;
    impl StoreVisitor for Records {
        type Output = ();
        fn visit<S: Store>(self, store: S) {
            assert!(store.version().starts_with("hash table 1.0 (sha256 "), "{}", store.version());
            let buckets = store.options().into_iter().find(|(name, _)| name == "buckets");
            assert_eq!(buckets.unwrap().1, "100");
            assert!(!store.capabilities().scan && store.capabilities().stores_values);
            std::thread::scope(|scope| {
                for thread in 0..4_u32 {
                    let store = &store;
                    scope.spawn(move || write_and_read(store, thread));
                }
            });
        }
    }
    open(&url(&library, "?buckets=100"), Records).unwrap();
    let wrong = open(&url(&library, "?buckets=0"), Records).unwrap_err();
    assert!(matches!(wrong, StoreError::Request(_)), "{wrong}");
    assert!(wrong.to_string().contains("`buckets` takes a number from 1"), "{wrong}");
    let wrong = url(&library, "?bucket=5").check().unwrap_err().to_string();
    assert!(wrong.contains("did you mean `buckets`?"), "{wrong}");
    let known = url(&library, "").describe().unwrap();
    assert!(!known.on_disk && known.longest_key == usize::MAX);
}

fn write_and_read<S: Store>(store: &S, thread: u32) {
    let mut session = store.session().unwrap();
    let key = |number: u32| format!("{thread}-{number}");
    for number in 0..1000 {
        session.insert(key(number).as_bytes(), &vec![number as u8; number as usize]).unwrap();
        session.update(key(number / 2).as_bytes(), b"again").unwrap();
    }
    for number in 0..1000_u32 {
        let expected =
            if number < 500 { b"again".to_vec() } else { vec![number as u8; number as usize] };
        let mut calls = 0;
        let found = session.read(key(number).as_bytes(), |value| {
            calls += 1;
            assert_eq!(value, expected);
        });
        assert_eq!((found.unwrap(), calls), (true, 1));
        session.delete(key(number).as_bytes()).unwrap();
        session.delete(key(number).as_bytes()).unwrap();
        assert!(!session.read(key(number).as_bytes(), |_| ()).unwrap());
    }
}

#[test]
fn what_is_no_plug_in_is_refused() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("text.so");
    fs::write(&file, "no library").unwrap();
    let refused = |url: StoreUrl| {
        let error = url.check().unwrap_err();
        assert!(matches!(error, StoreError::Request(_)), "{error:?}");
        error.to_string()
    };
    assert!(refused(url(&file, "")).contains("it cannot be loaded"));
    assert!(refused(url(&home.path().join("absent.so"), "")).contains("No such file"));
    assert!(refused("plugin:nothing".parse().unwrap()).contains("there is no plug-in `nothing`"));
    for (name, own, table, words) in [
        ("abi", "", ".abi = 7,", "built for version 7 of the plug-in interface, and this"),
        ("short", "", ".size = 8,", "its table has 8 bytes"),
        ("get", "", ".get = NULL,", "its function `get` is missing"),
        ("name", "", ".name = NULL,", "its name is missing"),
        ("count", "", ".option_count = 9999,", "it has 9999 options"),
        ("options", "", ".option_count = 1,", "its options are missing"),
        (
            "own",
            "static const kvmeter_option options[] = {{\"limit\", \"1\", \"\"}};",
            ".options = options, .option_count = 1,",
            "its option `limit` is there twice, or is kvmeter's own",
        ),
    ] {
        let Some(library) = built(&home, name, own, table) else { return };
        let error = refused(url(&library, ""));
        assert!(error.contains(words), "{name}: {error}");
    }
    let none = home.path().join("none.c");
    fs::write(&none, "int other(void); int other(void) { return 0; }").unwrap();
    let library = plugins::build(&none, &[], home.path()).unwrap();
    assert!(refused(url(&library, "")).contains("has no function `kvmeter_store`"));
}

#[test]
fn what_the_interface_rules_out_is_told() {
    let home = TempDir::new().unwrap();
    let get = |body: &str| {
        format!(
            "static kvmeter_status own(kvmeter_session *s, const void *k, size_t n, \
             kvmeter_on_value found, void *c, kvmeter_error *e) {{ (void)s; (void)k; (void)n; \
             (void)found; (void)c; (void)e; {body} }}"
        )
    };
    let scan = |body: &str| {
        format!(
            "static kvmeter_status own(kvmeter_session *s, const void *k, size_t n, size_t limit, \
             kvmeter_on_pair each, void *c, kvmeter_error *e) {{ (void)s; (void)k; (void)n; \
             (void)limit; (void)each; (void)c; (void)e; {body} }}"
        )
    };
    let multi_get = |body: &str| {
        format!(
            "static kvmeter_status own(kvmeter_session *s, const kvmeter_key *keys, size_t n, \
             kvmeter_on_found found, void *c, kvmeter_error *e) {{ (void)s; (void)keys; (void)n; \
             (void)found; (void)c; (void)e; {body} }}"
        )
    };
    for (name, own, function, words) in [
        (
            "beyond",
            multi_get("found(c, n, \"a\", 1); return KVMETER_OK;"),
            "multi_get",
            "for a key beyond the last",
        ),
        (
            "again",
            multi_get("found(c, 1, \"a\", 1); found(c, 1, \"a\", 1); return KVMETER_OK;"),
            "multi_get",
            "several values for one key",
        ),
        (
            "void",
            multi_get("found(c, 0, NULL, 3); return KVMETER_OK;"),
            "multi_get",
            "that is nowhere",
        ),
        ("absent", multi_get("return KVMETER_NOT_FOUND;"), "multi_get", "answered 1"),
        ("nothing", get("return KVMETER_OK;"), "get", "found the key and lent no value"),
        (
            "twice",
            get("found(c, \"a\", 1); found(c, \"a\", 1); return KVMETER_OK;"),
            "get",
            "lent several values",
        ),
        ("nowhere", get("found(c, NULL, 9); return KVMETER_OK;"), "get", "that is nowhere"),
        ("endless", get("found(c, k, (size_t)-1); return KVMETER_OK;"), "get", "that is nowhere"),
        (
            "both",
            get("found(c, \"a\", 1); return KVMETER_NOT_FOUND;"),
            "get",
            "lent a value of a key not found",
        ),
        ("number", get("return 77;"), "get", "answered 77"),
        (
            "on",
            scan("for (int i = 0; i < 5; i++) each(c, \"a\", 1, \"b\", 1); return KVMETER_OK;"),
            "scan",
            "went on after its limit",
        ),
        (
            "pair",
            scan("each(c, NULL, 4, \"b\", 1); return KVMETER_OK;"),
            "scan",
            "lent a pair that is nowhere",
        ),
    ] {
        let table = format!(".{function} = own,");
        let Some(library) = built(&home, name, &own, &table) else { return };
        let check = With(|operation: &dyn Fn(&str) -> Result<bool, StoreError>| {
            let error = operation(function).unwrap_err();
            assert!(matches!(error, StoreError::Broken(_)), "{name}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(words) && text.contains(&format!("`{function}`")), "{text}");
            assert!(operation("put").unwrap(), "{name}");
        });
        open(&url(&library, ""), check).unwrap();
    }
}

#[test]
fn a_table_without_later_members_is_taken() {
    let home = TempDir::new().unwrap();
    let own = "static kvmeter_status own(kvmeter_session *s, const void *k, size_t n, \
               kvmeter_on_value found, void *c, kvmeter_error *e) { (void)s; (void)n; (void)e; \
               found(c, k, 1); return KVMETER_OK; }\n\
               static kvmeter_status many(kvmeter_session *s, const kvmeter_key *keys, size_t n, \
               kvmeter_on_found found, void *c, kvmeter_error *e) { (void)s; (void)keys; (void)n; \
               (void)found; (void)c; (void)e; return KVMETER_FAILED; }\n#include <stddef.h>";
    // `many`, which fails, lies beyond the size that the table states.
    for (name, size, works) in [
        ("early", "offsetof(kvmeter_store_table, multi_get)", true),
        ("late", "sizeof table", false),
    ] {
        let table = format!(".get = own, .multi_get = many, .size = {size},");
        let Some(library) = built(&home, name, own, &table) else { return };
        let check = With(|operation: &dyn Fn(&str) -> Result<bool, StoreError>| {
            assert_eq!(operation("multi_get").ok(), works.then_some(true), "{name}");
        });
        open(&url(&library, ""), check).unwrap();
    }
}

#[test]
fn reasons_of_a_plug_in_are_passed_on() {
    let home = TempDir::new().unwrap();
    let put = |status: &str, message: &str| {
        format!(
            "static kvmeter_status own(kvmeter_session *s, const void *k, size_t n, const void *v, \
             size_t m, kvmeter_error *e) {{ (void)s; (void)k; (void)n; (void)v; (void)m; {message} \
             (void)e; return {status}; }}"
        )
    };
    let long = "for (int i = 0; i < KVMETER_MESSAGE; i++) e->message[i] = 'x';";
    for (name, status, message, words) in [
        ("full", "KVMETER_FULL", "kvmeter_fail(e, 0, \"no room\");", "no room"),
        ("failed", "KVMETER_FAILED", "kvmeter_fail(e, 0, \"a reason\");", "broken: put: a reason"),
        ("silent", "KVMETER_FAILED", "", "it gave no reason"),
        ("long", "KVMETER_FAILED", long, "xxxx"),
    ] {
        let Some(library) = built(&home, name, &put(status, message), ".put = own,") else {
            return;
        };
        let check = With(|operation: &dyn Fn(&str) -> Result<bool, StoreError>| {
            let error = operation("put").unwrap_err();
            assert_eq!(matches!(error, StoreError::Full(_)), name == "full", "{error:?}");
            assert!(error.to_string().contains(words), "{error}");
        });
        open(&url(&library, ""), check).unwrap();
    }
}
