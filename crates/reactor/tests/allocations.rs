//! Nothing is allocated once the buffers have grown.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)]

#[path = "../../model/tests/shared/allocations.rs"]
mod shared;
mod support;

use std::io::{Read, Write};
use std::time::Duration;

use shared::ALLOCATIONS;
use support::{add_pair, reactor, with_each_engine};

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
