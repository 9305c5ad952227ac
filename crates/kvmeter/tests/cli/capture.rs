//! `kvmeter workload capture`: real servers, limits, kills, and what is refused.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::tool::{Place, command_output, until};

/// A server on a unix socket of this place, ended with the test; none, said, where it is not
/// installed.
struct Server(Child);

impl Server {
    fn of(place: &Place, program: &str) -> Option<Server> {
        let socket = place.file("socket");
        let path = socket.display().to_string();
        let args: Vec<&str> = match program {
            // Buffers that leave nothing out on a busy machine.
            "memcached" => vec![
                "-u",
                "root",
                "-s",
                &path,
                "-m",
                "64",
                "-t",
                "2",
                "-o",
                "worker_logbuf_size=65536,watcher_logbuf_size=65536",
            ],
            _ => vec!["--port", "0", "--unixsocket", &path, "--save", ""],
        };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                let server = Server(child);
                until("the server's socket", || socket.exists());
                Some(server)
            }
            Err(error) => {
                eprintln!("SKIPPED: {program}: {error}");
                None
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn url(place: &Place, scheme: &str) -> String {
    format!("{scheme}://{}", place.file("socket").display())
}

fn loaded(place: &Place, url: &str) {
    place.run(&["bench", url, "--workload", "etc", "--records", "2k", "--ops", "1k", "--quiet"]);
}

/// A load beside which something is captured.
fn load(place: &Place, url: &str, more: &[&str]) -> Child {
    let bench = ["bench", url, "--workload", "etc", "--records", "2k", "--quiet", "--rate", "2k"];
    let mut command = place.command(&[&bench[..], more].concat());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn captured(place: &Place, args: &[&str]) -> Value {
    let all = [&["workload", "capture"], args, &["--json", "--quiet"]].concat();
    place.run(&all).json()
}

#[test]
fn a_memcached_is_captured_while_it_serves() {
    let place = Place::new();
    let Some(_server) = Server::of(&place, "memcached") else { return };
    let url = url(&place, "memcached");
    loaded(&place, &url);
    // The load ends before the capture: none of its last requests is missing.
    let mut bench = load(&place, &url, &["--ops", "4k"]);
    let done = captured(&place, &[&url, "--time", "6s", "--out", "t.kvtrace"]);
    assert!(bench.wait().unwrap().code().is_some());
    assert_eq!((&done["ended_by"], &done["lost"]), (&"time".into(), &0.into()), "{done}");
    let requests = done["requests"].as_u64().unwrap();
    // The load may have begun before the capture.
    assert!((3_000..=4_000).contains(&requests), "{done}");
    let about = place.json(&["workload", "describe", "t.kvtrace", "--json"]);
    assert_eq!((&about["format"], &about["requests"]), (&"kvmeter".into(), &requests.into()));
    let reads = about["reads"].as_f64().unwrap() / requests as f64;
    assert!((0.9..1.0).contains(&reads), "{about}");
    let mode = std::fs::metadata(place.file("t.kvtrace")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    // It can be replayed.
    let replay = ["bench", &url, "--trace", "t.kvtrace", "--speed", "max", "--json", "--quiet"];
    assert_eq!(place.run(&replay).json()["operations"], requests);
}

#[test]
fn a_redis_is_captured_and_no_key_or_value_is_written() {
    let place = Place::new();
    let Some(_server) = Server::of(&place, "redis-server") else { return };
    let url = url(&place, "redis");
    let capture = |out: &str, more: &[&str]| {
        let words = ["workload", "capture", &url, "--ops", "2", "--json", "--out", out];
        let mut command = place.command(&[&words[..], more].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Requests until it has its two.
        let socket = place.file("socket").display().to_string();
        let child = RefCell::new(child);
        until("the capture's end", || {
            for words in [["SET", "person:17", "a secret value"], ["GETSET", "person:17", "b"]] {
                let mut client = Command::new("redis-cli");
                client.args(["-s", &socket]).args(words).stdout(Stdio::null());
                assert!(client.status().unwrap().success());
            }
            child.borrow_mut().try_wait().unwrap().is_some()
        });
        command_output(child.into_inner().wait_with_output().unwrap())
    };
    let done = capture("t.kvtrace", &[]);
    assert!(done.err.contains("MONITOR makes the server send"), "{}", done.err);
    assert_eq!(done.json()["ended_by"], "operations");
    let plain = |name: &str| {
        let zstd = Command::new("zstd").args(["-dc", name]).current_dir(place.path()).output();
        zstd.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).ok()
    };
    if let Some(text) = plain("t.kvtrace") {
        assert!(text.starts_with("kvmeter-trace 1\nkeys: hashed\n"), "{text}");
        assert!(!text.contains("person") && !text.contains("secret"), "{text}");
    }
    capture("p.kvtrace", &["--keys", "plain"]);
    if let Some(text) = plain("p.kvtrace") {
        assert!(text.contains("person:17") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn a_killed_capture_is_read_as_far_as_it_goes_and_leaves_nothing_in_the_server() {
    let place = Place::new();
    let Some(_server) = Server::of(&place, "memcached") else { return };
    let url = url(&place, "memcached");
    loaded(&place, &url);
    let mut bench = load(&place, &url, &["--time", "60s"]);
    let words = ["workload", "capture", &url, "--time", "60s", "--out", "t.kvtrace", "--quiet"];
    let mut capture = place.command(&words).stdin(Stdio::null()).spawn().unwrap();
    // A block a second is written; the buffer between is small.
    let size = || std::fs::metadata(place.file("t.kvtrace")).map_or(0, |data| data.len());
    until("some blocks", || size() > 8 << 10);
    capture.kill().unwrap();
    capture.wait().unwrap();
    bench.kill().unwrap();
    bench.wait().unwrap();
    place.refused(
        &["workload", "describe", "t.kvtrace"],
        &["mark of the end", "--trace-skip-bad 1"],
    );
    let about =
        place.json(&["workload", "describe", "t.kvtrace", "--trace-skip-bad", "1", "--json"]);
    assert!(about["requests"].as_u64().unwrap() > 100, "{about}");
    let watchers = || {
        let mut client = UnixStream::connect(place.file("socket")).unwrap();
        client.write_all(b"stats\r\nquit\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text.contains("STAT log_watchers 0\r\n")
    };
    until("a server without watchers", watchers);
}

/// The programs of captures by eBPF that the kernel holds; none, said, where it has no such
/// programs.
fn loaded_captures() -> Option<usize> {
    match syscall_trace::available().and_then(|()| syscall_trace::loaded_programs()) {
        Ok(programs) => Some(programs.iter().filter(|(_, name)| name == "kvmeter_reads").count()),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

/// What a raw client sends, with nothing waited for but the last answer.
fn talk(place: &Place, request: &str, last: &str) {
    let mut client = UnixStream::connect(place.file("socket")).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 512]);
    while !answer.ends_with(last.as_bytes()) {
        let length = client.read(&mut piece).unwrap();
        assert!(length > 0, "{answer:?}");
        answer.extend_from_slice(&piece[..length]);
    }
}

/// A request of Redis.
fn resp(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let each = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), each.collect::<String>())
}

/// Every request is there, also those of which a log does not have the command.
#[test]
fn what_a_server_reads_is_captured_whole() {
    let Some(before) = loaded_captures() else { return };
    for (program, scheme) in [("memcached", "memcached"), ("redis-server", "redis")] {
        let place = Place::new();
        let Some(mut server) = Server::of(&place, program) else { continue };
        let url = url(&place, scheme);
        loaded(&place, &url);
        let asked = std::cell::Cell::new(0);
        let capture = |out: &str| {
            let words = ["workload", "capture", &url, "--method", "ebpf", "--time", "60s"];
            let words = [&words[..], &["--json", "--quiet", "--out", out]].concat();
            let mut command = place.command(&words);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            // The trace is made with its first request.
            until("the capture's first request", || {
                match scheme {
                    "memcached" => talk(&place, "get a\r\n", "END\r\n"),
                    _ => talk(&place, &resp("GET a"), "$-1\r\n"),
                }
                asked.set(asked.get() + 1);
                place.file(out).exists()
            });
            assert!(loaded_captures() > Some(before));
            child
        };
        let child = capture("t.kvtrace");
        let bench = ["--ops", "4k", "--connections", "3", "--json", "--quiet"];
        let bench = [&["bench", &url, "--workload", "etc", "--records", "2k"], &bench[..]].concat();
        assert_eq!(place.run(&bench).json()["operations"], 4_000);
        let requests = ["set n 0 0 1\r\n1", "incr n 1", "gat 0 n", "delete n", "get n"];
        match scheme {
            "memcached" => talk(&place, &(requests.join("\r\n") + "\r\n"), "DELETED\r\nEND\r\n"),
            _ => {
                let words = ["SET n 1", "INCR n", "GETDEL n", "DEL n", "GET n"];
                talk(&place, &words.map(resp).concat(), ":0\r\n$-1\r\n");
            }
        }
        let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        // What it has copied is written down meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(500));
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let done = command_output(child.wait_with_output().unwrap()).json();
        assert_eq!((&done["ended_by"], &done["lost"]), (&"stopped".into(), &0.into()), "{done}");
        let about = place.json(&["workload", "describe", "t.kvtrace", "--json"]);
        // `bench` looks at what the store holds with a few more.
        let requests = done["requests"].as_u64().unwrap();
        let others = requests - 4_005;
        assert!((1..asked.get() + 15).contains(&others), "{scheme}: {done}, asked {asked:?}");
        let operations = about["operations"].as_array().unwrap();
        let of = |name: &str| {
            let of = operations.iter().find(|each| each["operation"] == name);
            of.map_or(0, |each| each["requests"].as_u64().unwrap())
        };
        assert!(of("incr") == 1 && of("delete") >= 1 && of("get") > 3_700, "{scheme}: {about}");

        // The end of the server ends a capture, and a kill leaves nothing in the kernel.
        let child = capture("end.kvtrace");
        std::thread::sleep(std::time::Duration::from_millis(500));
        server.0.kill().unwrap();
        server.0.wait().unwrap();
        let done = command_output(child.wait_with_output().unwrap());
        assert_eq!(done.code, 1, "{done:#?}");
        assert_eq!(done.json()["ended_by"], "closed");
    }
}

/// A server that greets like memcached and then answers in drops, or logs without an end of line.
#[test]
fn a_hostile_server_holds_no_capture() {
    for (answer, says) in [(&b"ERRO"[..], "timed out"), (b"OK\r\n", "served no request")] {
        let place = Place::new();
        let socket = place.file("socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut request = [0; 512];
                    while let Ok(length) = client.read(&mut request)
                        && length > 0
                    {
                        let request = String::from_utf8_lossy(&request[..length]).into_owned();
                        let words: &[u8] = match &request {
                            it if it.starts_with("version") => b"VERSION 1.6.18\r\n",
                            it if it.starts_with("stats") => b"STAT pid 1\r\nEND\r\n",
                            it if it.starts_with("watch") => answer,
                            _ => b"ERROR\r\n",
                        };
                        let mut alive = client.write_all(words).is_ok();
                        while alive && request.starts_with("watch") {
                            let more =
                                if answer.ends_with(b"\n") { vec![b'x'; 4096] } else { vec![b'R'] };
                            std::thread::sleep(std::time::Duration::from_millis(20));
                            alive = client.write_all(&more).is_ok();
                        }
                    }
                });
            }
        });
        let url = format!("{}?timeout=1s", url(&place, "memcached"));
        let args = ["workload", "capture", &url, "--time", "2s", "--out", "x"];
        let begun = std::time::Instant::now();
        let result = place.run(&args);
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{result:#?}");
        assert!(result.code != 0 && result.err.contains(says), "{says}: {result:#?}");
    }
}

#[test]
fn another_trace_is_captured_without_its_names() {
    let place = Place::new();
    place.write(
        "m.log",
        "1.000001 [0 a:1] \"SET\" \"user:1\" \"v\"\n1.5 bad\n1.000003 [0 a:1] \"GET\" \"user:1\"\n",
    );
    place.refused(
        &["workload", "capture", "m.log", "--out", "bad.kvtrace"],
        &["m.log:2", "what came before it is kept"],
    );
    let args = ["m.log", "--trace-skip-bad", "1", "--out", "t.kvtrace"];
    let done = captured(&place, &args);
    assert_eq!(
        (&done["requests"], &done["records_skipped"], &done["ended_by"]),
        (&2.into(), &1.into(), &"source".into())
    );
    let about = place.json(&["workload", "describe", "t.kvtrace", "--json"]);
    assert_eq!(about["requests"], 2);
    // The same secret gives the same keys.
    place.secret("secret", "000102030405060708090a0b0c0d0e0f");
    let requests = |out: &str, more: &[&str]| {
        let more = [&["m.log", "--trace-skip-bad", "1", "--out", out], more].concat();
        captured(&place, &more);
        let zstd = Command::new("zstd").args(["-dc", out]).current_dir(place.path()).output();
        let text = zstd.ok()?.stdout;
        let head = text.windows(2).position(|pair| pair == b"\n\n").unwrap();
        Some(text[head..].to_vec())
    };
    let secret = ["--key-secret", "secret"];
    let first = requests("a.kvtrace", &secret);
    assert_eq!(first, requests("b.kvtrace", &secret));
    assert!(first.is_none() || first != requests("c.kvtrace", &[]));
    let capture = |more: &[&str], words: &[&str]| {
        place.refused(&[&["workload", "capture"], more].concat(), words);
    };
    capture(&["m.log", "--out", "t.kvtrace"], &["t.kvtrace", "exists already", "another file"]);
    capture(&["m.log", "--out", "no/t"], &["--out no/t"]);
    capture(&["m.log", "--out", "x", "--ops", "0"], &["more than zero"]);
    capture(&["m.log", "--out", "x", "--keys", "plain", "--key-secret", "s"], &["--key-secret"]);
    place.write("s", "short");
    capture(&["m.log", "--out", "x", "--key-secret", "s"], &["--key-secret s", "openssl rand"]);
    capture(&["spill:///x", "--out", "x"], &["no server whose requests"]);
    let ebpf = ["--method", "ebpf", "--out", "x"];
    capture(&[&["m.log"], &ebpf[..]].concat(), &["--method is of servers"]);
    // Reserved for documentation (RFC 5737): no machine of ours has it.
    capture(&[&["memcached://192.0.2.9"], &ebpf[..]].concat(), &["another machine"]);
    capture(&["memcached://a,b", "--out", "x"], &["name one server"]);
    capture(&["redis://a?cluster=on", "--out", "x"], &["name one server"]);
    capture(&["memcached://a?protocol=binary", "--out", "x"], &["text protocol"]);
    let none = place.run(&["workload", "capture", "memcached://127.0.0.1:1", "--out", "x"]);
    assert!(none.code == 1 && none.err.contains("nothing listens there"), "{none:#?}");
    assert!(!place.file("x").exists());
}
