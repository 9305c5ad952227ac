//! A scripted task, and agents in threads.
// Not every test uses all of it; failing is what unwraps are for here.
#![allow(dead_code, clippy::unwrap_used)]
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use agents::{
    AgentError, AgentGroup, AgentLogEvent, AgentTask, Credentials, HeartbeatTiming, PeerOptions,
    PreparedTask, TaskProgress, TlsFiles, Token, serve,
};
use model::Address;
use tempfile::TempDir;

/// Upper bound on any wait; only a hang exceeds it.
pub const LIMIT: Duration = Duration::from_secs(20);
pub const TOKEN: &str = "an-example-of-a-token";
pub const OTHER_TOKEN: &str = "an-example-of-another";

/// Zero of the instants that payloads tell.
pub static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);

pub fn options() -> PeerOptions {
    PeerOptions {
        about: b"{\"cpus\":2}".to_vec(),
        timing: HeartbeatTiming {
            beat: Duration::from_millis(100),
            silence: Duration::from_millis(1500),
            greeting: Duration::from_millis(1500),
            wind_down: Duration::from_secs(2),
        },
        ..PeerOptions::default()
    }
}

/// Assignments are words `name=number`:
/// `refuse`, `fail`, `panic` what the name says; `slow` ms to prepare; `run` ms of work;
/// `operations`, `p99` told as progress; `size` bytes of `fill` as the outcome after 8 bytes of
/// the first instant in ns since [`ZERO`]; `deaf` ms of not minding the stop.
#[derive(Default)]
pub struct FakeTask {
    /// How many assignments began to run.
    pub ran: Arc<std::sync::atomic::AtomicUsize>,
}

struct Task {
    words: Vec<(String, u64)>,
    ran: Arc<std::sync::atomic::AtomicUsize>,
}

impl Task {
    fn get(&self, name: &str) -> Option<u64> {
        self.words.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }

    fn wait(&self, name: &str, stop: &AtomicBool) {
        let until = Instant::now() + Duration::from_millis(self.get(name).unwrap_or(0));
        while Instant::now() < until && (name == "deaf" || !stop.load(Ordering::Relaxed)) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl AgentTask for FakeTask {
    fn prepare(
        &self,
        text: &[u8],
        stop: &Arc<AtomicBool>,
    ) -> Result<Box<dyn PreparedTask>, String> {
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        let words = text.split_whitespace().map(|word| match word.split_once('=') {
            Some((name, number)) => match number.parse() {
                Ok(number) => Ok((name.to_owned(), number)),
                Err(_) => Err(format!("`{word}` has no number")),
            },
            None => Err(format!("`{word}` has no `=`")),
        });
        let task = Task { words: words.collect::<Result<_, _>>()?, ran: self.ran.clone() };
        task.wait("slow", stop);
        match task.get("refuse") {
            Some(_) => Err("no server at 10.0.0.1:11211".to_owned()),
            None => Ok(Box::new(task)),
        }
    }
}

impl PreparedTask for Task {
    fn run(
        self: Box<Self>,
        begin: Instant,
        progress: &mut dyn FnMut(TaskProgress),
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<u8>, String> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        while Instant::now() < begin && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        if self.get("panic").is_some() {
            panic!("as it was told");
        }
        progress(TaskProgress {
            stage: "measure".to_owned(),
            operations: self.get("operations").unwrap_or(0),
            elapsed_s: 1.5,
            done: Some(0.25),
            live_ops_s: 1000.0,
            live_p99_ns: self.get("p99").unwrap_or(0),
            newest_interval: Arc::from(*b"newest"),
        });
        self.wait("run", stop);
        self.wait("deaf", stop);
        if self.get("fail").is_some() {
            return Err("the server closed the connection".to_owned());
        }
        let mut outcome =
            (begin.saturating_duration_since(*ZERO).as_nanos() as u64).to_le_bytes().to_vec();
        let fill = self.get("fill").unwrap_or(0) as u8;
        outcome.resize(8 + self.get("size").unwrap_or(0) as usize, fill);
        Ok(outcome)
    }
}

pub fn local(port: u16) -> Address {
    Address::Tcp { host: "127.0.0.1".to_owned(), port }
}

/// An agent in a thread of its own.
pub struct Agent {
    pub address: Address,
    pub events: Receiver<AgentLogEvent>,
    pub ran: Arc<std::sync::atomic::AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), AgentError>>>,
}

impl Agent {
    pub fn new(credentials: &Credentials) -> Agent {
        Agent::with(credentials, options())
    }

