use crate::ports::free_ports;
use crate::support::{Watched, resp};

#[test]
fn tcp_counts_like_a_unix_socket() {
    let port = free_ports(1)[0];
    let watched = Watched::redis(&["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    let mut client = watched.server.connect_tcp(port);
    let mut other = watched.connect();
    for _ in 0..50 {
        client.send(&resp(&[b"PING"]));
        other.send(&resp(&[b"PING"]).repeat(2));
        client.expect(b"+PONG\r\n");
        other.expect(b"+PONG\r\n+PONG\r\n");
    }
    let totals = watched.counted(150).totals();
    assert_eq!((totals.requests, totals.connections, totals.unsolicited), (150, 2, 0));
}

#[test]
fn each_request_counts_once_alone_and_pipelined() {
    let watched = Watched::redis(&[]);
    let mut client = watched.connect();
    client.request(&resp(&[b"SET", b"a", b"*1\r\n$4\r\n"]), b"+OK\r\n");
    for _ in 0..100 {
        client.request(&resp(&[b"GET", b"a"]), b"$8\r\n*1\r\n$4\r\n\r\n");
    }
    let totals = watched.counted(101).totals();
    assert_eq!((totals.requests, totals.batches, totals.writes), (101, 101, 101));
    assert!(totals.wake_ups >= 1);
    client.request(&resp(&[b"GET", b"a"]).repeat(50), &b"$8\r\n*1\r\n$4\r\n\r\n".repeat(50));
    let totals = watched.counted(151).totals();
    assert_eq!((totals.requests, totals.connections, totals.unsolicited), (151, 1, 0));
    assert!(totals.batches <= 103, "{totals:?}");
}

#[test]
fn parses_inline_commands_nested_answers_and_resp3() {
    let watched = Watched::redis(&[]);
    let mut client = watched.connect();
    client.request(b"PING\r\nPING\r\n", b"+PONG\r\n+PONG\r\n");
    client.request(&resp(&[b"MGET", b"x", b"y", b"z"]), b"*3\r\n$-1\r\n$-1\r\n$-1\r\n");
    client.request(
        &[
            resp(&[b"MULTI"]),
            resp(&[b"RPUSH", b"l", b"1", b"2"]),
            resp(&[b"LRANGE", b"l", b"0", b"9"]),
            resp(&[b"EXEC"]),
        ]
        .concat(),
        b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n",
    );
    client.send(&resp(&[b"HELLO", b"3"]));
    client.skip_to(b"$7\r\nmodules\r\n*0\r\n");
    client.request(&resp(&[b"GET", b"x"]), b"_\r\n");
    let totals = watched.counted(9).totals();
    assert_eq!((totals.requests, totals.unsolicited, totals.opaque), (9, 0, 0));
}

#[test]
fn large_values_in_many_reads_and_writes_count_once() {
    let watched = Watched::redis(&[]);
    let mut client = watched.connect();
    let value = vec![b'\n'; 3_000_000];
    // In pieces, for how many reads one write is depends on the kernel.
    let set = resp(&[b"SET", b"a", &value]);
    let (first, last) = set.split_at(set.len() / 2);
    client.send(first);
    std::thread::sleep(std::time::Duration::from_millis(50));
    client.request(last, b"+OK\r\n");
    let answer = [b"$3000000\r\n".as_slice(), &value, b"\r\n"].concat();
    client.request(&resp(&[b"GET", b"a"]).repeat(3), &answer.repeat(3));
    let totals = watched.counted(4).totals();
    assert_eq!((totals.requests, totals.unsolicited), (4, 0));
    assert!(totals.reads > 2 && totals.writes > 4, "{totals:?}");
}

#[test]
fn io_threads_read_and_answer_in_different_threads() {
    let watched = Watched::redis(&["--io-threads", "3", "--io-threads-do-reads", "yes"]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut clients: Vec<_> = (0..16).map(|_| watched.connect()).collect();
                for _ in 0..30 {
                    for client in &mut clients {
                        client.send(&resp(&[b"PING"]).repeat(3));
                    }
                    for client in &mut clients {
                        client.expect(&b"+PONG\r\n".repeat(3));
                    }
                }
            });
        }
    });
    let totals = watched.counted(2 * 16 * 30 * 3).totals();
    assert_eq!((totals.requests, totals.connections, totals.unsolicited), (2880, 32, 0));
}

#[test]
fn a_subscriber_is_not_timed() {
    let watched = Watched::redis(&[]);
    let mut subscriber = watched.connect();
    let mut client = watched.connect();
    subscriber.request(
        &resp(&[b"SUBSCRIBE", b"c", b"d"]),
        b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n",
    );
    for _ in 0..10 {
        client.request(&resp(&[b"PUBLISH", b"c", b"x"]), b":1\r\n");
        subscriber.expect(b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    }
    let totals = watched.counted(10).totals();
    assert_eq!((totals.requests, totals.streams, totals.unsolicited), (11, 1, 0));
}

#[test]
fn forked_children_are_not_watched() {
    let watched = Watched::redis(&[]);
    let mut client = watched.connect();
    client.request(&resp(&[b"SET", b"a", b"x"]), b"+OK\r\n");
    client.request(&resp(&[b"BGSAVE"]), b"+Background saving started\r\n");
    let saved = watched.server.folder.path("dump.rdb");
    let end = std::time::Instant::now() + crate::support::LIMIT;
    while !saved.exists() {
        assert!(std::time::Instant::now() < end, "the child saves");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.request(&resp(&[b"GET", b"a"]), b"$1\r\nx\r\n");
    let counts = watched.counted(3);
    assert_eq!(counts.threads.len(), 1, "{:?}", counts.threads);
    assert!(counts.threads[0].running);
}
