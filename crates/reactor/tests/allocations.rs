//! Nothing is allocated once the buffers have grown.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::time::Duration;

use support::{add_pair, reactor, with_each_engine};

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
fn the_steady_state_allocates_nothing() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let mut peers: Vec<_> = (0..8).map(|_| add_pair(&mut reactor).1).collect();
        let mut request = [0; 240];
        let mut round = || {
            for (conn, peer) in peers.iter_mut().enumerate() {
                reactor.outgoing(conn).extend_from_slice(&[b'q'; 240]);
                reactor.send(conn);
                peer.write_all(&[b'a'; 1600]).unwrap();
            }
            let mut received = 0;
            while received < peers.len() * 1600 {
                reactor.poll(Some(Duration::from_secs(5))).unwrap();
                while let Some(conn) = reactor.ready() {
                    let length = reactor.incoming(conn).len();
                    reactor.consume(conn, length);
                    received += length;
                }
            }
            peers.iter_mut().for_each(|peer| peer.read_exact(&mut request).unwrap());
        };
        let before_warming = ALLOCATIONS.get();
        (0..50).for_each(|_| round());
        let before = ALLOCATIONS.get();
        assert!(before > before_warming, "the counter counts nothing");
        (0..500).for_each(|_| round());
        assert_eq!(ALLOCATIONS.get() - before, 0, "{engine}");
    });
}
