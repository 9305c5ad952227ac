//! Decoding arbitrary bytes ends with a result or an error. The fuzz targets test the same for
//! longer.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::prelude::*;
use spill::{Batch, Error, Options, Store};

/// Files of a store: records of a segment, an index file, the manifest.
struct Files {
    records: Vec<u8>,
    pages: Vec<u8>,
    manifest: Vec<u8>,
}

fn first_in(folder: &Path) -> Vec<u8> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    std::fs::read(&paths[0]).unwrap()
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let options = Options { segment: 64 << 10, background: false, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        for number in 0..400_u32 {
            let mut batch = Batch::new();
            batch.put(&table, &number.to_be_bytes(), &number.to_le_bytes());
            batch.delete(&table, &[&[0; 9][..], &number.to_be_bytes()].concat());
            store.write(&batch).unwrap();
            table.put(&[&[7; 140][..], &number.to_be_bytes()].concat(), b"").unwrap();
            if number.is_multiple_of(50) {
                store.sync().unwrap();
            }
        }
        store.flush().unwrap();
        Files {
            records: first_in(&home.path().join("log"))[64..20_000].to_vec(),
            pages: first_in(&home.path().join("index")),
            manifest: std::fs::read(home.path().join("MANIFEST")).unwrap(),
        }
    })
}

/// Replaces some bytes, often by meaningful ones.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let byte = prop_oneof![any::<u8>(), 0_u8..6, Just(0xff)];
    vec((any::<prop::sample::Index>(), byte), 0..20)
}

/// Arbitrary bytes, or bytes that start like records with short keys.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let rest = vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 19);
    let record = (1_u8..0x80, rest).prop_map(|(kind, rest)| [&[0; 4][..], &[kind], &rest].concat());
    prop_oneof![vec(any::<u8>(), 0..6000), vec(record, 0..200).prop_map(|all| all.concat())]
}

fn mutated(bytes: &[u8], mutations: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, byte) in mutations {
        let place = place.index(bytes.len());
        bytes[place] = *byte;
    }
    bytes
}

fn walk(bytes: &[u8], repaired: bool) {
    let home = tempfile::tempdir().unwrap();
    match spill::fuzz::segment(home.path(), bytes, repaired) {
        Ok(()) | Err(Error::Damaged { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in any_bytes(), repaired: bool) {
        walk(&bytes, repaired);
        spill::fuzz::page(&bytes, repaired);
        spill::manifest::fuzz_decode(&bytes);
    }

    #[test]
    fn mutated_files_do_not_panic(
        mutations in mutations(),
        cut in any::<prop::sample::Index>(),
        repaired: bool,
    ) {
        let files = files();
        let records = mutated(&files.records, &mutations);
        walk(&records, repaired);
        walk(&records[..cut.index(records.len())], repaired);
        for page in files.pages.chunks(4096) {
            spill::fuzz::page(&mutated(page, &mutations), repaired);
        }
        let manifest = mutated(&files.manifest, &mutations);
        spill::manifest::fuzz_decode(&manifest);
        spill::manifest::fuzz_decode(&manifest[..cut.index(manifest.len())]);
    }
}

#[test]
fn unmodified_files_decode() {
    let files = files();
    walk(&files.records, false);
    walk(&files.records, true);
    for page in files.pages.chunks(4096) {
        spill::fuzz::page(page, true);
    }
    spill::manifest::fuzz_decode(&files.manifest);
}
