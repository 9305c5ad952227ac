//! Asking servers: each thread owns its connections and looks after all of them at once.

mod demand;
mod inserts;
mod kernel_clock;
mod line;
mod operation;
mod statistics;
mod work;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use model::{Address, Expiry, Op};
use reactor::{ConnectError, EngineOptions, Reactor, Stream, Tls, TlsConfig};
use store::wire::{
    HandshakeError, KeyList, Kind, ParsedResponse, Protocol, Refusal, Request, Response, Ring,
};
use store::{Capabilities, Remote, Statistic, StoreError, TlsFiles};

use crate::asks::{LoadSource, MixSource};
use crate::outcome::DriveError;
use crate::plan::{LoadPlan, PhaseKind};
use crate::recorder::Recorder;
use crate::replay::ReplaySource;
use crate::target::{OpExecutor, Target};
use crate::worker::{ThreadStats, WorkerShared};

/// The longest answer that is taken: what Redis calls `proto-max-bulk-len`.
const LARGEST_ANSWER: usize = 512 << 20;

/// More than any answer about the note has, pushes before it included.
const LONGEST_NOTE: usize = 8 << 20;

/// The key of [`Network::mark`]: no workload writes a key of this form.
const NOTE_KEY: &[u8] = b"kvmeter:dataset";

/// Servers that have been talked to, ready to be asked by any number of threads.
#[derive(Debug)]
pub struct Network {
    remote: Remote,
    tls: Option<TlsConfig>,
    /// Which server a key belongs to; None where there is one.
    ring: Option<Ring>,
    /// What each server says that it is.
    versions: Vec<String>,
    forgets: bool,
}

