//! Packet captures.

use workload::trace::{TraceFormat, TraceOptions, TraceRecords, TraceTiming};

use super::packets::{CLIENT, Capture, Link, SERVER, reply, request};
use super::{TraceFile, failing, gzip, requests, shown};

fn binary(opcode: u8, key: &[u8], extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, 0];
    bytes.extend(((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    bytes.extend([0; 12]);
    [&bytes[..], extras, key, value].concat()
}

const RESP: &[u8] = b"*5\r\n$3\r\nSET\r\n$3\r\nk 1\r\n$40\r\n0123456789012345678901234567890123456789\r\n\
                      $2\r\nEX\r\n$2\r\n10\r\n*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$3\r\nb\xff,\r\nPING\r\n";

const TEXT: &[u8] = b"set foo 0 60 5\r\nhello\r\nget foo bar\r\nmg foo v\r\nms baz 3 T90 ME\r\nabc\r\n\
                      md foo\r\ngat 10 baz\r\nversion\r\nma n MD\r\nappend foo 0 -1 1 noreply\r\nx\r\n";

/// What a server answers looks like requests of Redis.
const ANSWER: &[u8] = b"*2\r\n$3\r\nget\r\n$1\r\nx\r\n";

fn mixed(capture: &mut Capture) {
    capture.syn(CLIENT, SERVER);
    capture.segment(CLIENT, SERVER, 0, TEXT);
    capture.segment(SERVER, CLIENT, 0, b"STORED\r\nEND\r\n");
    // Begins within a connection.
    let (client, server) = ((1, 4001), (2, 6379));
    capture.segment(client, server, 500, RESP);
    capture.segment(server, client, 900, ANSWER);
    let client = (1, 4002);
    let set = binary(1, b"bk", &[0, 0, 0, 0, 0, 0, 0, 30], b"seven..");
    capture.segment(
        client,
        server,
        0,
        &[&set[..], &binary(0, b"bk", b"", b""), &binary(10, b"", b"", b"")].concat(),
    );
}

const MIXED: [&str; 13] = [
    "set foo v=5 ttl=60",
    "get foo",
    "get bar",
    "get foo",
    "add baz v=3 ttl=90",
    "delete foo",
    "get baz",
    "decr n",
    "append foo v=1 at-once",
    "set k 1 v=40 ttl=10",
    "get a",
    "get b\\xff,",
    "set bk v=7 ttl=30",
];

/// The requests without their times.
fn untimed(lines: Vec<String>) -> Vec<String> {
    lines.iter().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
}

#[test]
fn requests_are_found_behind_every_link_and_in_every_container() {
    for link in [Link::Ethernet, Link::Vlan, Link::Cooked, Link::Cooked2, Link::Loopback, Link::Raw]
    {
        for ipv6 in [false, true] {
            let mut capture = Capture::new(link, ipv6);
            mixed(&mut capture);
            for bytes in [
                capture.pcap(false, false),
                capture.pcap(true, false),
                capture.pcap(false, true),
                capture.pcapng(false),
                capture.pcapng(true),
                gzip(&capture.pcapng(false)),
            ] {
                let lines = untimed(requests(TraceFormat::PacketCapture, bytes));
                let expected = [&MIXED[..], &["get bk"]].concat();
                assert_eq!(lines, expected, "{link:?} {ipv6}");
            }
        }
    }
}

#[test]
fn times_are_those_of_the_packets() {
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.segment(CLIENT, SERVER, 0, b"get a\r\n");
    capture.segment(CLIENT, SERVER, 7, b"get b\r\nget");
    capture.segment(CLIENT, SERVER, 17, b" c\r\n");
    let expected = ["get a", "get b", "get c"];
    // A packet each millisecond, with as many digits as the container has.
    for (bytes, ns) in [
        (capture.pcap(false, false), 0),
        (capture.pcap(true, true), 7),
        (capture.pcapng(false), 0),
        (capture.pcapng(true), 0),
    ] {
        let file = TraceFile::of(bytes);
        let mut records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
        assert_eq!(records.timing(), TraceTiming::Exact);
        let lines = shown(&mut records).0;
        let expected: Vec<String> = (0..3)
            .map(|n| {
                format!("{} {}", 1_700_000_000_000_000_000 + 1_000_000 * n as u64 + ns, expected[n])
            })
            .collect();
        assert_eq!(lines, expected);
    }
}

#[test]
fn segments_out_of_order_and_sent_again_are_put_in_order() {
    let all: Vec<u8> =
        (0..40).flat_map(|n| format!("set k{n} 0 0 3\r\nabc\r\n").into_bytes()).collect();
    let expected: Vec<String> = (0..40).map(|n| format!("set k{n} v=3 never")).collect();
    for size in [1, 7, 30, 1000] {
        let mut parts: Vec<(u32, &[u8])> =
            all.chunks(size).enumerate().map(|(n, part)| ((n * size) as u32, part)).collect();
        // Each pair exchanged, and some sent again with more behind them.
        parts.chunks_mut(2).for_each(<[_]>::reverse);
        let mut capture = Capture::new(Link::Ethernet, false);
        // Numbers wrap within the connection.
        let begin = u32::MAX - 100;
        capture.syn_at(CLIENT, SERVER, begin);
        for (n, (at, part)) in parts.iter().enumerate() {
            let from = begin.wrapping_add(1).wrapping_add(*at);
            capture.segment(CLIENT, SERVER, from, part);
            if n % 3 == 0 && *at > 10 {
                let back = &all[*at as usize - 10..*at as usize + part.len()];
                capture.segment(CLIENT, SERVER, from.wrapping_sub(10), back);
            }
        }
        let lines = requests(TraceFormat::PacketCapture, capture.pcap(false, false));
        assert_eq!(untimed(lines), expected, "{size}");
    }
}

/// The options, the requests, and how many records were left out.
fn skipping(bytes: &[u8]) -> (Vec<String>, u64) {
    let file = TraceFile::of(bytes);
    let options = TraceOptions { skip_bad: 100, ..TraceOptions::default() };
    let mut records = TraceRecords::open(file.path(), &options).unwrap();
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    (untimed(lines), records.counts().skipped())
}

#[test]
fn a_lost_segment_is_one_bad_record_unless_it_is_within_a_value() {
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.syn(CLIENT, SERVER);
    capture.segment(CLIENT, SERVER, 0, b"set a 0 0 3000\r\nbegin");
    // 2000 bytes of the value, and later a request, are not there.
    capture.segment(CLIENT, SERVER, 2021, &[&[b'v'; 995][..], b"\r\nget b\r\n"].concat());
    capture.segment(CLIENT, SERVER, 3500, b"get c\r\n");
    capture.segment(CLIENT, SERVER, 3507, b"get d\r\n");
    let bytes = capture.pcap(false, false);
    let (lines, skipped) = skipping(&bytes);
    assert_eq!(lines, ["set a v=3000 never", "get b", "get c", "get d"]);
    assert_eq!(skipped, 1);
    let (_, says) = failing(&TraceOptions::default(), &bytes);
    assert!(says.contains("475 B of a connection") && says.contains("tcpdump -s 0"), "{says}");
}

#[test]
fn packets_that_were_cut_serve_as_far_as_they_go() {
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.syn(CLIENT, SERVER);
    let set = [b"set a 0 0 500\r\n", &[b'v'; 500][..], b"\r\n"].concat();
    capture.segment(CLIENT, SERVER, 0, &set);
    capture.segment(CLIENT, SERVER, set.len() as u32, b"get b\r\n");
    let get = format!("get {}\r\n", "k".repeat(200));
    capture.segment(CLIENT, SERVER, set.len() as u32 + 7, get.as_bytes());
    capture.segment(CLIENT, SERVER, (set.len() + 7 + get.len()) as u32, b"get c\r\n");
    capture.cut(96);
    for bytes in [capture.pcap(false, false), capture.pcapng(false)] {
        // The end of the first one's value is not there, nor is the end of the long key.
        let (lines, skipped) = skipping(&bytes);
        assert_eq!(lines, ["set a v=500 never", "get b", "get c"]);
        assert_eq!(skipped, 1);
    }
}

#[test]
fn other_traffic_is_no_request() {
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.syn(CLIENT, SERVER);
    capture.segment(CLIENT, SERVER, 0, b"\x16\x03\x01\x02\0\x01\0");
    capture.segment(SERVER, CLIENT, 0, ANSWER);
    let (_, says) = failing(&TraceOptions::default(), capture.pcap(false, false));
    assert_eq!(says, "the trace T holds no request");
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.segment(CLIENT, SERVER, 0, &request(&["GET", "a"]));
    capture.segment(SERVER, CLIENT, 0, &reply("value"));
    let lines = requests(TraceFormat::PacketCapture, capture.pcap(false, false));
    assert_eq!(untimed(lines), ["get a"]);
    // What no request begins with, within the connection of one.
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.segment(CLIENT, SERVER, 0, b"get a\r\nnonsense\r\n");
    let (lines, says) = failing(&TraceOptions::default(), capture.pcap(false, false));
    assert_eq!(untimed(lines), ["get a"]);
    assert!(says.ends_with("goes on with what is no request of memcached or Redis"), "{says}");
}

#[test]
fn malformed_captures_name_the_byte() {
    let mut capture = Capture::new(Link::Ethernet, false);
    capture.segment(CLIENT, SERVER, 0, b"get a\r\n");
    capture.segment(CLIENT, SERVER, 7, b"get b\r\n");
    let whole = capture.pcap(false, false);
    let size = (whole.len() - 24) / 2;
    let cases = [
        (
            whole[..whole.len() - 5].to_vec(),
            format!(
                "T: the record at byte {}: the file ends within it: {} of {size} B",
                24 + size,
                size - 5
            ),
        ),
        (
            whole[..30].to_vec(),
            "T: the record at byte 24: the file ends within it: 6 of 16 B".to_owned(),
        ),
        (
            whole[..10].to_vec(),
            "T: the record at byte 0: the file ends within it: 10 of 24 B".to_owned(),
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(failing(&TraceOptions::default(), bytes).1, expected);
    }
    let mut huge = whole.clone();
    huge[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let (_, says) = failing(&TraceOptions::default(), huge);
    assert!(says.contains("the packet length is 4294967295, above the limit"), "{says}");
    let mut link = whole;
    link[20] = 147;
    let (_, says) = failing(&TraceOptions::default(), link);
    assert!(says.starts_with("T: the record at byte 24: its type of link is 147"), "{says}");
}
