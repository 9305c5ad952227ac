//! Both engines, against correct and faulty peers.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::{Address, Engine};
use reactor::{ConnectionFailure, ConnectionState, EngineOptions, Gather, Reactor, Stream};
use support::{TIMEOUT, add_pair, poll_to_end, poll_until, reactor, with_each_engine};

/// A TCP listener, and a stream connected to it by name.
fn listen() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, Address::Tcp { host: "localhost".into(), port })
}

fn connect(address: &Address) -> Stream {
    Stream::connect(address, None, TIMEOUT).unwrap()
}

/// A connection over TCP and its other end.
fn add_tcp(reactor: &mut Reactor) -> (usize, TcpStream) {
    let (listener, address) = listen();
    let conn = reactor.add(connect(&address)).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    theirs.set_read_timeout(Some(TIMEOUT)).unwrap();
    theirs.set_nodelay(true).unwrap();
    (conn, theirs)
}

/// Echoes until the other end is closed.
fn echo(mut peer: impl Read + Write) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = peer.read(&mut bytes) {
        if peer.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Bytes that encode their position in the stream.
fn pattern(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn bytes_come_back_in_order_on_every_connection() {
    with_each_engine(|engine| {
        let (listener, address) = listen();
        let mut reactor = reactor(engine);
        thread::scope(|scope| {
            for number in 0..16 {
                if number % 2 == 0 {
                    assert_eq!(reactor.add(connect(&address)).unwrap(), number);
                    let (peer, _) = listener.accept().unwrap();
                    scope.spawn(move || echo(peer));
                } else {
                    let (conn, peer) = add_pair(&mut reactor);
                    assert_eq!(conn, number);
                    scope.spawn(move || echo(peer));
                }
            }
            let total = 400_000;
            let (mut requested, mut received) = ([0; 16], [0; 16]);
            poll_until(&mut reactor, |reactor| {
                for conn in 0..16 {
                    assert_eq!(reactor.state(conn), ConnectionState::Open);
                    let new = reactor.incoming(conn).len();
                    assert_eq!(reactor.incoming(conn), pattern(received[conn], new));
                    // In part: the rest must stay.
                    let taken = new - new / 3;
                    reactor.consume(conn, taken);
                    received[conn] += taken;
                    while requested[conn] < total && requested[conn] < received[conn] + 20_000 {
                        let length = 1 + requested[conn] % 977;
                        let request = pattern(requested[conn], length);
                        reactor.outgoing(conn).extend_from_slice(&request);
                        requested[conn] += length;
                        reactor.send(conn);
                    }
                }
                received
                    .iter()
                    .zip(&requested)
                    .all(|(received, requested)| received == requested && *requested >= total)
            });
            assert!((0..16).all(|conn| reactor.unsent(conn) == 0));
            let counters = reactor.counters();
            assert_eq!(counters.bytes_sent, requested.iter().sum::<usize>() as u64);
            assert_eq!(counters.bytes_received, counters.bytes_sent);
            drop(reactor);
        });
    });
}

#[test]
fn one_send_and_one_receive_a_request() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, mut peer) = add_tcp(&mut reactor);
        let mut request = [0; 30];
        for _ in 0..100 {
            reactor.outgoing(conn).extend_from_slice(&[b'q'; 30]);
            reactor.send(conn);
            if engine == Engine::IoUring {
                reactor.poll(Some(Duration::ZERO)).unwrap();
            }
            peer.read_exact(&mut request).unwrap();
            peer.write_all(&[b'a'; 200]).unwrap();
            poll_until(&mut reactor, |reactor| reactor.incoming(conn).len() == 200);
            reactor.consume(conn, 200);
        }
        let counters = reactor.counters();
        match engine {
            Engine::Epoll => assert_eq!((counters.sends, counters.receives), (100, 100)),
            Engine::IoUring => assert_eq!((counters.sends, counters.receives), (0, 0)),
        }
        assert!(counters.waits >= 100 && counters.wakeups >= 100);
    });
}

#[test]
fn large_answers_arrive_whole() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, mut peer) = add_tcp(&mut reactor);
        let answer = pattern(0, (1 << 20) + 17);
        thread::scope(|scope| {
            scope.spawn(|| (0..5).for_each(|_| peer.write_all(&answer).unwrap()));
            for _ in 0..5 {
                poll_until(&mut reactor, |reactor| reactor.incoming(conn).len() >= answer.len());
                assert_eq!(reactor.incoming(conn)[..answer.len()], answer);
                reactor.consume(conn, answer.len());
            }
        });
        assert_eq!(reactor.incoming(conn), []);
    });
}

