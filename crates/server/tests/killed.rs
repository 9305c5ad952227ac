//! No server outlives kvmeter: a process that runs one is killed with SIGKILL at several moments,
//! and everything that it started must end soon.

#![allow(clippy::unwrap_used)]

mod common;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{SOON, command_lines, eventually, is_root, lives, named, start};
use server::launch::ServerSettings;

/// Set in the process that runs the server: program, socket, user and executable, by lines.
const HOLD: &str = "KVMETER_TEST_HOLD";

/// In the guard's command line.
const GUARD: &str = "kvmeter-guard\0";

/// Not a test: run by the tests below as a process of its own.
#[test]
#[ignore = "holds a server until it is killed, for the other tests"]
fn holder() {
    let Ok(orders) = env::var(HOLD) else { return };
    let [name, socket, user, binary, again] = orders.split('\n').collect::<Vec<_>>()[..] else {
        panic!("{orders}")
    };
    let settings = || {
        let mut settings = ServerSettings::default().with("socket", socket);
        for (key, value) in [("user", user), ("binary", binary)] {
            if !value.is_empty() {
                settings = settings.with(key, value);
            }
        }
        settings
    };
    if again == "again" {
        println!("holds 0");
        loop {
            start(name, settings()).unwrap().end(SOON).unwrap();
        }
    }
    let server = start(name, settings()).unwrap();
    println!("holds {}", server.pid);
    thread::sleep(Duration::from_secs(600));
    drop(server);
}

/// A process that runs a server, and the server's files.
struct HolderProcess {
    holder: Child,
    server: u32,
    socket: String,
    folder: tempfile::TempDir,
}

#[derive(Default, Clone, Copy)]
struct Scenario<'a> {
    user: &'a str,
    /// A script in place of the executable.
    script: Option<&'a str>,
    /// Starts and ends one server after another.
    again: bool,
}

impl HolderProcess {
    fn new(name: &str, way: Scenario<'_>) -> HolderProcess {
        let folder = tempfile::tempdir().unwrap();
        // Another user's server makes its socket here.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let socket = folder.path().join("socket").display().to_string();
        let binary = way.script.map(|text| script(folder.path(), text)).unwrap_or_default();
        let again = if way.again { "again" } else { "" };
        let mut holder = Command::new(env::current_exe().unwrap())
            .args(["--exact", "holder", "--ignored", "--nocapture"])
            .env(HOLD, [name, &socket, way.user, &binary.display().to_string(), again].join("\n"))
            .env("TMPDIR", folder.path().join("tmp"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let pid = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("holds ")?.1.trim().parse().ok())
            .expect("the holder starts a server");
        HolderProcess { holder, server: pid, socket, folder }
    }

    /// The guard of the server, by the arguments on its command line.
    fn guards(&self) -> Vec<u32> {
        let all = command_lines(&self.socket).into_iter();
        all.filter(|(_, line)| line.contains(GUARD)).map(|(pid, _)| pid).collect()
    }

    fn servers(&self) -> Vec<u32> {
        let all = command_lines(&self.socket).into_iter();
        all.filter(|(_, line)| !line.contains(GUARD)).map(|(pid, _)| pid).collect()
    }

    fn kill(&mut self) {
        self.holder.kill().unwrap();
        self.holder.wait().unwrap();
    }

    /// Asserts that nothing is left, and nothing is restarted.
    fn assert_gone(&self, files: bool) {
        eventually("server and guard are gone", || named(&self.socket).is_empty());
        thread::sleep(Duration::from_millis(50));
        // A guard may have been between fork and exec; then it scans once and ends.
        assert!(self.servers().is_empty(), "came back");
        eventually("the guard is gone", || named(&self.socket).is_empty());
        assert!(self.server == 0 || !lives(self.server));
        if files {
            let remaining = || fs::read_dir(self.folder.path().join("tmp")).unwrap().count();
            eventually("its folder is removed", || remaining() == 0);
            eventually("its socket is removed", || !Path::new(&self.socket).exists());
        }
    }
}

impl Drop for HolderProcess {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("server.sh");
    fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = -V ] && exec memcached -V\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn ends_an_answering_server_after_a_kill() {
    for name in ["memcached", "redis"] {
        let mut process = HolderProcess::new(name, Scenario::default());
        assert!(lives(process.server) && process.servers().contains(&process.server));
        assert_eq!(process.guards().len(), 1);
        process.kill();
        process.assert_gone(true);
    }
}

/// The kernel drops the parent-death signal of a process that changed its user.
#[test]
fn ends_a_server_that_changed_its_user() {
    if !is_root() {
        // Only root can change.
        return;
    }
    let mut process =
        HolderProcess::new("memcached", Scenario { user: "nobody", ..Scenario::default() });
    assert!(lives(process.server));
    let status = fs::read_to_string(format!("/proc/{}/status", process.server)).unwrap();
    assert!(!status.contains("Uid:\t0"), "{status}");
    process.kill();
    process.assert_gone(true);
}

/// The kernel does not signal children of the started process.
#[test]
fn ends_a_daemonised_server() {
    let text = "memcached -d \"$@\"\nexec sleep 600";
    let mut process =
        HolderProcess::new("memcached", Scenario { script: Some(text), ..Scenario::default() });
    let stat = fs::read_to_string(format!("/proc/{}/status", process.server)).unwrap();
    assert!(!stat.contains(&format!("PPid:\t{}\n", process.holder.id())), "{stat}");
    assert!(lives(process.server));
    process.kill();
    process.assert_gone(true);
}

/// Only the kernel's signal is left.
#[test]
fn ends_a_server_whose_guard_was_killed() {
    for name in ["memcached", "redis"] {
        let mut process = HolderProcess::new(name, Scenario::default());
        let guards = process.guards();
        assert_eq!(guards.len(), 1);
        let guard = guards[0].to_string();
        assert!(Command::new("kill").args(["-KILL", &guard]).status().unwrap().success());
        eventually("the guard is gone", || !lives(guards[0]));
        assert!(lives(process.server), "the server does not need its guard");
        process.kill();
        process.assert_gone(false);
    }
}

/// From before the fork to after the end: the holder starts and ends servers all the time.
#[test]
fn ends_servers_that_were_starting_or_ending() {
    // memcached takes a second to end; Redis starts and ends within the steps.
    for (name, steps, step_us) in [("memcached", 16, 2_700), ("redis", 14, 9_100)] {
        for delay in 0..steps {
            let mut process =
                HolderProcess::new(name, Scenario { again: true, ..Scenario::default() });
            thread::sleep(Duration::from_micros(delay * step_us));
            process.kill();
            process.assert_gone(true);
        }
    }
}
