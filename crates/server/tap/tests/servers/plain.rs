//! A server of known time, and servers that must not be watched.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tap::reader::{Reader, ReaderError};

use crate::support::{Folder, Server, Watched, library, memcached_command, preload};

fn slow_server() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("slow_server"))
}

/// Builds one of the programs next to this file.
fn build(name: &str) -> PathBuf {
    let program = library().with_file_name(name);
    let source = format!("{}/tests/servers/{name}.rs", env!("CARGO_MANIFEST_DIR"));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(built.unwrap().success());
    program
}

fn watched_slow_server() -> Watched {
    let folder = Folder::new();
    let socket = folder.path("socket");
    let mut command = Command::new(slow_server());
    command.arg(&socket);
    Watched::start(folder, (command, socket))
}

#[test]
fn measures_a_known_time() {
    let watched = watched_slow_server();
    let mut client = watched.connect();
    for _ in 0..20 {
        client.request(b"get a\r\n", b"HD\r\n");
    }
    client.request(&b"get a\r\n".repeat(5), &b"HD\r\n".repeat(5));
    let counts = watched.counted(25);
    let shortest = counts.quantile_ns(0.0).unwrap() as f64;
    assert!(shortest >= 2e6 * (1.0 - 1.0 / 256.0), "shorter than its sleep: {shortest} ns");
    assert!(counts.totals().mean_ns() >= Some(2e6));
    let totals = counts.totals();
    assert_eq!((totals.requests, totals.batches, totals.reads), (25, 21, 21));
    assert_eq!((totals.connections, totals.opaque), (1, 0), "only the client's connection counts");
}

#[test]
fn unknown_protocol_counts_batches() {
    let watched = watched_slow_server();
    let mut client = watched.connect();
    for _ in 0..10 {
        client.request(b"\x16\x03\x01\x00\x05hello", b"\x17\x03\x03");
    }
    let counts = watched.counted(10);
    let totals = counts.totals();
    assert_eq!((totals.requests, totals.opaque, totals.opaque_connections), (0, 10, 1));
    assert!(counts.quantile_ns(0.0).unwrap() >= 1_992_000);
}

#[test]
fn lanes_of_ended_threads_are_reused() {
    let watched = watched_slow_server();
    for _ in 0..300 {
        watched.connect().request(b"get a\r\n", b"HD\r\n");
    }
    let counts = watched.counted(300);
    assert_eq!((counts.threads_unwatched, counts.totals().connections), (0, 300));
    assert!(counts.threads.len() < 256);
}

#[test]
fn a_thread_may_be_cancelled_in_a_call() {
    let folder = Folder::new();
    let reader = Reader::create(&folder.path("tap")).unwrap();
    let mut command = Command::new(build("cancelled"));
    preload(&mut command, Some(reader.path()));
    let ended = command.status().unwrap();
    assert!(ended.success(), "{ended:?}");
    assert!(reader.snapshot().server.is_some());
}

#[test]
fn server_runs_without_a_usable_file() {
    let folder = Folder::new();
    let empty = folder.path("empty");
    std::fs::write(&empty, b"").unwrap();
    let other = folder.path("other");
    let reader = Reader::create(&folder.path("good")).unwrap();
    let mut bytes = std::fs::read(reader.path()).unwrap();
    bytes[8] += 1;
    std::fs::write(&other, &bytes).unwrap();
    let missing = folder.path("missing");
    for file in [None, Some(&*empty), Some(&*other), Some(&*missing), Some(Path::new(""))] {
        let folder = Folder::new();
        let (mut command, socket) = memcached_command(&folder, &[]);
        preload(&mut command, file);
        let server = Server::start(command, folder, socket);
        let mut client = server.connect();
        for _ in 0..100 {
            client.request(b"get a\r\n", b"END\r\n");
        }
    }
    assert!(std::fs::read(&other).unwrap() == bytes, "a file of another version is left alone");
    assert!(!missing.exists() && reader.snapshot().server.is_none());
}

#[test]
fn distinguishes_foreign_files_from_other_versions() {
    let folder = Folder::new();
    let path = folder.path("tap");
    assert!(matches!(Reader::open(&path), Err(ReaderError::Io { .. })));
    std::fs::write(&path, b"short").unwrap();
    assert!(matches!(Reader::open(&path), Err(ReaderError::NotATap { .. })));
    std::fs::write(&path, [7; 5000]).unwrap();
    assert!(matches!(Reader::open(&path), Err(ReaderError::NotATap { .. })));
    assert!(matches!(Reader::create(&path), Err(ReaderError::Io { .. })), "it is there already");
    std::fs::remove_file(&path).unwrap();
    let reader = Reader::create(&path).unwrap();
    let again = Reader::open(&path).unwrap();
    assert_eq!(again.snapshot(), reader.snapshot());
    let other = folder.path("other");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 99;
    std::fs::write(&other, bytes).unwrap();
    let refused = Reader::open(&other).unwrap_err();
    assert!(matches!(refused, ReaderError::Version { version: 99, expected: 1, .. }));
    assert!(refused.to_string().contains("version 99"));
    drop(reader);
    assert!(!path.exists(), "who made it removes it");
}
