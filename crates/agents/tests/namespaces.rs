//! Two agents and a coordinator as real processes, each in a network namespace of its own.
//!
//! This executable plays the agents and the coordinator too: started with `ROLE` set, the test
//! `a_process` is one of them. Needs root, `ip` and network namespaces; says so where it is skipped.
// Failing is what unwraps are for here.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use agents::{AgentError, AgentGroup, serve};
use common::*;
use model::Address;

const ROLE: &str = "KVMETER_TEST_ROLE";
const ASSIGNMENT: &str = "KVMETER_TEST_ASSIGNMENT";
const PORT: u16 = agents::DEFAULT_PORT;
const AGENT_HOSTS: [&str; 2] = ["192.0.2.1", "192.0.2.5"];
/// Work that nobody waits for.
const ENDLESS: &str = "run=600000 operations=5";

#[test]
fn a_process() {
    // The harness has begun a line.
    println!();
    match std::env::var(ROLE).as_deref() {
        Ok("agent") => {
            let any = Address::Tcp { host: "0.0.0.0".to_owned(), port: PORT };
            let say = |event| println!("event: {event}");
            let work = Arc::new(FakeTask::default());
            serve(&any, &by_token(TOKEN), work, options(), say, &no_stop()).unwrap();
        }
        Ok("coordinator") => match coordinate() {
            Ok(sizes) => println!("outcomes: {sizes:?}"),
            Err(error) => println!("error: {error}"),
        },
        _ => {}
    }
}

fn coordinate() -> Result<Vec<usize>, AgentError> {
    let addresses = AGENT_HOSTS.map(|host| Address::Tcp { host: host.to_owned(), port: PORT });
    let mut group = AgentGroup::connect(&addresses, &by_token(TOKEN), options(), LIMIT)?;
    let assignment = std::env::var(ASSIGNMENT).unwrap();
    prepare(&mut group, &[assignment.as_str(); 2])?;
    let started = group.start(Duration::ZERO, &no_stop())?;
    println!("bound: {} ns", started.bound.as_nanos());
    let mut told = false;
    let mut progress = |all: &agents::TaskProgress, _: &[_]| {
        if all.operations == 10 && !told {
            told = true;
            println!("both at work");
        }
    };
    let outcomes = group.run(Duration::from_secs(60), &mut progress, &no_stop())?;
    Ok(outcomes.iter().map(Vec::len).collect())
}