impl Network {
    /// Connects to every server once, to see that it is there, lets us in and is what the URL
    /// says.
    ///
    /// # Errors
    /// What is wrong with the first server that cannot be used, or with the TLS files.
    pub fn connect(remote: Remote) -> Result<Network, StoreError> {
        let tls = remote.tls.as_ref().map(tls).transpose()?;
        let names: Vec<String> = remote.servers.iter().map(Address::to_string).collect();
        let ring = (names.len() > 1).then(|| Ring::new(&names));
        let mut network = Network { remote, tls, ring, versions: Vec::new(), forgets: false };
        for server in 0..network.servers() {
            let (mut stream, version) = network.greet(server)?;
            network.versions.push(version);
            let says = network.ask_statistics(server, &mut stream)?;
            network.forgets |= statistics::evicts(&says);
        }
        Ok(network)
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The servers' own statistics, by their own names, each server's apart.
    pub fn says(&self) -> Result<Vec<Vec<(String, String)>>, StoreError> {
        (0..self.servers())
            .map(|server| {
                let (mut stream, _) = self.greet(server)?;
                self.ask_statistics(server, &mut stream)
            })
            .collect()
    }

    /// Empties every server of all that it holds.
    ///
    /// # Errors
    /// `Request` where the URL does not allow it.
    pub fn flush(&self) -> Result<(), StoreError> {
        if !self.remote.may_flush {
            return Err(StoreError::Request(format!(
                "emptying {} deletes all that it holds; allow it with `clear=flush`",
                self.names()
            )));
        }
        for server in 0..self.servers() {
            let (mut stream, _) = self.greet(server)?;
            self.remote.protocol.flush(&mut stream).map_err(|error| self.failed(server, error))?;
        }
        Ok(())
    }

    /// What [`Network::mark`] left on every server; None where one of them has none, or another.
    pub fn marker(&self) -> Result<Option<String>, StoreError> {
        let mut common: Option<String> = None;
        for server in 0..self.servers() {
            let mut found = None;
            self.talk(server, Kind::Get, (NOTE_KEY, &[]), |value| {
                found = Some(String::from_utf8_lossy(value).into_owned());
            })?;
            match (found, &common) {
                (None, _) => return Ok(None),
                (Some(found), Some(common)) if found != *common => return Ok(None),
                (found, _) => common = found,
            }
        }
        Ok(common)
    }

    /// Leaves a note on every server, under a key of its own.
    pub fn mark(&self, note: &str) -> Result<(), StoreError> {
        (0..self.servers()).try_for_each(|server| {
            self.talk(server, Kind::Set, (NOTE_KEY, note.as_bytes()), |_| {})
        })
    }

    /// Takes the note away.
    pub fn unmark(&self) -> Result<(), StoreError> {
        (0..self.servers())
            .try_for_each(|server| self.talk(server, Kind::Delete, (NOTE_KEY, &[]), |_| {}))
    }

    /// Whether the server that a key belongs to has it.
    pub fn holds(&self, key: &[u8]) -> Result<bool, StoreError> {
        let mut found = false;
        self.talk(self.server_of(key), Kind::Get, (key, &[]), |_| found = true)?;
        Ok(found)
    }

    /// One request about a key, on a connection of its own.
    fn talk(
        &self,
        server: usize,
        kind: Kind,
        (key, value): (&[u8], &[u8]),
        mut seen: impl FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let mut stream = self.open(server)?;
        let mut stream = DeadlineStream::new(&mut stream, self.remote.timeout);
        let mut keys = KeyList::default();
        keys.push(key);
        let mut bytes = Vec::new();
        self.remote.protocol.write(
            &Request { kind, keys: &keys, value, expiry: Expiry::Never, tag: 1 },
            &mut bytes,
        );
        let io = |error: std::io::Error| self.failed(server, error);
        stream.write_all(&bytes).map_err(io)?;
        bytes.clear();
        let mut chunk = [0; 4096];
        loop {
            let parsed = self
                .remote
                .protocol
                .read(kind, &keys, 1, &bytes, |_, value| seen(value))
                .map_err(|error| self.failed(server, error))?;
            match parsed {
                ParsedResponse::Whole { answer: Response::Refused { words, .. }, .. } => {
                    return Err(self.failed(server, words));
                }
                ParsedResponse::Whole { .. } => return Ok(()),
                ParsedResponse::Incomplete { needs } if needs > LONGEST_NOTE => {
                    return Err(self.failed(server, "answers far more than a note"));
                }
                ParsedResponse::Incomplete { .. } => match stream.read(&mut chunk).map_err(io)? {
                    0 => return Err(self.failed(server, "closed the connection")),
                    read => bytes.extend_from_slice(&chunk[..read]),
                },
            }
        }
    }

    pub(crate) fn servers(&self) -> usize {
        self.remote.servers.len()
    }

    pub(crate) fn address(&self, server: usize) -> &Address {
        &self.remote.servers[server]
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.remote.protocol
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.remote.timeout
    }

    pub(crate) fn forgets(&self) -> bool {
        self.forgets
    }

    #[inline]
    pub(crate) fn server_of(&self, key: &[u8]) -> usize {
        self.ring.as_ref().map_or(0, |ring| ring.server_of(key))
    }

    /// A connection that has been let in.
    pub(crate) fn open(&self, server: usize) -> Result<Stream, StoreError> {
        self.greet(server).map(|(stream, _)| stream)
    }

    pub(crate) fn reactor(&self, plan: &LoadPlan) -> Result<Reactor, DriveError> {
        let usual = EngineOptions::default();
        let engine = plan.connections.engine.unwrap_or(usual.engine);
        let timestamps = plan.pacing.is_open();
        let options = EngineOptions { engine, timestamps, largest_answer: LARGEST_ANSWER };
        Reactor::new(options).map_err(internal)
    }

    fn greet(&self, server: usize) -> Result<(Stream, String), StoreError> {
        let address = self.address(server);
        let mut stream = Stream::connect(address, self.tls.as_ref(), self.remote.timeout)
            .map_err(unconnected)?;
        let mut talk = DeadlineStream::new(&mut stream, self.remote.timeout);
        let greeting = self
            .remote
            .protocol
            .handshake(&mut talk, &self.remote.login)
            .map_err(|error| self.ungreeted(server, error))?;
        Ok((stream, greeting.version))
    }

    fn ask_statistics(
        &self,
        server: usize,
        stream: &mut Stream,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut talk = DeadlineStream::new(stream, self.remote.timeout);
        match self.remote.protocol.statistics(&mut talk) {
            // A login that may not ask for them can still be measured.
            Err(HandshakeError::Refused { why: Refusal::Auth, .. }) => Ok(Vec::new()),
            other => other.map_err(|error| self.ungreeted(server, error)),
        }
    }

    /// What the URL can mend is the request's fault, all else the server's.
    fn ungreeted(&self, server: usize, error: HandshakeError) -> StoreError {
        let mut words = format!("{}: {error}", self.address(server));
        if self.tls.is_none() && matches!(error, HandshakeError::Closed { .. }) {
            words.push_str("; a server that wants TLS needs `tls=on`");
        }
        match error {
            HandshakeError::WrongServer { .. }
            | HandshakeError::LoginRequired { .. }
            | HandshakeError::ProtectedMode
            | HandshakeError::LoginRefused { .. }
            | HandshakeError::LoginNotRequired { .. }
            | HandshakeError::IncompleteLogin { .. }
            | HandshakeError::NoDatabases(_)
            | HandshakeError::Refused { why: Refusal::Auth | Refusal::Other, .. } => {
                StoreError::Request(words)
            }
            _ => StoreError::Failed(words),
        }
    }

    fn failed(&self, server: usize, error: impl std::fmt::Display) -> StoreError {
        StoreError::Failed(format!("{}: {error}", self.address(server)))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.remote.servers.iter().map(Address::to_string).collect();
        names.join(", ")
    }
}

fn unconnected(error: ConnectError) -> StoreError {
    let words = error.to_string();
    match error {
        ConnectError::Tls { .. }
        | ConnectError::NoSuchHost { .. }
        | ConnectError::NoSuchSocket { .. } => StoreError::Request(words),
        _ => StoreError::Failed(words),
    }
}

/// A talk that ends in time though the other side dribbles: the stream limits each read, this
/// all of them together.
struct DeadlineStream<'s> {
    stream: &'s mut Stream,
    begun: Instant,
    limit: Duration,
}

