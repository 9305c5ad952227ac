#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// Where the segment is.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("spill-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder for temporary files takes one more");
        folder
    })
}

// The first byte says whether the checks are put right.
fuzz_target!(|data: &[u8]| {
    if let Some((flags, records)) = data.split_first() {
        match spill::fuzz::segment(folder(), records, flags & 1 == 1) {
            Ok(()) | Err(spill::Error::Damaged { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
});
