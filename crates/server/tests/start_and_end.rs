//! Starting and ending real servers with the settings of a study.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use common::{SOON, eventually, lives, request, start};
use model::Address;
use server::launch::{LaunchError, Launched, Launcher, LocalLauncher, ServerSettings, Value};

fn none() -> ServerSettings {
    ServerSettings::default()
}

/// The first read of the server's answer to `question`.
fn query(server: &Launched, question: &str) -> String {
    let mut answer = vec![0; 65_536];
    let length = match &server.addresses[0] {
        Address::Unix(path) => {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(question.as_bytes()).unwrap();
            stream.read(&mut answer).unwrap()
        }
        Address::Tcp { host, port } => {
            let mut stream = TcpStream::connect((host.as_str(), *port)).unwrap();
            stream.write_all(question.as_bytes()).unwrap();
            stream.read(&mut answer).unwrap()
        }
    };
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

fn script(folder: &Path, text: &str) -> String {
    let path = folder.join("server.sh");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn kill(signal: &str, pid: u32) {
    let sent = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn memcached_runs_with_the_settings_of_the_study() {
    let settings = none()
        .with("memory", "128MiB")
        .with("threads", 2)
        .with("connections", 300)
        .with("cpus", "0")
        .with("arguments", ["-o", "no_lru_crawler"]);
    let server = start("memcached", settings).unwrap();
    let settings = query(&server, "stats settings\r\n");
    for (name, value) in [
        ("maxbytes", "134217728"),
        ("num_threads", "2"),
        ("maxconns", "300"),
        ("inter", "127.0.0.1"),
        ("lru_crawler", "no"),
    ] {
        assert!(settings.contains(&format!("STAT {name} {value}\r\n")), "{name}: {settings}");
    }
    assert!(query(&server, "stats\r\n").contains(&format!("STAT pid {}\r\n", server.pid)));
    let answered = query(&server, "version\r\n");
    assert_eq!(format!("{}\r\n", server.version), answered.replace("VERSION", "memcached"));
    assert_eq!(server.build, server.version);
    assert_eq!(server.cpus, "0");
    // The record matches the running server.
    let line = fs::read(format!("/proc/{}/cmdline", server.pid)).unwrap();
    let line: Vec<&str> = std::str::from_utf8(&line).unwrap().split_terminator('\0').collect();
    assert_eq!(line[0], server.binary.to_str().unwrap());
    assert_eq!(line[1..], server.arguments);
    server.still_running().unwrap();
    let pid = server.pid;
    let ended = server.end(SOON).unwrap();
    assert!(ended.status.success() && !ended.by_itself && !ended.killed, "{ended:?}");
    assert!(!lives(pid));
}

#[test]
fn redis_runs_with_the_settings_of_the_study_and_leaves_no_folder() {
    let settings = none()
        .with("memory", "96MiB")
        .with("policy", "allkeys-lru")
        .with("threads", 2)
        .with("connections", 50)
        .with("arguments", ["--hz", "20"]);
    let server = start("redis", settings).unwrap();
    for (name, value) in [
        ("maxmemory", "100663296"),
        ("maxmemory-policy", "allkeys-lru"),
        ("io-threads", "2"),
        ("maxclients", "50"),
        ("save", ""),
        ("appendonly", "no"),
        ("hz", "20"),
    ] {
        let answer = query(&server, &format!("CONFIG GET {name}\r\n"));
        assert!(answer.ends_with(&format!("${}\r\n{value}\r\n", value.len())), "{name}: {answer}");
    }
    let info = query(&server, "INFO server\r\n");
    assert!(info.contains(&format!("process_id:{}\r\n", server.pid)), "{info}");
    let version = server.version.strip_prefix("Redis ").unwrap();
    assert!(info.contains(&format!("redis_version:{version}\r\n")), "{info}");
    assert!(server.build.contains("malloc="), "{}", server.build);
    let at = server.arguments.iter().position(|argument| argument == "--dir").unwrap();
    let folder = server.arguments[at + 1].clone();
    assert!(Path::new(&folder).is_dir());
    // Something to find in the folder.
    assert!(query(&server, "SAVE\r\n").starts_with("+OK"));
    assert!(Path::new(&folder).join("dump.rdb").exists());
    assert!(server.end(SOON).unwrap().status.success());
    assert!(!Path::new(&folder).exists());
}

#[test]
fn removes_unix_sockets_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["memcached", "redis"] {
        let path = folder.path().join(name);
        let settings = || none().with("socket", path.to_str().unwrap());
        let server = start(name, settings()).unwrap();
        assert_eq!(server.addresses, [Address::Unix(path.clone())]);
        // The address is in use, and the error names the process.
        let error = start(name, settings()).unwrap_err();
        assert!(matches!(error, LaunchError::InUse { key: "socket", .. }), "{error}");
        assert!(error.to_string().contains(&format!("by pid {}", server.pid)), "{error}");
        server.still_running().unwrap();
        drop(server);
        assert!(!path.exists(), "{name}");
    }
}

#[test]
fn servers_of_many_threads_are_independent() {
    let servers: Vec<Launched> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|at| {
                scope.spawn(move || {
                    let name = ["memcached", "redis"][at % 2];
                    start(name, ServerSettings::default()).unwrap()
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let pids: Vec<u32> = servers.iter().map(|server| server.pid).collect();
    // The threads that started them have ended; the servers have not.
    for (at, server) in servers.into_iter().enumerate() {
        server.still_running().unwrap();
        server.end(SOON).unwrap();
        for (other, pid) in pids.iter().enumerate() {
            assert_eq!(lives(*pid), other > at, "server {other} after the end of {at}");
        }
    }
}

#[test]
fn reports_a_dead_server_with_its_status() {
    for name in ["memcached", "redis"] {
        let server = start(name, none()).unwrap();
        server.still_running().unwrap();
        kill("-SEGV", server.pid);
        eventually("the end is seen", || server.still_running().is_err());
        let error = server.still_running().unwrap_err();
        assert!(matches!(error, LaunchError::Died { .. }) && !error.is_request());
        assert!(error.to_string().contains("signal: 11"), "{error}");
        let ended = server.end(SOON).unwrap();
        assert!(ended.by_itself && !ended.killed, "{ended:?}");
    }
}

#[test]
fn kills_a_server_that_ignores_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    // It ignores SIGTERM.
    let text =
        "[ \"$1\" = -V ] && exec memcached -V\ntrap '' TERM\nmemcached \"$@\" &\nwait\nsleep 600";
    let server = start("memcached", none().with("binary", script(folder.path(), text).as_str()));
    let server = server.unwrap();
    let pid = server.pid;
    let ended = server.end(Duration::from_millis(300)).unwrap();
    assert!(ended.killed && !ended.status.success(), "{ended:?}");
    assert!(!lives(pid));
}

#[test]
fn stop_shortens_the_wait_for_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "[ \"$1\" = -V ] && exec memcached -V\ntrap '' TERM\nmemcached \"$@\" &\nwait\nsleep 600";
    let launch = request("memcached", none().with("binary", script(folder.path(), text).as_str()));
    let stop = std::sync::Arc::clone(&launch.stop);
    let server = LocalLauncher.start(&launch).unwrap();
    let pid = server.pid;
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let began = std::time::Instant::now();
    let ended = server.end(Duration::from_secs(3600)).unwrap();
    assert!(ended.killed && began.elapsed() < Duration::from_secs(60), "{ended:?}");
    assert!(!lives(pid));
    stopper.join().unwrap();
}

#[test]
fn the_environment_given_reaches_the_server_and_is_recorded() {
    let mut launch = request("memcached", none());
    launch.environment = vec![("KVMETER_TEST".to_owned(), "a b".to_owned())];
    let server = LocalLauncher.start(&launch).unwrap();
    assert!(server.environment.ends_with(&launch.environment), "{:?}", server.environment);
    let environment = fs::read(format!("/proc/{}/environ", server.pid)).unwrap();
    assert!(String::from_utf8_lossy(&environment).contains("KVMETER_TEST=a b\0"));
}

#[test]
fn a_port_in_use_is_refused_before_anything_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = i64::from(listener.local_addr().unwrap().port());
    for name in ["memcached", "redis"] {
        let error = start(name, none().with("port", port)).unwrap_err();
        assert!(matches!(error, LaunchError::InUse { key: "port", .. }), "{error}");
        assert!(error.is_request());
        let text = error.to_string();
        assert!(text.contains(&format!("127.0.0.1:{port} is in use by pid")), "{text}");
        assert!(text.contains(&std::process::id().to_string()), "{text}");
    }
}

#[test]
fn quotes_a_failed_server_with_a_remedy() {
    let error = start("memcached", none().with("arguments", ["--no-such-option"])).unwrap_err();
    assert!(matches!(error, LaunchError::EndedEarly { .. }), "{error}");
    assert!(error.to_string().contains("no-such-option"), "{error}");
    let error = start("redis", none().with("arguments", ["--no-such-option", "1"])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("no-such-option") && text.contains("check `arguments`"), "{text}");
    // Only root can change the user; for others memcached ignores the setting.
    if common::is_root() {
        let error = start("memcached", none().with("user", "no-such-user")).unwrap_err();
        assert!(error.to_string().contains("set `user` to a user"), "{error}");
    }
}

#[test]
fn refuses_fewer_connections_than_requested() {
    // No kernel allows so many descriptors by default.
    for name in ["memcached", "redis"] {
        let error = start(name, none().with("connections", 16_000_000)).unwrap_err();
        assert!(error.to_string().contains("`connections`"), "{error}");
    }
}

#[test]
fn a_server_that_never_answers_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark").display().to_string();
    let text =
        format!("[ \"$1\" = -V ] && exec memcached -V\necho still thinking\nexec tail -f {mark}");
    fs::write(&mark, "").unwrap();
    let settings = none().with("binary", script(folder.path(), &text).as_str());
    let mut launch = request("memcached", settings);
    launch.start_timeout = Duration::from_millis(400);
    let error = LocalLauncher.start(&launch).unwrap_err();
    assert!(matches!(error, LaunchError::Silent { .. }), "{error}");
    assert!(error.to_string().contains("still thinking"), "{error}");
    // A stop cancels even a long wait.
    launch.start_timeout = Duration::from_secs(3600);
    launch.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = LocalLauncher.start(&launch).unwrap_err();
    assert!(matches!(error, LaunchError::Stopped { .. }), "{error}");
    assert!(common::named(&format!("-f\0{mark}")).is_empty(), "left behind");
}

#[test]
fn ends_a_daemonised_server() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[ \"$1\" = -V ] && exec memcached -V\nexec memcached -d \"$@\"";
    let socket = folder.path().join("background").display().to_string();
    let settings =
        none().with("socket", socket.as_str()).with("binary", script(folder.path(), text).as_str());
    let error = start("memcached", settings).unwrap_err();
    assert!(matches!(error, LaunchError::Background { .. }), "{error}");
    assert!(common::named(&socket).is_empty(), "left behind");
}

#[test]
fn finds_and_ends_a_server_behind_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[ \"$1\" = -V ] && exec memcached -V\nsetsid memcached \"$@\" &\nwait";
    let server =
        start("memcached", none().with("binary", script(folder.path(), text).as_str())).unwrap();
    assert!(query(&server, "stats\r\n").contains(&format!("STAT pid {}\r\n", server.pid)));
    let pid = server.pid;
    server.end(SOON).unwrap();
    assert!(!lives(pid), "left behind in a session of its own");

    // The script continues after its server has died.
    let text = "[ \"$1\" = -V ] && exec memcached -V\nmemcached \"$@\"\nsleep 600";
    let server =
        start("memcached", none().with("binary", script(folder.path(), text).as_str())).unwrap();
    server.still_running().unwrap();
    kill("-KILL", server.pid);
    eventually("the end is seen", || server.still_running().is_err());
    assert!(
        server.still_running().unwrap_err().to_string().contains("only the script that started it")
    );
    assert!(server.end(SOON).unwrap().by_itself);
}

#[test]
fn servers_that_refuse_the_probe_are_up() {
    // Binary only, and one that requires a password.
    start("memcached", none().with("arguments", ["-B", "binary"])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    std::fs::write(&file, "requirepass secret\n").unwrap();
    let include = ["--include", file.to_str().unwrap()];
    start("redis", none().with("arguments", include)).unwrap();
    // Other users could read it on its command line.
    let error = start("redis", none().with("arguments", ["--requirepass", "secret"])).unwrap_err();
    assert!(
        error.is_request() && error.to_string().contains("`\"--include\", \"FILE\"`"),
        "{error}"
    );
}

#[test]
fn explains_unusable_executables() {
    let error = start("memcached", none().with("binary", "no-such-binary")).unwrap_err();
    assert!(matches!(error, LaunchError::NotInstalled { .. }) && error.is_request());
    assert!(error.to_string().contains("install the package `memcached`"), "{error}");
    let error = start("redis", none().with("binary", "/bin/echo")).unwrap_err();
    assert!(matches!(error, LaunchError::NoVersion { .. }), "{error}");
    let error = start("redis", none().with("binary", "/etc/passwd")).unwrap_err();
    assert!(matches!(error, LaunchError::CannotRun { .. }), "{error}");
    let error = start("memcached", none().with("binary", "redis-server")).unwrap_err();
    assert!(matches!(error, LaunchError::NoVersion { .. }), "{error}");
}

#[test]
fn invalid_settings_name_their_key() {
    let wrong: &[(&str, &str, Value, &str)] = &[
        ("memcached", "memroy", "1GiB".into(), "did you mean `memory`?"),
        ("redis", "user", "root".into(), "no setting `user`"),
        ("memcached", "memory", "1000000".into(), "whole 1MiB"),
        ("memcached", "memory", "lots".into(), "`lots`"),
        ("redis", "memory", 0.into(), "a size"),
        ("memcached", "threads", 0.into(), "from 1 to 1024"),
        ("memcached", "threads", "4".into(), "a whole number"),
        ("memcached", "port", 70_000.into(), "from 1 to 65535"),
        ("memcached", "listen", "localhost".into(), "an IP address"),
        ("memcached", "socket", "mc.sock".into(), "an absolute path"),
        ("memcached", "cpus", "3-1".into(), "such as `0-3,8`"),
        ("redis", "policy", "allkeys-lur".into(), "did you mean `allkeys-lru`?"),
        ("memcached", "arguments", "-v".into(), "a list"),
        ("memcached", "arguments", ["-v", "-d"].into(), "foreground"),
        ("memcached", "arguments", ["-m", "64"].into(), "give `memory` instead"),
        ("memcached", "arguments", ["--memory-limit=64"].into(), "give `memory` instead"),
        ("redis", "arguments", ["--daemonize", "yes"].into(), "foreground"),
        ("redis", "arguments", ["redis.conf"].into(), "write each option"),
    ];
    for (name, key, value, why) in wrong {
        let error =
            start(name, ServerSettings(vec![((*key).to_owned(), value.clone())])).unwrap_err();
        let LaunchError::Setting(setting) = &error else { panic!("{error}") };
        assert_eq!(setting.key(), *key);
        assert!(error.is_request());
        assert!(error.to_string().contains(why), "{key}: {error}");
    }
    let both = none().with("socket", "/tmp/x").with("port", 5000);
    assert!(start("redis", both).unwrap_err().to_string().contains("exclude each other"));
    let error = start("memcached", none().with("cpus", "0-4000")).unwrap_err();
    assert!(matches!(error, LaunchError::Cpus { .. }), "{error}");
    let error = start("memcached", none().with("listen", "192.0.2.1")).unwrap_err();
    assert!(matches!(error, LaunchError::CannotListen { key: "listen", .. }), "{error}");
}

#[test]
fn deserialises_settings_of_a_study() {
    let text = r#"{"memory": "16GiB", "threads": 10, "arguments": ["-v", 3, true]}"#;
    let settings: ServerSettings = serde_json::from_str(text).unwrap();
    let launch =
        none().with("memory", "16GiB").with("threads", 10).with("arguments", ["-v", "3", "true"]);
    assert_eq!(settings, launch);
    assert!(serde_json::from_str::<ServerSettings>(r#"{"threads": 1.5}"#).is_err());
    assert!(serde_json::from_str::<ServerSettings>(r#"{"arguments": [["-v"]]}"#).is_err());
}
