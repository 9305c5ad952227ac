//! The test process traces itself while some of its threads serve. Its clients
//! connect from this process too and must not be counted. Other tests' sockets
//! would be counted, so one test runs at a time.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Seek, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use syscall_trace::{BpfError, Snapshot, Tracer, UnavailableReason};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A tracer of this process, or `None`, with a message, where tracing is not possible.
fn trace_self() -> Option<(MutexGuard<'static, ()>, Tracer)> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    match syscall_trace::available() {
        Ok(()) => Some((guard, Tracer::attach(std::process::id()).unwrap())),
        // A defect of the programs is no reason to skip.
        Err(why) => {
            assert!(!matches!(why, UnavailableReason::Bpf(BpfError::Rejected { .. })), "{why}");
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    (client, server)
}

fn request(mut client: &TcpStream) {
    client.write_all(b"?").unwrap();
    client.read_exact(&mut [0]).unwrap();
}

/// (requests, reads, reads joined, further writes)
fn counts(snapshot: &Snapshot) -> (u64, u64, u64, u64) {
    (snapshot.requests(), snapshot.reads, snapshot.joined_reads, snapshot.further_writes)
}

#[test]
fn measures_two_milliseconds_of_work() {
    let Some((_guard, tracer)) = trace_self() else { return };
    const REQUESTS: usize = 50;
    let (client, mut server) = pair();
    let mut own_times = thread::scope(|scope| {
        scope.spawn(|| (0..REQUESTS).for_each(|_| request(&client)));
        let mut times = Vec::new();
        for _ in 0..REQUESTS {
            server.read_exact(&mut [0]).unwrap();
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(2));
            times.push(begin.elapsed().as_nanos() as f64);
            server.write_all(b"!").unwrap();
        }
        times
    });
    let latency = tracer.snapshot().latency;
    assert_eq!(latency.count(), REQUESTS as u64);
    let (lowest, width, _) = latency.buckets().next().unwrap();
    assert!(lowest + width > 2_000_000, "{lowest} ns");
    own_times.sort_by(f64::total_cmp);
    // The same sleeps measured inside: disturbances are in both.
    let ratio = latency.quantile_ns(0.5).unwrap() as f64 / own_times[REQUESTS / 2 - 1];
    assert!((0.99..1.1).contains(&ratio), "{ratio}");
    assert!(latency.mean_ns().unwrap() >= own_times.iter().sum::<f64>() / REQUESTS as f64);
}

/// A known limit: connections are identified by descriptor.
#[test]
fn an_answer_through_a_duplicate_of_the_descriptor_is_not_matched() {
    let Some((_guard, tracer)) = trace_self() else { return };
    let (mut client, mut server) = pair();
    client.write_all(b"?").unwrap();
    server.read_exact(&mut [0]).unwrap();
    server.try_clone().unwrap().write_all(b"!").unwrap();
    assert_eq!(counts(&tracer.snapshot()), (0, 1, 0, 0));
}

#[test]
fn threads_that_share_a_descriptor_are_one_connection() {
    let Some((_guard, tracer)) = trace_self() else { return };
    const CONNECTIONS: usize = 4;
    const REQUESTS: usize = 200;
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let (client, server) = pair();
            let server = std::sync::Arc::new(server);
            let (to_writer, from_reader) = std::sync::mpsc::channel();
            scope.spawn(move || (0..REQUESTS).for_each(|_| request(&client)));
            let reading = server.clone();
            scope.spawn(move || {
                for _ in 0..REQUESTS {
                    (&*reading).read_exact(&mut [0]).unwrap();
                    to_writer.send(()).unwrap();
                }
            });
            scope.spawn(move || {
                for () in from_reader {
                    (&*server).write_all(b"!").unwrap();
                }
            });
        }
    });
    let all = (CONNECTIONS * REQUESTS) as u64;
    assert_eq!(counts(&tracer.snapshot()), (all, all, 0, 0));
}