#[test]
fn an_answer_that_is_too_large_fails_its_connection_only() {
    with_each_engine(|engine| {
        let limit = 100_000;
        let options = EngineOptions { engine, largest_answer: limit, ..EngineOptions::default() };
        let mut reactor = Reactor::new(options).unwrap();
        let (large, mut sender) = add_tcp(&mut reactor);
        let (small, mut other) = add_tcp(&mut reactor);
        let sending = thread::spawn(move || {
            // It fails when the client hangs up.
            while sender.write_all(&[b'x'; 10_000]).is_ok() {}
        });
        let state = poll_to_end(&mut reactor, large);
        assert_eq!(state, ConnectionState::Failed(ConnectionFailure::AnswerTooLarge { limit }));
        other.write_all(b"fine").unwrap();
        poll_until(&mut reactor, |reactor| reactor.incoming(small) == b"fine");
        assert_eq!(reactor.state(small), ConnectionState::Open);
        drop(reactor);
        sending.join().unwrap();
    });
}

#[test]
fn accepts_the_largest_answer() {
    with_each_engine(|engine| {
        let largest = 300_000;
        let options = EngineOptions { engine, largest_answer: largest, ..EngineOptions::default() };
        let mut reactor = Reactor::new(options).unwrap();
        let (conn, mut peer) = add_tcp(&mut reactor);
        let sending = thread::spawn(move || {
            (0..20).for_each(|_| peer.write_all(&pattern(0, 300_000)).unwrap());
            peer
        });
        let mut answers = 0;
        poll_until(&mut reactor, |reactor| {
            while reactor.incoming(conn).len() >= largest {
                reactor.consume(conn, largest);
                answers += 1;
            }
            assert_eq!(reactor.state(conn), ConnectionState::Open);
            answers == 20
        });
        sending.join().unwrap();
    });
}

#[test]
fn unsent_bytes_are_sent_later() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        for tcp in [true, false] {
            let (conn, mut peer): (_, Box<dyn Read + Send>) = if tcp {
                let (conn, peer) = add_tcp(&mut reactor);
                (conn, Box::new(peer))
            } else {
                let (conn, peer) = add_pair(&mut reactor);
                (conn, Box::new(peer))
            };
            let half = 16 << 20;
            let all = pattern(0, 2 * half);
            reactor.outgoing(conn).extend_from_slice(&all[..half]);
            reactor.send(conn);
            for _ in 0..20 {
                reactor.poll(Some(Duration::from_millis(1))).unwrap();
            }
            let unsent = reactor.unsent(conn);
            assert!((1..half).contains(&unsent), "{unsent}");
            // Appended after waiting bytes.
            reactor.outgoing(conn).extend_from_slice(&all[half..]);
            reactor.send(conn);
            assert_eq!(reactor.unsent(conn), unsent + half);
            let reading = thread::spawn(move || {
                let mut got = vec![0; 2 * half];
                peer.read_exact(&mut got).unwrap();
                (got, peer)
            });
            poll_until(&mut reactor, |reactor| reactor.unsent(conn) == 0);
            let (got, _peer) = reading.join().unwrap();
            assert!(got == all);
            assert_eq!(reactor.state(conn), ConnectionState::Open);
        }
    });
}

#[test]
fn data_before_a_close_is_readable() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        for (conn, mut peer) in [add_tcp(&mut reactor), add_tcp(&mut reactor)] {
            peer.write_all(b"VALUE k 0 200\r\nhalf of").unwrap();
            drop(peer);
            assert_eq!(poll_to_end(&mut reactor, conn), ConnectionState::Closed);
            assert_eq!(reactor.incoming(conn), b"VALUE k 0 200\r\nhalf of");
            // Sending does nothing, and nothing becomes ready.
            reactor.outgoing(conn).extend_from_slice(b"get k\r\n");
            reactor.send(conn);
            assert_eq!(reactor.poll(Some(Duration::from_millis(5))).unwrap(), 0);
        }
    });
}

#[test]
fn detects_close_after_a_full_buffer() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        // Around the sizes of the buffers of either engine.
        for length in [16 << 10, (16 << 10) - 48, 32 << 10, 48 << 10, (48 << 10) + 1] {
            let (conn, mut peer) = add_pair(&mut reactor);
            peer.write_all(&pattern(0, length)).unwrap();
            drop(peer);
            assert_eq!(poll_to_end(&mut reactor, conn), ConnectionState::Closed);
            assert_eq!(reactor.incoming(conn), pattern(0, length));
        }
    });
}

