//! The next arrival at a rate that moves allocates nothing.
#![allow(unsafe_code)]

#[path = "shared/allocations.rs"]
mod shared;

use model::{ProfileCursor, RateProfile};
use shared::ALLOCATIONS;

#[test]
fn the_next_arrival_allocates_nothing() {
    for text in ["steps:1k@1s,9k@1s", "sine:mean=1k,amplitude=1k,period=10s"] {
        let profile = RateProfile::parse(text).expect(text);
        let mut cursor = ProfileCursor::new(profile);
        let before = ALLOCATIONS.get();
        for _ in 0..100_000 {
            cursor.advance(0.01);
        }
        assert_eq!(ALLOCATIONS.get(), before, "{text}");
    }
}