impl<'s> DeadlineStream<'s> {
    fn new(stream: &'s mut Stream, limit: Duration) -> Self {
        DeadlineStream { stream, begun: Instant::now(), limit }
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.begun.elapsed() < self.limit {
            true => self.stream.read(into),
            false => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.stream.write(from)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

fn tls(files: &TlsFiles) -> Result<TlsConfig, StoreError> {
    let TlsFiles { ca, cert, key, server_name, any_certificate } = files.clone();
    let tls = Tls { ca, cert, key, server_name, insecure: any_certificate };
    tls.load().map_err(|error| StoreError::Request(error.to_string()))
}

fn internal(error: impl std::fmt::Display) -> DriveError {
    DriveError::Internal(error.to_string())
}

impl Target for Network {
    fn capabilities(&self) -> Capabilities {
        Capabilities { scan: false, durable: false, stores_values: true, may_evict: self.forgets }
    }

    fn version(&self) -> String {
        let mut versions = self.versions.clone();
        versions.dedup();
        versions.join(", ")
    }

    fn options(&self) -> Vec<(String, String)> {
        self.remote.options.clone()
    }

    /// A server has no background work of which it tells.
    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        Ok(())
    }

    /// Summed over the servers; none where one of them does not answer.
    fn statistics(&self) -> Vec<Statistic> {
        self.says().map(|says| statistics::of(&says)).unwrap_or_default()
    }
}

impl OpExecutor for Network {
    const SEES_ARRIVALS: bool = true;

    fn slots(&self, plan: &LoadPlan) -> usize {
        plan.threads * self.servers() * plan.connections.count * plan.connections.depth
    }

    fn ask(
        shared: &WorkerShared<Self>,
        thread: usize,
        plan: &LoadPlan,
        recorder: Recorder,
    ) -> Result<ThreadStats, DriveError> {
        let workload = &shared.workload;
        if plan.what == PhaseKind::Mix && workload.spec().mix.contains(Op::Scan) {
            let words = "servers are asked by key; leave the scans of the mix away";
            return Err(StoreError::Request(words.to_owned()).into());
        }
        match plan.what {
            PhaseKind::Load => {
                let asks = LoadSource::new(workload);
                work::NetworkWorker::new(shared, thread, plan, asks, recorder)?.run(thread, plan)
            }
            PhaseKind::Mix => match &plan.trace {
                None => {
                    let asks = MixSource::new(workload);
                    work::NetworkWorker::new(shared, thread, plan, asks, recorder)?
                        .run(thread, plan)
                }
                Some(replay) => {
                    let feed = shared.feed(thread)?;
                    let asks = ReplaySource::new(replay, feed, plan, &shared.clock);
                    work::NetworkWorker::new(shared, thread, plan, asks, recorder)?
                        .run(thread, plan)
                }
            },
        }
    }
}
