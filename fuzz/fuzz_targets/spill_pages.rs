#![no_main]

use libfuzzer_sys::fuzz_target;

// The first byte says whether the check is put right.
fuzz_target!(|data: &[u8]| {
    if let Some((flags, page)) = data.split_first() {
        spill::fuzz::page(page, flags & 1 == 1);
    }
});
