use crate::support::{Watched, binary};

#[test]
fn each_request_counts_once() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    client.request(b"set a 0 0 3\r\nabc\r\n", b"STORED\r\n");
    for _ in 0..200 {
        client.request(b"get a\r\n", b"VALUE a 0 3\r\nabc\r\nEND\r\n");
    }
    client.request(b"get missing\r\n", b"END\r\n");
    client.request(b"delete a\r\n", b"DELETED\r\n");
    let counts = watched.counted(203);
    let totals = counts.totals();
    assert_eq!((totals.requests, totals.batches, totals.writes), (203, 203, 203));
    assert_eq!((totals.connections, totals.opaque, totals.unsolicited), (1, 0, 0));
    assert!(totals.wake_ups >= 1 && totals.events >= totals.wake_ups);
    assert_eq!(totals.bytes_out, 8 + 200 * 23 + 5 + 9);
    assert!(totals.sampled >= 406 / 61, "one call in 61 is sampled: {totals:?}");
    assert!(totals.own_ns() > Some(0.0) && totals.mean_write_ns() > Some(0.0));
    let (first, last) = (counts.quantile_ns(0.0).unwrap(), counts.quantile_ns(1.0).unwrap());
    let mean = totals.mean_ns().unwrap();
    assert!(first > 0 && first as f64 * 0.99 <= mean && mean <= last as f64 * 1.01);
}

#[test]
fn pipelined_text_requests_each_end_with_their_own_write() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    client.request(b"set a 0 0 3\r\nabc\r\n", b"STORED\r\n");
    watched.counted(1);
    let answer = b"VALUE a 0 3\r\nabc\r\nEND\r\n".repeat(8);
    client.request(&b"get a\r\n".repeat(8), &answer);
    let totals = watched.counted(9).totals();
    assert_eq!((totals.requests, totals.batches, totals.writes), (9, 2, 9));
}

#[test]
fn pipelined_meta_requests_share_a_write() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    client.request(b"ms a 3 T0\r\nabc\r\n", b"HD\r\n");
    client.request(&b"mg a v\r\n".repeat(8), &b"VA 3\r\nabc\r\n".repeat(8));
    let totals = watched.counted(9).totals();
    assert_eq!((totals.requests, totals.batches, totals.writes), (9, 2, 2));
    assert_eq!(totals.unsolicited, 0);
}

#[test]
fn parses_mixed_sets_and_gets() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    let requests = b"set a 0 0 5\r\nget a\r\nget a\r\nset b 0 0 1\r\n\n\r\nmg b v\r\nmn\r\n";
    let answers = b"STORED\r\nVALUE a 0 5\r\nget a\r\nEND\r\nSTORED\r\nVA 1\r\n\n\r\nMN\r\n";
    client.request(requests, answers);
    let totals = watched.counted(5).totals();
    assert_eq!((totals.requests, totals.batches, totals.unsolicited), (5, 1, 0));
}

#[test]
fn parses_binary_requests_and_skips_quiet_ones() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    client.send(&binary(0x01, &[0; 8], b"a", b"abc"));
    client.skip(24);
    client.send(&binary(0x00, &[], b"a", b"").repeat(8));
    client.skip(8 * (24 + 4 + 3));
    // A multi-get: four quiet gets, two of them found, and an end.
    let [hit, miss] = [binary(0x0d, &[], b"a", b""), binary(0x0d, &[], b"b", b"")];
    client.send(&[hit.clone(), miss.clone(), hit, miss, binary(0x0a, &[], b"", b"")].concat());
    client.skip(2 * (24 + 4 + 1 + 3) + 24);
    let totals = watched.counted(10).totals();
    assert_eq!((totals.requests, totals.quiet, totals.batches), (14, 4, 3));
    assert_eq!((totals.unsolicited, totals.opaque), (0, 0));
}

#[test]
fn multi_get_and_statistics_are_one_request() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    client.request(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    let values = [b"VALUE a 0 1\r\nx\r\n".repeat(50), b"END\r\n".to_vec()].concat();
    client.request(format!("get{}\r\n", " a".repeat(50)).as_bytes(), &values);
    client.send(b"stats\r\n");
    client.skip_to(b"END\r\n");
    client.send(b"version\r\n");
    client.skip_to(b"\r\n");
    let totals = watched.counted(4).totals();
    assert_eq!((totals.requests, totals.unsolicited), (4, 0));
}

#[test]
fn requests_without_answers_are_counted_and_not_timed() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    client.request(
        b"set a 0 0 3 noreply\r\nabc\r\nset b 0 0 2 noreply\r\nxx\r\nget a\r\n",
        b"VALUE a 0 3\r\nabc\r\nEND\r\n",
    );
    client.request(b"delete a noreply\r\nget a\r\n", b"END\r\n");
    let totals = watched.counted(2).totals();
    assert_eq!((totals.requests, totals.quiet), (5, 3));
}

#[test]
fn large_values_in_many_reads_and_writes_count_once() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    let value = vec![b'\n'; 900_000];
    let set = [b"set a 0 0 900000\r\n".as_slice(), &value, b"\r\n"].concat();
    for piece in set.chunks(100_000) {
        client.send(piece);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    client.expect(b"STORED\r\n");
    let answer = [b"VALUE a 0 900000\r\n".as_slice(), &value, b"\r\nEND\r\n"].concat();
    for _ in 0..3 {
        client.request(b"get a\r\n", &answer);
    }
    let totals = watched.counted(4).totals();
    assert_eq!((totals.requests, totals.batches), (4, 4));
    assert!(totals.reads > 10, "the value came in pieces: {totals:?}");
    assert!(totals.writes > 4, "the value went in pieces: {totals:?}");
}

#[test]
fn a_refused_value_counts_once() {
    let watched = Watched::memcached(&["-t", "1"]);
    let mut client = watched.connect();
    let set = [b"set a 0 0 3000000\r\n".as_slice(), &vec![b'\n'; 3_000_000], b"\r\n"].concat();
    client.request(&set, b"SERVER_ERROR object too large for cache\r\n");
    client.request(b"get a\r\n", b"END\r\n");
    let totals = watched.counted(2).totals();
    assert_eq!((totals.requests, totals.early, totals.unsolicited), (2, 0, 0));
}

#[test]
fn many_connections_over_many_threads_are_all_counted() {
    let watched = Watched::memcached(&["-t", "4"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut clients: Vec<_> = (0..25).map(|_| watched.connect()).collect();
                for _ in 0..20 {
                    for client in &mut clients {
                        client.request(b"get a\r\nget b\r\n", b"END\r\nEND\r\n");
                    }
                }
            });
        }
    });
    let counts = watched.counted(4 * 25 * 20 * 2);
    let totals = counts.totals();
    assert_eq!((totals.requests, totals.batches, totals.connections), (4000, 2000, 100));
    assert_eq!(counts.threads.iter().filter(|thread| thread.totals.requests > 0).count(), 4);
}

#[test]
fn reused_descriptors_start_afresh() {
    let watched = Watched::memcached(&["-t", "1"]);
    for _ in 0..100 {
        let mut client = watched.connect();
        client.request(b"get a\r\n", b"END\r\n");
        // Half a request stays behind.
        client.send(b"set a 0 0 100\r\nabc");
        drop(client);
        let mut client = watched.connect();
        client.send(&binary(0x0a, &[], b"", b""));
        client.skip(24);
    }
    let totals = watched.counted(200).totals();
    assert_eq!((totals.requests, totals.connections, totals.opaque), (200, 200, 0));
}