    pub fn with(credentials: &Credentials, options: PeerOptions) -> Agent {
        LazyLock::force(&ZERO);
        let (tell, events) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let fake = FakeTask::default();
        let ran = fake.ran.clone();
        let (stopping, credentials) = (stop.clone(), credentials.clone());
        let thread = thread::spawn(move || {
            let tell = move |event| _ = tell.send(event);
            serve(&local(0), &credentials, Arc::new(fake), options, tell, &stopping)
        });
        let Ok(AgentLogEvent::Listening { address, .. }) = events.recv_timeout(LIMIT) else {
            panic!("the agent does not listen: {:?}", thread.join());
        };
        Agent { address: local(address.port()), events, ran, stop, thread: Some(thread) }
    }

    /// The events up to the one that is looked for.
    pub fn until(&self, wanted: impl Fn(&AgentLogEvent) -> bool) -> Vec<AgentLogEvent> {
        let mut all = Vec::new();
        loop {
            match self.events.recv_timeout(LIMIT) {
                Ok(event) => all.push(event),
                Err(_) => panic!("it never came after {all:?}"),
            }
            if all.last().is_some_and(&wanted) {
                return all;
            }
        }
    }

    pub fn until_free(&self) -> Vec<AgentLogEvent> {
        self.until(|event| *event == AgentLogEvent::Waiting)
    }

    pub fn raise_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn end(mut self) -> Result<(), AgentError> {
        self.raise_stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.raise_stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// A file for its owner alone.
fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

pub fn token(text: &str) -> Token {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    write_secret(&path, text);
    Token::from_file(&path).unwrap()
}

pub fn by_token(text: &str) -> Credentials {
    Credentials::load(&TlsFiles::default(), Some(token(text))).unwrap()
}

pub fn connect(agents: &[&Agent], credentials: &Credentials) -> Result<AgentGroup, AgentError> {
    let addresses: Vec<Address> = agents.iter().map(|agent| agent.address.clone()).collect();
    AgentGroup::connect(&addresses, credentials, options(), LIMIT)
}

pub fn no_stop() -> AtomicBool {
    AtomicBool::new(false)
}

/// Prepares, starts and runs.
pub fn run_all(group: &mut AgentGroup, assignments: &[&str]) -> Result<Vec<Vec<u8>>, AgentError> {
    prepare(group, assignments)?;
    group.start(Duration::ZERO, &no_stop())?;
    group.run(LIMIT, &mut |_, _| {}, &no_stop())
}

pub fn prepare(group: &mut AgentGroup, assignments: &[&str]) -> Result<(), AgentError> {
    let assignments = assignments.iter().map(|text| text.as_bytes().to_vec()).collect();
    group.prepare(assignments, LIMIT, &no_stop())
}

/// An authority and the certificates that it signs, as files.
pub struct Authority {
    folder: TempDir,
    pem: PathBuf,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = folder.path().join("ca.pem");
        std::fs::write(&pem, params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { pem, folder, issuer: rcgen::Issuer::new(params, key) }
    }

    /// Files of a certificate for a host, good until the end of a year, that trust `trusted`.
    pub fn sign(&self, host: &str, last_year: i32, trusted: &Authority) -> TlsFiles {
        let mut params = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, host);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(last_year, 12, 31);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |what: &str, text: String| {
            let path = self.folder.path().join(format!("{host}-{last_year}-{what}.pem"));
            write_secret(&path, &text);
            Some(path)
        };
        TlsFiles {
            ca: Some(trusted.pem.clone()),
            cert: write("cert", certificate.pem()),
            key: write("key", key.serialize_pem()),
        }
    }
}