#[test]
fn a_reset_is_a_failure() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, peer) = add_tcp(&mut reactor);
        reactor.outgoing(conn).extend_from_slice(b"get k\r\n");
        reactor.send(conn);
        reactor.poll(Some(Duration::ZERO)).unwrap();
        // Closing a socket with something unread resets the connection.
        peer.peek(&mut [0; 7]).unwrap();
        drop(peer);
        match poll_to_end(&mut reactor, conn) {
            ConnectionState::Failed(ConnectionFailure::Io { kind, words }) => {
                assert_eq!(kind, ErrorKind::ConnectionReset);
                assert!(words.contains("reset"), "{words}");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn receives_last_data_although_sending_fails() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, mut peer) = add_pair(&mut reactor);
        peer.write_all(b"ERROR Too many open connections\r\n").unwrap();
        drop(peer);
        reactor.outgoing(conn).extend_from_slice(b"get k\r\n");
        reactor.send(conn);
        poll_to_end(&mut reactor, conn);
        assert_eq!(reactor.incoming(conn), b"ERROR Too many open connections\r\n");
    });
}

#[test]
fn gathering_wait_ends_early_and_loses_nothing() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let mut peers: Vec<_> = (0..4).map(|_| add_pair(&mut reactor).1).collect();
        let max_wait = Duration::from_millis(1);
        let begun = Instant::now();
        // First one of the two expected answers, then both.
        for (speakers, least) in [(1, 2), (2, 2), (1, 4), (4, 4)] {
            for peer in &mut peers[..speakers] {
                peer.write_all(b"answer").unwrap();
            }
            let mut received = 0;
            while received < speakers {
                let limit = Some(Duration::from_secs(30));
                reactor.poll_many(limit, Gather { least, max_wait }).unwrap();
                while let Some(conn) = reactor.ready() {
                    assert_eq!(reactor.incoming(conn), b"answer", "{engine}");
                    reactor.consume(conn, 6);
                    received += 1;
                }
            }
        }
        // A wait up to its limit would be longer.
        assert!(begun.elapsed() < Duration::from_secs(30), "{engine}");
    });
}

#[test]
fn silent_peer_does_not_block() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, _peer) = add_tcp(&mut reactor);
        reactor.outgoing(conn).extend_from_slice(b"get k\r\n");
        reactor.send(conn);
        for wait in [Some(Duration::ZERO), Some(Duration::from_micros(50)), None] {
            assert_eq!(reactor.poll(wait).unwrap(), 0);
            assert_eq!(reactor.ready(), None);
        }
        assert_eq!((reactor.state(conn), reactor.unsent(conn)), (ConnectionState::Open, 0));
        // A poll costs io_uring no system call while there is nothing to do.
        let waits = reactor.counters().waits;
        (0..100).for_each(|_| assert_eq!(reactor.poll(Some(Duration::ZERO)).unwrap(), 0));
        assert_eq!(
            reactor.counters().waits - waits,
            match engine {
                Engine::Epoll => 100,
                Engine::IoUring => 0,
            }
        );
    });
}

#[test]
fn thousands_of_connections() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let mut peers = Vec::new();
        while peers.len() < 2_500 {
            // The limit on open files is the machine's.
            let Ok((ours, theirs)) = UnixStream::pair() else { break };
            match reactor.add(Stream::from(ours)) {
                Ok(conn) => assert_eq!(conn, peers.len()),
                Err(_) => break,
            }
            peers.push(theirs);
        }
        assert!(peers.len() > 400, "{}", peers.len());
        for round in 0..3u8 {
            for (conn, peer) in peers.iter_mut().enumerate() {
                reactor.outgoing(conn).extend_from_slice(&[round; 9]);
                reactor.send(conn);
                peer.write_all(&(conn as u64).to_le_bytes()).unwrap();
            }
            let mut received = 0;
            let mut polls = 0;
            while received < peers.len() {
                polls += 1;
                assert!(polls < 10_000);
                reactor.poll(None).unwrap();
                while let Some(conn) = reactor.ready() {
                    assert_eq!(reactor.incoming(conn), (conn as u64).to_le_bytes());
                    reactor.consume(conn, 8);
                    received += 1;
                }
            }
            for peer in &mut peers {
                let mut got = [0; 9];
                peer.read_exact(&mut got).unwrap();
                assert_eq!(got, [round; 9]);
            }
        }
    });
}

