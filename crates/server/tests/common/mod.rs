#![allow(dead_code, clippy::unwrap_used)]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use server::launch::{
    LaunchError, LaunchRequest, Launched, Launcher, LocalLauncher, ServerSettings, program,
};

pub const SOON: Duration = Duration::from_secs(10);

pub fn request(name: &str, settings: ServerSettings) -> LaunchRequest {
    LaunchRequest::new(program(name).unwrap(), settings)
}

pub fn start(name: &str, settings: ServerSettings) -> Result<Launched, LaunchError> {
    LocalLauncher.start(&request(name, settings))
}

/// The processes whose command line contains a unique text. A redis-server changes its own, which
/// still contains its address.
pub fn named(text: &str) -> Vec<u32> {
    command_lines(text).into_iter().map(|(pid, _)| pid).collect()
}

/// The same with their command lines.
pub fn command_lines(text: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(text) {
            found.push((pid, line));
        }
    }
    found
}

/// Waits until `done`, at most [`SOON`].
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < SOON, "{what} within {SOON:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether there is a process of this number that has not ended.
pub fn lives(pid: u32) -> bool {
    server::watch::Process::of(pid).is_ok()
}

pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}