#[test]
fn every_kind_of_read_and_write_counts_on_a_socket() {
    let Some((_guard, tracer)) = trace_self() else { return };
    let (mut client, mut server) = pair();
    client.write_all(&[b'?'; 3]).unwrap();
    server.read_exact(&mut [0]).unwrap();
    server.write_all(b"!").unwrap();
    assert_eq!(server.read_vectored(&mut [IoSliceMut::new(&mut [0])]).unwrap(), 1);
    assert_eq!(server.write_vectored(&[IoSlice::new(b"!")]).unwrap(), 1);
    let mut file = File::from(OwnedFd::from(server));
    file.read_exact(&mut [0]).unwrap();
    file.write_all(b"!").unwrap();
    let counted = tracer.snapshot();
    assert_eq!(counts(&counted), (3, 3, 0, 0));
    let counted =
        |name| counted.calls().any(|(number, _)| syscall_trace::name_of(number) == Some(name));
    for name in ["recvfrom", "sendto", "readv", "writev", "read", "write"] {
        assert!(counted(name), "{name}");
    }
}

#[test]
fn pieces_join_into_one_request() {
    let Some((_guard, tracer)) = trace_self() else { return };
    let (mut client, mut server) = pair();
    client.write_all(b"??").unwrap();
    server.read_exact(&mut [0]).unwrap();
    server.read_exact(&mut [0]).unwrap();
    for _ in 0..3 {
        server.write_all(b"!").unwrap();
    }
    client.read_exact(&mut [0; 3]).unwrap();
    assert_eq!(counts(&tracer.snapshot()), (1, 2, 1, 2));
}

#[test]
fn a_descriptor_that_is_used_again_starts_afresh() {
    let Some((_guard, tracer)) = trace_self() else { return };
    let (mut first_client, mut first) = pair();
    let number = first.as_raw_fd();
    let open = || File::options().read(true).write(true).open("/dev/zero").unwrap();
    // With all lower numbers in use, the next to be opened takes the one that is closed.
    let _lower: Vec<File> = (0..=number).map(|_| open()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut second_client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    first_client.write_all(b"?").unwrap();
    first.read_exact(&mut [0]).unwrap();
    drop(first);

    // Unanswered; next, a connection whose server speaks first.
    let mut second = listener.accept().unwrap().0;
    assert_eq!(second.as_raw_fd(), number);
    second.write_all(b"+").unwrap();
    assert_eq!(counts(&tracer.snapshot()), (0, 1, 0, 1));
    second_client.write_all(b"??").unwrap();
    second.read_exact(&mut [0]).unwrap();
    second.write_all(b"!").unwrap();
    assert_eq!(counts(&tracer.snapshot()), (1, 2, 0, 1));
    second.read_exact(&mut [0]).unwrap();
    drop(second);

    // Unanswered again; next, a file.
    let mut file = open();
    assert_eq!(file.as_raw_fd(), number);
    file.write_all(b"x").unwrap();
    file.read_exact(&mut [0]).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(counts(&tracer.snapshot()), (1, 3, 0, 1));
}

#[test]
fn files_are_no_connections() {
    let Some((_guard, tracer)) = trace_self() else { return };
    let mut path = std::env::temp_dir();
    path.push(format!("syscall-trace-{}", std::process::id()));
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    let mut file = options.open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for _ in 0..10 {
        file.write_all(b"x").unwrap();
        file.rewind().unwrap();
        file.read_exact(&mut [0]).unwrap();
    }
    assert_eq!(counts(&tracer.snapshot()), (0, 0, 0, 0));
}

#[test]
fn tracers_agree_and_windows_subtract() {
    let Some((_guard, first)) = trace_self() else { return };
    let second = Tracer::attach(std::process::id()).unwrap();
    let (client, mut server) = pair();
    let mut serve = |requests: usize| {
        thread::scope(|scope| {
            scope.spawn(|| (0..requests).for_each(|_| request(&client)));
            for _ in 0..requests {
                server.read_exact(&mut [0]).unwrap();
                server.write_all(b"!").unwrap();
            }
        });
    };
    serve(30);
    let before = first.snapshot();
    serve(12);
    drop(second.snapshot());
    assert_eq!(counts(&first.snapshot().since(&before)), (12, 12, 0, 0));
    assert_eq!(counts(&second.snapshot()), (42, 42, 0, 0));
    drop(first);
    serve(8);
    assert_eq!(second.snapshot().requests(), 50);
}

#[test]
fn measures_its_own_run_time() {
    let Some((_guard, tracer)) = trace_self() else { return };
    let watch = tracer.watch_cost().unwrap();
    let before = watch.cost(&tracer).unwrap();
    for _ in 0..1000 {
        let _ = std::os::unix::process::parent_id();
    }
    let after = watch.cost(&tracer).unwrap();
    assert!(after.runs >= before.runs + 2000, "{before:?} {after:?}");
    assert!(after.ns_per_run().unwrap() > 0.0);
}
