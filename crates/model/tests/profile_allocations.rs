//! The next arrival at a rate that moves allocates nothing.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use model::{ProfileCursor, RateProfile};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

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