fn ip(words: &str) -> Result<(), String> {
    let done = Command::new("ip").args(words.split(' ')).output().map_err(|e| e.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// A namespace for the coordinator with a line to each of the agents' namespaces.
struct Net {
    prefix: String,
}

impl Net {
    /// None, loudly, where there can be none.
    fn new() -> Option<Net> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let net = Net { prefix: format!("kvm{}x{count}", std::process::id()) };
        match net.set_up() {
            Ok(()) => Some(net),
            Err(why) => {
                eprintln!("SKIPPED: no network namespaces here: {why}");
                None
            }
        }
    }

    fn name(&self, who: usize) -> String {
        format!("{}n{who}", self.prefix)
    }

    fn set_up(&self) -> Result<(), String> {
        let hub = self.name(2);
        for who in 0..3 {
            ip(&format!("netns add {}", self.name(who)))?;
        }
        for (who, host) in AGENT_HOSTS.iter().enumerate() {
            let name = self.name(who);
            ip(&format!("-n {hub} link add v{who} type veth peer name v netns {name}"))?;
            ip(&format!("-n {name} addr add {host}/30 dev v"))?;
            ip(&format!("-n {hub} addr add 192.0.2.{}/30 dev v{who}", 4 * who + 2))?;
            ip(&format!("-n {name} link set v up"))?;
            ip(&format!("-n {hub} link set v{who} up"))?;
        }
        Ok(())
    }

    fn cut(&self, who: usize) {
        ip(&format!("-n {} link set v{who} down", self.name(2))).unwrap();
    }

    fn mend(&self, who: usize) {
        ip(&format!("-n {} link set v{who} up", self.name(2))).unwrap();
    }

    fn agents(&self) -> [Process; 2] {
        [0, 1].map(|who| {
            let agent = Process::new(&self.name(who), "agent", "");
            agent.until("event: listening on 0.0.0.0:9377");
            agent
        })
    }

    fn coordinator(&self, assignment: &str) -> Process {
        Process::new(&self.name(2), "coordinator", assignment)
    }

    /// A coordinator whose agents are both at work.
    fn coordinator_at_work(&self) -> Process {
        let coordinator = self.coordinator(ENDLESS);
        coordinator.until("both at work");
        coordinator
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for who in 0..3 {
            let _ = ip(&format!("netns del {}", self.name(who)));
        }
    }
}

/// This executable in a namespace, playing a role.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn new(namespace: &str, role: &str, assignment: &str) -> Process {
        let mut child = Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(std::env::current_exe().unwrap())
            .args(["a_process", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(ASSIGNMENT, assignment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, lines }
    }

    /// The line that holds these words; fails if it does not come.
    fn until(&self, words: &str) -> String {
        let until = Instant::now() + LIMIT;
        let mut seen = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("`{words}` never came after {seen:#?}"),
            }
        }
    }

    /// `kill -9`. `ip netns exec` has become the program itself.
    fn kill(&mut self) {
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

#[test]
fn two_machines_work_for_a_third() {
    let Some(net) = Net::new() else { return };
    let agents = net.agents();
    for _ in 0..2 {
        let coordinator = net.coordinator("run=200 operations=5 size=5000000");
        coordinator.until("bound: ");
        coordinator.until("both at work");
        assert_eq!(coordinator.until("outcomes: "), "outcomes: [5000008, 5000008]");
        for agent in &agents {
            let taken = agent.until("event: taken by ");
            assert!(taken.contains(" (192.0.2."), "{taken}");
            agent.until("event: waiting for a coordinator");
        }
    }
}

#[test]
fn a_killed_agent_is_named_and_the_other_goes_back_to_waiting() {
    let Some(net) = Net::new() else { return };
    let [first, mut second] = net.agents();
    let coordinator = net.coordinator_at_work();
    second.kill();
    let error = coordinator.until("error: ");
    assert!(error.starts_with("error: agent 192.0.2.5:9377 was lost: "), "{error}");
    first.until("event: stopped");
    first.until("event: waiting for a coordinator");
}

#[test]
fn a_cut_line_is_noticed_by_both_ends() {
    let Some(net) = Net::new() else { return };
    let [first, second] = net.agents();
    let coordinator = net.coordinator_at_work();
    net.cut(0);
    let error = coordinator.until("error: ");
    let silence = "no sign of life for 1.5 s";
    assert_eq!(error, format!("error: agent 192.0.2.1:9377 was lost: {silence}"));
    // The one that is cut off ends its work by itself.
    assert!(first.until(" is gone: ").ends_with(silence));
    first.until("event: waiting for a coordinator");
    second.until("event: stopped");
    second.until("event: waiting for a coordinator");
    net.mend(0);
    let coordinator = net.coordinator("run=1 operations=5 size=1");
    assert_eq!(coordinator.until("outcomes: "), "outcomes: [9, 9]");
}

#[test]
fn agents_of_a_killed_coordinator_go_back_to_waiting() {
    let Some(net) = Net::new() else { return };
    let agents = net.agents();
    let mut coordinator = net.coordinator_at_work();
    let other = net.coordinator(ENDLESS);
    let busy = other.until("error: ");
    assert!(busy.starts_with("error: agent 192.0.2.1:9377 is busy: "), "{busy}");
    assert!(busy.contains(" (192.0.2.2:") && busy.contains(" has used it since "), "{busy}");
    coordinator.kill();
    for agent in &agents {
        agent.until(" is gone: the connection broke");
        agent.until("event: waiting for a coordinator");
    }
    let coordinator = net.coordinator("run=1 operations=5 size=1");
    assert_eq!(coordinator.until("outcomes: "), "outcomes: [9, 9]");
}

#[test]
fn an_agent_behind_a_cut_line_cannot_be_reached_for_long() {
    let Some(net) = Net::new() else { return };
    let _agents = net.agents();
    net.cut(1);
    let error = net.coordinator(ENDLESS).until("error: ");
    assert!(error.starts_with("error: agent 192.0.2.5:9377 cannot be reached: "), "{error}");
}
