use std::time::Duration;

use micro::net::{Kind, MeasuredCell, NetJob, Transport};

use crate::ends::*;

fn flow(transport: Transport, size: u64) -> NetJob {
    job(Kind::Flow, transport, size)
}

fn is_whole(cell: &MeasuredCell, count: u64) {
    let what = &cell.job;
    assert_eq!(cell.invalid_because(), Vec::<String>::new(), "{what:?}");
    assert_eq!((cell.client.messages, cell.messages(), cell.lost()), (count, count, 0), "{what:?}");
}

#[test]
fn a_small_stride_reads_every_byte() {
    for transport in [Transport::Tcp, Transport::Unix] {
        for (size, count) in
            [(1, 5000), (7, 3000), (17, 3000), (64, 5000), (70_001, 50), (9_000_000, 2)]
        {
            let job = NetJob { stride: 1, ..flow(transport, size) };
            let cell = one(&job, &messages(count)).unwrap();
            is_whole(&cell, count);
            assert_eq!(cell.server.touched, size * count);
            assert_eq!(cell.latency().0.is_ok(), size >= 16);
        }
    }
}

#[test]
fn touches_follow_the_stride_whatever_the_reuse_distance() {
    let size = 1000;
    for stride in [9, 64, 100, 4096] {
        for reuse in [0, 1, 300_000, 10_000_000] {
            for transport in [Transport::Tcp, Transport::Udp] {
                // As many datagrams as a socket holds, so that none is dropped.
                let count = if transport == Transport::Udp { 60 } else { 500 };
                let job = NetJob { stride, reuse, ..flow(transport, size) };
                let cell = one(&job, &messages(count)).unwrap();
                is_whole(&cell, count);
                assert_eq!(
                    cell.server.touched,
                    (size * count).div_ceil(stride),
                    "{stride} {reuse}"
                );
            }
        }
    }
    let nothing = NetJob { stride: 0, ..flow(Transport::Tcp, size) };
    assert_eq!(one(&nothing, &messages(500)).unwrap().server.touched, 0);
}

#[test]
fn several_connections_and_threads_each_have_their_own_stream() {
    for transport in [Transport::Tcp, Transport::Unix] {
        let job = NetJob { connections: 7, threads: 2, stride: 8, ..flow(transport, 5001) };
        is_whole(&one(&job, &messages(700)).unwrap(), 700);
        let busy = NetJob { busy_poll: true, ..job };
        is_whole(&one(&busy, &messages(700)).unwrap(), 700);
    }
}

#[test]
fn counts_datagrams_that_a_slow_receiver_drops() {
    // The receiver's buffer holds a few; the sender does not wait for it.
    let job = NetJob { socket_buffer: Some(4608), stride: 8, ..flow(Transport::Udp, 2000) };
    let cell = one(&job, &messages(20_000)).unwrap();
    assert_eq!(cell.corrupt(), 0);
    assert_eq!(cell.client.messages, 20_000);
    assert!(cell.lost() > 0, "nothing was dropped");
    assert_eq!(cell.messages() + cell.lost(), 20_000);
    assert_eq!(cell.server.touched, cell.messages() * 250);
}

#[test]
fn a_flow_keeps_its_rate_and_ends_with_its_time() {
    let mut config = messages(u64::MAX);
    config.messages = None;
    config.time = Duration::from_millis(300);
    let job = NetJob { rate: Some(1000.0), connections: 2, ..flow(Transport::Tcp, 100) };
    let cell = one(&job, &config).unwrap();
    is_whole(&cell, cell.client.messages);
    // No message goes before it is due.
    assert!((1..=302).contains(&cell.messages()), "{}", cell.messages());
}
