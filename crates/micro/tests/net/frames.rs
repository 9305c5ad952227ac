use micro::net::{Kind, NetJob, Transport};

use crate::ends::*;

const LONGEST: usize = 1514;

fn ether(kind: Kind, size: u64) -> NetJob {
    job(kind, Transport::Ethernet, size)
}

#[test]
fn messages_of_one_and_of_many_frames_come_back() {
    for size in [1, 14, 15, 1468, 1469, 100_000] {
        let cell = over(wire(LONGEST, 1000), &ether(Kind::Pingpong, size), &messages(100)).unwrap();
        assert_eq!(cell.invalid_because(), Vec::<String>::new());
        assert_eq!((cell.messages(), cell.lost(), cell.server.messages), (100, 0, 100), "{size}");
        assert_eq!(cell.latency().0.as_ref().unwrap().len(), 100);
    }
    let many = NetJob { connections: 20, ..ether(Kind::Pingpong, 3000) };
    let cell = over(wire(LONGEST, 1000), &many, &messages(400)).unwrap();
    assert_eq!((cell.messages(), cell.corrupt()), (400, 0));
}

#[test]
fn flows_are_touched_as_over_sockets() {
    for (size, stride, reuse) in [(1, 8, 0), (100, 64, 5000), (1468, 1, 20_000), (50_000, 4096, 1)]
    {
        let job = NetJob { stride, reuse, connections: 3, ..ether(Kind::Flow, size) };
        let cell = over(wire(LONGEST, 1000), &job, &messages(300)).unwrap();
        assert_eq!(cell.invalid_because(), Vec::<String>::new());
        assert_eq!((cell.client.messages, cell.messages(), cell.lost()), (300, 300, 0));
        let each = size * 100;
        let places = if stride <= 8 { each / stride } else { each.div_ceil(stride) };
        let touched = cell.server.touched;
        assert!(touched == 3 * places || size == 1, "{touched} of {}", 3 * places);
        assert_eq!(cell.latency().0.is_ok(), size >= 16);
    }
}

#[test]
fn lost_frames_are_lost_messages() {
    let (mut client, server) = wire(LONGEST, 1000);
    client.loses = Some(10);
    let job = NetJob { timeout_s: 0.02, ..ether(Kind::Pingpong, 2000) };
    // Two frames a message: each fifth message loses one.
    let cell = over((client, server), &job, &messages(50)).unwrap();
    assert_eq!((cell.messages(), cell.lost(), cell.corrupt()), (40, 10, 0));

    let (mut client, server) = wire(LONGEST, 1000);
    client.loses = Some(7);
    let cell = over((client, server), &ether(Kind::Flow, 1000), &messages(700)).unwrap();
    assert_eq!((cell.messages(), cell.lost(), cell.corrupt()), (600, 100, 0));
}

#[test]
fn a_corrupt_frame_makes_the_result_invalid() {
    for kind in [Kind::Pingpong, Kind::Flow] {
        let (mut client, server) = wire(LONGEST, 1000);
        client.spoils = Some(9);
        let job = NetJob { stride: 8, ..ether(kind, 500) };
        let cell = over((client, server), &job, &messages(90)).unwrap();
        assert_eq!((cell.messages(), cell.corrupt()), (90, 10), "{kind}");
        assert!(cell.invalid_because()[0].contains("10 messages were not what was sent"));
    }
}

#[test]
fn refuses_a_reuse_distance_beyond_the_port() {
    let far = NetJob { reuse: 1 << 20, ..ether(Kind::Flow, 1000) };
    let large = ether(Kind::Pingpong, 1 << 20);
    for (job, flag) in [(far, "--reuse"), (large, "--size")] {
        let error = over(wire(LONGEST, 100), &job, &messages(1)).unwrap_err();
        assert!(error.is_request(), "{error}");
        let words = error.to_string();
        assert!(words.contains(flag) && words.contains("--frames"), "{words}");
    }
}
