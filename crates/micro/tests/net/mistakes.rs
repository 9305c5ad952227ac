use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use micro::net::{Client, Kind, Listener, NetError, NetJob, NoMeter, NoPort, Server, Transport};
use model::Address;

use crate::ends::*;

fn connect(address: &Address, stop: &AtomicBool) -> Result<(), NetError> {
    Client::<NoPort>::connect(address, Kind::Flow, LIMIT, None, stop).map(drop)
}

#[test]
fn wrong_addresses_are_named_with_a_remedy() {
    let stop = AtomicBool::new(false);
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let no_host = Address::Tcp { host: "no-such-host.invalid".to_owned(), port: 1 };
    let no_file = Address::Unix("/no/such/place.sock".into());
    for address in [closed, no_host, no_file] {
        let words = connect(&address, &stop).unwrap_err().to_string();
        assert!(words.contains(&address.to_string()), "{words}");
        assert!(words.contains("kvmeter micro flow --listen"), "{words}");
    }
    for address in [
        Address::Tcp { host: "192.0.2.77".to_owned(), port: 0 },
        Address::Unix("/no/such/folder/a.sock".into()),
    ] {
        let error = Listener::bind(&address).unwrap_err();
        assert!(error.is_request() && error.to_string().contains("cannot listen on"), "{error}");
    }
    let taken = Listener::bind(&loopback()).unwrap();
    assert!(Listener::bind(taken.address()).unwrap_err().to_string().contains("in use"));
}

#[test]
fn a_stale_socket_file_is_replaced_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left-over.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let listener = Listener::bind(&Address::Unix(path.clone())).unwrap();
    assert!(Listener::bind(&Address::Unix(path.clone())).is_err());
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn another_program_is_not_taken_for_a_server() {
    let stop = AtomicBool::new(false);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other_program = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"-ERR unknown command\r\n").unwrap();
        let _ = stream.read(&mut [0; 100]);
    });
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let words = connect(&address, &stop).unwrap_err().to_string();
    assert!(words.contains("not a server of `kvmeter micro`") && words.contains("-ERR"), "{words}");
    other_program.join().unwrap();
}

/// A server that stays whatever its clients do.
fn with_server<T>(work: impl FnOnce(&Address, &AtomicBool) -> T) -> T {
    /// However the work ends, a scope waits for its threads.
    struct Stops<'a>(&'a AtomicBool);
    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    let listener = Listener::bind(&loopback()).unwrap();
    thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| {
            let mut server = Server::<NoPort>::new(None, Vec::new(), &stop);
            server.serve(&listener, None, &mut NoMeter, &mut |_| {}).unwrap();
        });
        work(listener.address(), &AtomicBool::new(false))
    })
}

#[test]
fn a_server_survives_failing_and_malformed_clients() {
    with_server(|address, stop| {
        let Address::Tcp { port, .. } = address else { panic!("{address}") };
        for nonsense in ["GET / HTTP/1.1\r\n\r\n", "{\"Control\":{\"version\":1}}\nrubbish\n", "\n"]
        {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", *port)).unwrap();
            stream.write_all(nonsense.as_bytes()).unwrap();
            // The server may have refused it and be gone already.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
        }
        let ether = job(Kind::Pingpong, Transport::Ethernet, 64);
        let measure = |job: &NetJob| {
            let mut client = Client::<NoPort>::connect(address, job.kind, LIMIT, None, stop)?;
            client.measure(job, &messages(10), &mut NoMeter)
        };
        let error = measure(&ether).unwrap_err();
        assert!(error.is_request() && error.to_string().contains("--stack dpdk"), "{error}");
        let cell = measure(&job(Kind::Pingpong, Transport::Udp, 64)).unwrap();
        assert_eq!(cell.messages(), 10);
    });
}

#[test]
fn a_server_enforces_its_limits() {
    with_server(|address, stop| {
        let measure = |job: &NetJob| {
            let mut client = Client::<NoPort>::connect(address, job.kind, LIMIT, None, stop)?;
            client.measure(job, &messages(10), &mut NoMeter)
        };
        let usual = job(Kind::Pingpong, Transport::Tcp, 64);
        for (job, flag) in [
            (NetJob { size: 1 << 30, ..usual.clone() }, "--max-size"),
            (NetJob { connections: 50_000, ..usual.clone() }, "--max-connections"),
            (NetJob { reuse: 16 << 30, kind: Kind::Flow, ..usual.clone() }, "--max-memory"),
        ] {
            let error = measure(&job).unwrap_err();
            assert!(error.is_request() && error.to_string().contains(flag), "{error}");
        }
        assert_eq!(measure(&usual).unwrap().messages(), 10);
    });
}

/// A byte a second is never late, and a connection that says nothing is none either.
#[test]
fn slow_connections_do_not_block_clients() {
    with_server(|address, stop| {
        let Address::Tcp { port, .. } = address else { panic!("{address}") };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _silent: Vec<_> = (0..20)
                .map(|_| std::net::TcpStream::connect(("127.0.0.1", *port)).unwrap())
                .collect();
            let mut slow = std::net::TcpStream::connect(("127.0.0.1", *port)).unwrap();
            scope.spawn({
                let over = &over;
                move || {
                    while !over.load(Ordering::Relaxed) && slow.write_all(b"{").is_ok() {
                        thread::sleep(Duration::from_millis(50));
                    }
                }
            });
            let usual = job(Kind::Pingpong, Transport::Tcp, 64);
            let measured = Client::<NoPort>::connect(address, usual.kind, LIMIT, None, stop)
                .and_then(|mut client| client.measure(&usual, &messages(10), &mut NoMeter));
            over.store(true, Ordering::Relaxed);
            assert_eq!(measured.unwrap().messages(), 10);
        });
    });
}