#[test]
fn replaced_stream_is_silent() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, mut old) = add_pair(&mut reactor);
        for round in 0..300u32 {
            // Received, in flight, appended, send requested: all of the old stream.
            old.write_all(b"stale stale stale").unwrap();
            reactor.outgoing(conn).extend_from_slice(b"old request");
            match round % 4 {
                0 => {}
                1 => reactor.send(conn),
                2 => drop(reactor.poll(Some(Duration::ZERO)).unwrap()),
                _ => {
                    reactor.send(conn);
                    reactor.poll(Some(Duration::ZERO)).unwrap();
                }
            }
            if round % 3 == 0 {
                old.write_all(&vec![b'o'; 40_000]).unwrap();
            }
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.set_read_timeout(Some(TIMEOUT)).unwrap();
            reactor.replace(conn, Stream::from(ours)).unwrap();
            assert_eq!((reactor.incoming(conn), reactor.unsent(conn)), (&[][..], 0));
            reactor.outgoing(conn).extend_from_slice(&round.to_le_bytes());
            reactor.send(conn);
            theirs.write_all(&round.to_be_bytes()).unwrap();
            poll_until(&mut reactor, |reactor| {
                assert_eq!(reactor.state(conn), ConnectionState::Open);
                !reactor.incoming(conn).is_empty()
            });
            assert_eq!(reactor.incoming(conn), round.to_be_bytes());
            reactor.consume(conn, 4);
            let mut request = [0; 4];
            theirs.read_exact(&mut request).unwrap();
            assert_eq!(request, round.to_le_bytes());
            // The old peer is notified at once: its socket was shut down.
            old.set_read_timeout(Some(TIMEOUT)).unwrap();
            let _ = old.read_to_end(&mut Vec::new());
            old = theirs;
        }
        assert_eq!(reactor.len(), 1);
    });
}

#[test]
fn a_failed_connection_can_be_replaced() {
    with_each_engine(|engine| {
        let mut reactor = reactor(engine);
        let (conn, peer) = add_tcp(&mut reactor);
        drop(peer);
        assert_eq!(poll_to_end(&mut reactor, conn), ConnectionState::Closed);
        let (listener, address) = listen();
        reactor.replace(conn, connect(&address)).unwrap();
        assert_eq!(reactor.state(conn), ConnectionState::Open);
        let (peer, _) = listener.accept().unwrap();
        let echoing = thread::spawn(move || echo(peer));
        reactor.outgoing(conn).extend_from_slice(b"again");
        reactor.send(conn);
        poll_until(&mut reactor, |reactor| reactor.incoming(conn) == b"again");
        drop(reactor);
        echoing.join().unwrap();
    });
}

#[test]
fn dropping_it_amid_sends_and_receives_ends_all_connections() {
    with_each_engine(|engine| {
        for round in 0..50 {
            let mut reactor = reactor(engine);
            let mut peers = Vec::new();
            for _ in 0..4 {
                let (conn, mut peer) = add_pair(&mut reactor);
                reactor.outgoing(conn).resize(2 << 20, b'x');
                reactor.send(conn);
                if round % 2 == 0 {
                    reactor.poll(Some(Duration::ZERO)).unwrap();
                }
                peer.write_all(&[b'y'; 30_000]).unwrap();
                peers.push(peer);
            }
            drop(reactor);
            for mut peer in peers {
                let mut rest = Vec::new();
                // Its end, or a reset for what was not read.
                let _ = peer.read_to_end(&mut rest);
                assert!(rest.iter().all(|byte| *byte == b'x') && rest.len() < 2 << 20);
                assert!(peer.write_all(b"z").is_err());
            }
        }
    });
}

#[test]
fn kernel_timestamps_answers() {
    with_each_engine(|engine| {
        let options = EngineOptions { engine, timestamps: true, ..EngineOptions::default() };
        let mut reactor = Reactor::new(options).unwrap();
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let (tcp, mut peer) = add_tcp(&mut reactor);
        let (unix, mut local) = add_pair(&mut reactor);
        assert_eq!(reactor.arrived(tcp), None);
        // The kernel enables timestamps asynchronously.
        for _ in 0..1_000 {
            peer.write_all(b"early").unwrap();
            poll_until(&mut reactor, |reactor| !reactor.incoming(tcp).is_empty());
            reactor.consume(tcp, usize::MAX);
            if reactor.arrived(tcp).is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let mut last = 0;
        for _ in 0..50 {
            let before = now();
            peer.write_all(b"one").unwrap();
            peer.write_all(b"two").unwrap();
            local.write_all(b"three").unwrap();
            let after = now();
            poll_until(&mut reactor, |reactor| reactor.incoming(tcp).len() == 6);
            poll_until(&mut reactor, |reactor| reactor.incoming(unix).len() == 5);
            let arrived = reactor.arrived(tcp).unwrap();
            // On the loopback a segment arrives within the call that sends it.
            assert!((before..=after).contains(&arrived), "{before} {arrived} {after}");
            assert!(arrived > last);
            assert_eq!(reactor.arrived(unix), None);
            assert_eq!(reactor.incoming(tcp), b"onetwo");
            reactor.consume(tcp, 6);
            reactor.consume(unix, 5);
            last = arrived;
        }
    });
}
