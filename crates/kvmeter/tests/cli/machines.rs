//! Machines on one network, each a network namespace. Needs root and `ip`; says so where it has
//! neither.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::tool::Place;

/// The addresses of the machines. The last one is the hub of the others.
pub const HOSTS: [&str; 3] = ["192.0.2.1", "192.0.2.2", HUB];
pub const HUB: &str = "192.0.2.3";

pub struct Machines {
    prefix: String,
    pub place: Place,
}

fn ip(words: &str) -> Result<(), String> {
    let done = Command::new("ip").args(words.split(' ')).output().map_err(|e| e.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

impl Machines {
    /// None, loudly, where there can be none, or where the program is not installed.
    pub fn new(program: &str) -> Option<Machines> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("kvc{}x{count}", std::process::id());
        let net = Machines { prefix, place: Place::new() };
        match net.set_up(program) {
            Ok(()) => Some(net),
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                None
            }
        }
    }

    fn set_up(&self, program: &str) -> Result<(), String> {
        let there = Command::new(program).arg("--version").output();
        there.map_err(|error| format!("{program} does not start: {error}"))?;
        let hub = self.name(2);
        for who in 0..3 {
            ip(&format!("netns add {}", self.name(who)))?;
        }
        ip(&format!("-n {hub} link set lo up"))?;
        ip(&format!("-n {hub} link add hub type bridge"))?;
        ip(&format!("-n {hub} link set hub up"))?;
        ip(&format!("-n {hub} addr add {HUB}/24 dev hub"))?;
        for (who, host) in HOSTS[..2].iter().enumerate() {
            let name = self.name(who);
            ip(&format!("-n {hub} link add v{who} type veth peer name v netns {name}"))?;
            ip(&format!("-n {hub} link set v{who} master hub up"))?;
            ip(&format!("-n {name} addr add {host}/24 dev v"))?;
            ip(&format!("-n {name} link set v up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(())
    }

    fn name(&self, who: usize) -> String {
        format!("{}n{who}", self.prefix)
    }

    /// Names of the processes on one of the machines.
    pub fn processes(&self, who: usize) -> Vec<String> {
        let pids = Command::new("ip").args(["netns", "pids", &self.name(who)]).output().unwrap();
        let pids = String::from_utf8_lossy(&pids.stdout).into_owned();
        // Some have ended since.
        let names = pids.split_whitespace().map(|pid| format!("/proc/{pid}/comm"));
        names.filter_map(|comm| std::fs::read_to_string(comm).ok()).collect()
    }

    /// A program on one of the machines.
    pub fn on(&self, who: usize, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name(who), program])
            .args(args)
            .current_dir(self.place.path())
            .env("HOME", self.place.path())
            .env("KVMETER_STATE_DIR", self.place.file(&format!("state{who}")))
            .env_remove("KVMETER_AGENT_TOKEN")
            .stdin(Stdio::null());
        command
    }

    /// Ends everything that runs on a machine, as if its power were cut.
    pub fn kill_all(&self, who: usize) {
        let script = format!("ip netns pids {} | xargs -r kill -9", self.name(who));
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }

    /// Cuts a machine off: what is sent to it is lost without an error.
    pub fn cut(&self, who: usize) {
        ip(&format!("-n {} link set v{who} down", self.name(2))).unwrap();
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for who in 0..3 {
            let _ = ip(&format!("netns del {}", self.name(who)));
        }
    }
}

/// A process that is ended with the test, and what it says.
pub struct Process {
    pub child: Child,
    lines: Receiver<String>,
}

impl Process {
    pub fn of(command: &mut Command) -> Process {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stderr.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, lines }
    }

    /// The line that holds these words; fails if it does not come.
    pub fn until(&self, words: &str) -> String {
        let limit = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("`{words}` never came after {seen:#?}"),
            }
        }
    }

    /// `ip netns exec` has become the program itself.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