#[test]
fn a_second_client_is_refused_or_replaces_an_idle_one() {
    with_server(|address, stop| {
        let connect = || Client::<NoPort>::connect(address, Kind::Flow, LIMIT, None, stop);
        let usual = job(Kind::Pingpong, Transport::Tcp, 64);
        let mut first = connect().unwrap();
        first.measure(&usual, &messages(10), &mut NoMeter).unwrap();
        let busy = connect().map(drop).unwrap_err().to_string();
        assert!(busy.contains("it serves another client"), "{busy}");
        // It says no more.
        thread::sleep(Duration::from_secs(11));
        let mut second = connect().unwrap();
        assert_eq!(second.measure(&usual, &messages(10), &mut NoMeter).unwrap().messages(), 10);
        let ended = first.measure(&usual, &messages(10), &mut NoMeter).unwrap_err().to_string();
        assert!(ended.contains("another client came"), "{ended}");
    });
}

#[test]
fn a_stop_ends_a_measurement_at_once() {
    with_server(|address, stop| {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(150));
                stop.store(true, Ordering::Relaxed);
            });
            let mut client =
                Client::<NoPort>::connect(address, Kind::Flow, LIMIT, None, stop).unwrap();
            let mut config = messages(1);
            config.messages = None;
            let outcome =
                client.measure(&job(Kind::Flow, Transport::Tcp, 100), &config, &mut NoMeter);
            assert!(matches!(outcome, Err(NetError::Stopped)), "{outcome:?}");
        });
        // The server is there for the next one.
        let go = AtomicBool::new(false);
        let mut client =
            Client::<NoPort>::connect(address, Kind::Pingpong, LIMIT, None, &go).unwrap();
        let job = job(Kind::Pingpong, Transport::Tcp, 100);
        assert_eq!(client.measure(&job, &messages(3), &mut NoMeter).unwrap().messages(), 3);
    });
}

/// Plays a server up to the start of a phase, then says nothing more.
fn mute(listener: &TcpListener, udp: Option<u16>) -> Vec<std::net::TcpStream> {
    let mut sockets = Vec::new();
    let (mut control, _) = listener.accept().unwrap();
    let mut say = |text: String| control.write_all(text.as_bytes()).unwrap();
    say("{\"Welcome\":{\"version\":1}}\n".to_owned());
    let ports = udp.map_or(String::new(), |port| port.to_string());
    say(format!(
        "{{\"Ready\":{{\"boot_id\":null,\"unix\":null,\"udp\":[{ports}],\"mac\":null,\"longest_frame\":0}}}}\n"
    ));
    if udp.is_none() {
        sockets.push(listener.accept().unwrap().0);
    }
    say("\"Going\"\n".to_owned());
    sockets.push(control);
    sockets
}

#[test]
fn a_silent_stream_times_out() {
    let stop = AtomicBool::new(false);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        Address::Tcp { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
    thread::scope(|scope| {
        let server = scope.spawn(|| mute(&listener, None));
        let mut client =
            Client::<NoPort>::connect(&address, Kind::Pingpong, LIMIT, None, &stop).unwrap();
        let job = NetJob { timeout_s: 0.1, ..job(Kind::Pingpong, Transport::Tcp, 10) };
        let error = client.measure(&job, &messages(1), &mut NoMeter).unwrap_err();
        assert!(matches!(error, NetError::Timeout { what: "answer", .. }), "{error}");
        drop(server.join().unwrap());
    });
}

#[test]
fn unanswered_datagrams_count_as_lost() {
    let stop = AtomicBool::new(false);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let address =
        Address::Tcp { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut sockets = mute(&listener, Some(port));
            let control = sockets.last_mut().unwrap();
            let mut all = Vec::new();
            let mut bytes = [0; 4096];
            while !String::from_utf8_lossy(&all).contains("\"End\"") {
                let count = control.read(&mut bytes).unwrap();
                assert!(count > 0);
                all.extend_from_slice(&bytes[..count]);
            }
            let latency = "{\"Missing\":\"none\"}";
            let report = format!(
                "{{\"Report\":{{\"messages\":0,\"lost\":0,\"late\":0,\"corrupt\":0,\"touched\":0,\
                 \"seconds\":0,\"cpu_user_ns\":null,\"cpu_system_ns\":null,\"latency\":{latency},\
                 \"readings\":[]}}}}\n"
            );
            control.write_all(report.as_bytes()).unwrap();
            sockets
        });
        let mut client =
            Client::<NoPort>::connect(&address, Kind::Pingpong, LIMIT, None, &stop).unwrap();
        let job = NetJob { timeout_s: 0.02, ..job(Kind::Pingpong, Transport::Udp, 10) };
        let cell = client.measure(&job, &messages(4), &mut NoMeter).unwrap();
        assert_eq!((cell.messages(), cell.lost()), (0, 4));
        assert_eq!(cell.invalid_because(), ["none of 4 messages arrived"]);
        assert!(cell.messages_s().is_none());
        drop(server.join().unwrap());
    });
}
