use micro::net::{Kind, MeasuredCell, NetJob, Transport};

use crate::ends::*;

fn is_whole(cell: &MeasuredCell, count: u64) {
    let what = &cell.job;
    assert_eq!(cell.invalid_because(), Vec::<String>::new(), "{what:?}");
    assert_eq!((cell.messages(), cell.lost(), cell.late()), (count, 0, 0), "{what:?}");
    assert_eq!(cell.server.messages, count, "{what:?}");
    assert_eq!(cell.latency().0.as_ref().unwrap().len(), count, "{what:?}");
    assert!(cell.client.seconds > 0.0 && cell.server.cpu().is_some(), "{what:?}");
    assert_eq!(cell.bytes(), 2 * count * what.size);
}

#[test]
fn streams_echo_messages_of_every_size() {
    // From a byte to more than any socket buffer.
    let sizes = [1, 2, 7, 8, 9, 64, 1447, 4096, 65_536, 1_000_003, 16 << 20];
    for transport in [Transport::Tcp, Transport::Unix] {
        let jobs: Vec<NetJob> =
            sizes.iter().map(|size| job(Kind::Pingpong, transport, *size)).collect();
        let cells = all(&jobs, &messages(5)).unwrap();
        assert_eq!(cells.len(), sizes.len());
        cells.iter().for_each(|cell| is_whole(cell, 5));
    }
}

#[test]
fn datagrams_echo_up_to_the_largest() {
    let jobs: Vec<NetJob> = [1, 3, 8, 1472, 1473, 65_507]
        .iter()
        .map(|size| job(Kind::Pingpong, Transport::Udp, *size))
        .collect();
    for cell in all(&jobs, &messages(300)).unwrap() {
        is_whole(&cell, 300);
    }
}

#[test]
fn small_socket_buffers_take_a_large_message_in_parts() {
    let small =
        NetJob { socket_buffer: Some(65_536), ..job(Kind::Pingpong, Transport::Tcp, 3_000_001) };
    is_whole(&one(&small, &messages(3)).unwrap(), 3);
    // With several connections nothing blocks: parts go in turn.
    let several = NetJob { connections: 3, ..small };
    is_whole(&one(&several, &messages(6)).unwrap(), 6);
}

#[test]
fn many_connections_and_threads() {
    for transport in [Transport::Tcp, Transport::Unix, Transport::Udp] {
        let many = NetJob { connections: 100, threads: 3, ..job(Kind::Pingpong, transport, 700) };
        is_whole(&one(&many, &messages(1000)).unwrap(), 1000);
    }
}

#[test]
fn busy_polling_never_sleeps_and_loses_nothing() {
    let busy =
        NetJob { busy_poll: true, connections: 2, ..job(Kind::Pingpong, Transport::Tcp, 100) };
    is_whole(&one(&busy, &messages(100)).unwrap(), 100);
}

#[test]
fn a_warm_up_does_not_count() {
    let mut config = messages(50);
    config.warm_up = std::time::Duration::from_millis(50);
    for transport in [Transport::Tcp, Transport::Udp] {
        is_whole(&one(&job(Kind::Pingpong, transport, 40), &config).unwrap(), 50);
    }
}
