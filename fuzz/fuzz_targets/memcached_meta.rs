#![no_main]

use libfuzzer_sys::fuzz_target;
use store::wire::Protocol;

fuzz_target!(|data: &[u8]| kvmeter_fuzz::check(Protocol::MemcachedMeta, data));
