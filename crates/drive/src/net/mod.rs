//! Load on servers: each thread owns its connections and multiplexes them.

mod cluster;
mod connection;
mod insert_tracker;
mod kernel_clock;
mod node_list;
mod operation;
mod schedule;
mod statistics;
mod worker;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Address, Expiry, Op};
use reactor::{ConnectError, EngineOptions, Reactor, Stream, Tls, TlsConfig};
use store::wire::{
    ClusterMap, HandshakeError, KeyList, Kind, ParsedResponse, Protocol, Redirect, Refusal,
    Request, Response, Ring, slot_of,
};
use store::{
    Capabilities, Remote, ReplicaReads, ServedData, Statistic, StoreError, Survives, TlsFiles,
};

use self::cluster::{Cluster, ReadMap, UnreadMap};

use crate::outcome::DriveError;
use crate::plan::{LoadPlan, PhaseKind};
use crate::recorder::Recorder;
use crate::replay_source::ReplaySource;
use crate::source::{LoadSource, MixSource};
use crate::target::Target;
use crate::thread_stats::ThreadStats;
use crate::worker_shared::WorkerShared;

/// Maximum length of an answer, as Redis's `proto-max-bulk-len`.
const LARGEST_ANSWER: usize = 512 << 20;

/// Upper bound on an answer about the marker, including pushes before it.
const MAX_MARKER_ANSWER: usize = 8 << 20;

/// The key of [`Network::mark`]: no workload writes a key of this form.
const MARKER_KEY: &[u8] = b"kvmeter:dataset";

/// Servers whose version and login were checked; any number of threads can use them.
#[derive(Debug)]
pub struct Network {
    remote: Remote,
    tls: Option<TlsConfig>,
    /// Which server a key belongs to; None where there is one.
    ring: Option<Ring>,
    cluster: Option<Arc<Cluster>>,
    /// The version that each server reports.
    versions: Vec<String>,
    may_evict: bool,
    survives: Option<Survives>,
    names: BTreeMap<Address, String>,
}

impl Network {
    /// Connects to every server once, to check reachability, login and kind of server.
    ///
    /// # Errors
    /// The first server that cannot be used and why, or invalid TLS files.
    pub fn connect(remote: Remote) -> Result<Network, StoreError> {
        let tls = remote.tls.as_ref().map(tls).transpose()?;
        let names: Vec<String> = remote.servers.iter().map(Address::to_string).collect();
        let cluster = match remote.cluster {
            Some(reads) => Some(Arc::new(Cluster::find(&remote, reads, read_map(&remote, &tls))?)),
            None => None,
        };
        let ring = (cluster.is_none() && names.len() > 1).then(|| Ring::new(&names));
        let (versions, may_evict, survives) = (Vec::new(), false, None);
        let names = BTreeMap::new();
        let mut network =
            Network { remote, tls, ring, cluster, versions, may_evict, survives, names };
        let mut all = Vec::new();
        for server in network.writers() {
            let (mut stream, version) = network.greet_for_control(server)?;
            network.versions.push(version);
            let server_statistics = network.request_statistics(server, &mut stream)?;
            network.may_evict |= statistics::evicts(&server_statistics);
            all.push(statistics::survives(&server_statistics));
        }
        // The least of all, if each says it.
        network.survives = all
            .into_iter()
            .reduce(|one, other| one.zip(other).map(|(one, other)| one.min(other)))
            .flatten();
        Ok(network)
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The statistics of each server, by the server's own names.
    pub fn server_statistics(&self) -> Result<Vec<Vec<(String, String)>>, StoreError> {
        self.writers()
            .into_iter()
            .map(|server| {
                let (mut stream, _) = self.greet_for_control(server)?;
                self.request_statistics(server, &mut stream)
            })
            .collect()
    }

    /// Deletes everything on every server.
    ///
    /// # Errors
    /// `Request` where the URL does not allow it.
    pub fn flush(&self) -> Result<(), StoreError> {
        if !self.remote.may_flush {
            return Err(StoreError::Request(format!(
                "emptying {} deletes all its data; allow it with `clear=flush`",
                self.names()
            )));
        }
        for server in self.writers() {
            let (mut stream, _) = self.greet_for_control(server)?;
            self.remote.protocol.flush(&mut stream).map_err(|error| self.failed(server, error))?;
        }
        Ok(())
    }

    /// The marker that all servers share; None where one lacks it or they differ.
    pub fn marker(&self) -> Result<Option<String>, StoreError> {
        let mut common: Option<String> = None;
        for server in self.markers() {
            let mut found = None;
            self.exchange(server, Kind::Get, (MARKER_KEY, &[]), |value| {
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

    /// Writes the dataset marker to every server, under a reserved key.
    pub fn mark(&self, marker: &str) -> Result<(), StoreError> {
        self.markers().into_iter().try_for_each(|server| {
            self.exchange(server, Kind::Set, (MARKER_KEY, marker.as_bytes()), |_| {})
        })
    }

    /// Deletes the marker.
    pub fn unmark(&self) -> Result<(), StoreError> {
        self.markers()
            .into_iter()
            .try_for_each(|server| self.exchange(server, Kind::Delete, (MARKER_KEY, &[]), |_| {}))
    }

    /// Whether the server responsible for a key has it.
    pub fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        let mut found = false;
        self.exchange(self.server_of(key), Kind::Get, (key, &[]), |_| found = true)?;
        Ok(found)
    }

    /// Sends one request about a key on its own connection.
    fn exchange(
        &self,
        server: usize,
        kind: Kind,
        (key, value): (&[u8], &[u8]),
        mut on_value: impl FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let (mut stream, _) = self.greet_for_control(server)?;
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
                .read(kind, &keys, 1, &bytes, |_, value| on_value(value))
                .map_err(|error| self.failed(server, error))?;
            match parsed {
                ParsedResponse::Whole { answer: Response::Refused { words, .. }, .. } => {
                    return Err(self.failed(server, words));
                }
                ParsedResponse::Whole { answer: Response::Redirected(redirect), .. } => {
                    let Redirect { slot, to, .. } = redirect;
                    return Err(StoreError::Request(format!(
                        "{}: a node of a cluster, in which {to} serves slot {slot}; add `cluster=on`",
                        self.address(server)
                    )));
                }
                ParsedResponse::Whole { .. } => return Ok(()),
                ParsedResponse::Incomplete { needs } if needs > MAX_MARKER_ANSWER => {
                    return Err(self.failed(server, "sent more than a dataset marker can hold"));
                }
                ParsedResponse::Incomplete { .. } => match stream.read(&mut chunk).map_err(io)? {
                    0 => return Err(self.failed(server, "closed the connection")),
                    read => bytes.extend_from_slice(&chunk[..read]),
                },
            }
        }
    }

    /// The servers, or all nodes that the cluster had at the beginning.
    pub fn nodes(&self) -> &[Address] {
        self.cluster.as_ref().map_or(&self.remote.servers, |cluster| cluster.nodes.found())
    }

    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.as_ref()
    }

    /// Servers that take writes: of a cluster the primaries.
    fn writers(&self) -> Vec<usize> {
        match &self.cluster {
            Some(cluster) => cluster.primaries(),
            None => (0..self.servers()).collect(),
        }
    }

    /// Servers that hold the marker.
    fn markers(&self) -> Vec<usize> {
        match &self.cluster {
            Some(_) => vec![self.server_of(MARKER_KEY)],
            None => (0..self.servers()).collect(),
        }
    }

    /// How many servers there are; a cluster's may grow.
    pub(crate) fn servers(&self) -> usize {
        self.cluster.as_ref().map_or(self.remote.servers.len(), |cluster| cluster.nodes.len())
    }

    /// The name of a server in results.
    pub fn name(&self, server: usize) -> String {
        let address = self.address(server);
        self.names.get(address).cloned().unwrap_or_else(|| address.to_string())
    }

    /// Names servers in results, whose addresses differ between runs.
    pub fn set_names(&mut self, names: BTreeMap<Address, String>) {
        self.names = names;
    }

    pub(crate) fn address(&self, server: usize) -> &Address {
        match &self.cluster {
            Some(cluster) => cluster.nodes.get(server),
            None => &self.remote.servers[server],
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.remote.protocol
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.remote.timeout
    }

    pub(crate) fn may_evict(&self) -> bool {
        self.may_evict
    }

    #[inline]
    pub(crate) fn server_of(&self, key: &[u8]) -> usize {
        match (&self.ring, &self.cluster) {
            (Some(ring), _) => ring.server_of(key),
            (None, Some(cluster)) => match cluster.routes().1.owners[usize::from(slot_of(key))] {
                ClusterMap::NOBODY => 0,
                owner => usize::from(owner),
            },
            (None, None) => 0,
        }
    }

    /// Whether a server that is lost gives its keys to the others.
    pub(crate) fn ejects(&self) -> bool {
        self.remote.eject && self.ring.is_some()
    }

    /// The server of a key while those that are `out` have none.
    #[cold]
    pub(crate) fn server_among(&self, key: &[u8], out: &[bool]) -> usize {
        self.ring.as_ref().map_or(0, |ring| ring.server_among(key, out))
    }

    /// The share of the keys that belongs to a server; None where they are not shared by hashing.
    pub(crate) fn share(&self, server: usize) -> Option<f64> {
        self.ring.as_ref().map(|ring| ring.share(server))
    }

    /// A connection of its own to a server, after the handshake, with the version of the server.
    ///
    /// # Errors
    /// A server that cannot be reached, or does not take the login.
    pub fn connection(&self, server: usize) -> Result<(Stream, String), StoreError> {
        self.greet(server)
    }

    /// A connection after the handshake; to a node of a cluster one that reads replicas where reads
    /// go there.
    pub(crate) fn open(&self, server: usize) -> Result<Stream, StoreError> {
        let (mut stream, _) = self.greet(server)?;
        if self.remote.cluster.is_some_and(|reads| reads != ReplicaReads::Never) {
            let mut exchange = DeadlineStream::new(&mut stream, self.remote.timeout);
            let done = self.remote.protocol.read_only(&mut exchange);
            done.map_err(|error| self.greeting_error(server, error))?;
        }
        Ok(stream)
    }

    pub(crate) fn reactor(&self, plan: &LoadPlan) -> Result<Reactor, DriveError> {
        let usual = EngineOptions::default();
        let engine = plan.connections.engine.unwrap_or(usual.engine);
        let timestamps = plan.shape.pacing.is_open();
        let options = EngineOptions { engine, timestamps, largest_answer: LARGEST_ANSWER };
        Reactor::new(options).map_err(internal)
    }

    fn greet(&self, server: usize) -> Result<(Stream, String), StoreError> {
        let address = self.address(server);
        let mut stream = Stream::connect(address, self.tls.as_ref(), self.remote.timeout)
            .map_err(connect_error)?;
        let mut exchange = DeadlineStream::new(&mut stream, self.remote.timeout);
        let greeting = self
            .remote
            .protocol
            .handshake(&mut exchange, &self.remote.login)
            .map_err(|error| self.greeting_error(server, error))?;
        Ok((stream, greeting.version))
    }

    /// A connection that carries no load.
    fn greet_for_control(&self, server: usize) -> Result<(Stream, String), StoreError> {
        let (mut stream, version) = self.greet(server)?;
        let mut exchange = DeadlineStream::new(&mut stream, self.remote.timeout);
        let marked = self.remote.protocol.control(&mut exchange);
        marked.map_err(|error| self.greeting_error(server, error))?;
        Ok((stream, version))
    }

    fn request_statistics(
        &self,
        server: usize,
        stream: &mut Stream,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut exchange = DeadlineStream::new(stream, self.remote.timeout);
        match self.remote.protocol.statistics(&mut exchange) {
            // A login without permission for statistics can still measure.
            Err(HandshakeError::Refused { why: Refusal::Auth, .. }) => Ok(Vec::new()),
            other => other.map_err(|error| self.greeting_error(server, error)),
        }
    }

    /// Errors that another URL would avoid are request errors, all others the server's.
    fn greeting_error(&self, server: usize, error: HandshakeError) -> StoreError {
        let mut words = format!("{}: {error}", self.address(server));
        if self.tls.is_none() && matches!(error, HandshakeError::Closed { .. }) {
            words.push_str("; a server that wants TLS needs `tls=on`");
        }
        if is_request(&error) { StoreError::Request(words) } else { StoreError::Failed(words) }
    }

    fn failed(&self, server: usize, error: impl std::fmt::Display) -> StoreError {
        StoreError::Failed(format!("{}: {error}", self.address(server)))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.remote.servers.iter().map(Address::to_string).collect();
        names.join(", ")
    }
}

/// Reads the map of a cluster from one of its nodes.
fn read_map(remote: &Remote, tls: &Option<TlsConfig>) -> ReadMap {
    let (remote, tls) = (remote.clone(), tls.clone());
    Box::new(move |address, limit| {
        let unread = |error: HandshakeError| {
            let is_refusal = is_request(&error);
            let words = format!("{address}: {error}");
            let error =
                if is_refusal { StoreError::Request(words) } else { StoreError::Failed(words) };
            UnreadMap { error, is_refusal }
        };
        let unreached = |error| UnreadMap { error: connect_error(error), is_refusal: false };
        let mut stream = Stream::connect(address, tls.as_ref(), limit).map_err(unreached)?;
        let mut exchange = DeadlineStream::new(&mut stream, limit);
        remote.protocol.handshake(&mut exchange, &remote.login).map_err(unread)?;
        let host = match address {
            Address::Tcp { host, .. } => host.as_str(),
            Address::Unix(_) => "127.0.0.1",
        };
        remote.protocol.cluster(&mut exchange, host, tls.is_some()).map_err(unread)
    })
}

/// Whether another URL would avoid the error.
fn is_request(error: &HandshakeError) -> bool {
    matches!(
        error,
        HandshakeError::WrongServer { .. }
            | HandshakeError::LoginRequired { .. }
            | HandshakeError::ProtectedMode
            | HandshakeError::LoginRefused { .. }
            | HandshakeError::LoginNotRequired { .. }
            | HandshakeError::IncompleteLogin { .. }
            | HandshakeError::NoDatabases(_)
            | HandshakeError::Refused { why: Refusal::Auth | Refusal::Other, .. }
    )
}

fn connect_error(error: ConnectError) -> StoreError {
    let words = error.to_string();
    match error {
        ConnectError::Tls { .. }
        | ConnectError::NoSuchHost { .. }
        | ConnectError::NoSuchSocket { .. } => StoreError::Request(words),
        _ => StoreError::Failed(words),
    }
}

/// A stream with a deadline for all reads together: a slow peer could keep each single read within
/// the stream's own timeout.
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

impl ServedData for Network {
    fn addresses(&self) -> &[Address] {
        self.nodes()
    }

    fn marker(&self) -> Result<Option<String>, StoreError> {
        Network::marker(self)
    }

    fn mark(&self, marker: &str) -> Result<(), StoreError> {
        Network::mark(self, marker)
    }

    fn unmark(&self) -> Result<(), StoreError> {
        Network::unmark(self)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Network::contains(self, key)
    }

    /// Without permission to empty the servers, loaded records replace those with the same keys.
    fn clear(&self) -> Result<(), StoreError> {
        if self.remote.may_flush { self.flush() } else { Network::unmark(self) }
    }
}

impl Target for Network {
    fn capabilities(&self) -> Capabilities {
        let Network { may_evict, survives, .. } = *self;
        Capabilities { scan: false, survives, stores_values: true, may_evict }
    }

    fn version(&self) -> String {
        let mut versions = self.versions.clone();
        versions.dedup();
        versions.join(", ")
    }

    fn options(&self) -> Vec<(String, String)> {
        self.remote.options.clone()
    }

    /// Servers do not report background work.
    fn settle(&self, _limit: Duration) -> Result<(), StoreError> {
        Ok(())
    }

    /// Sums over the servers; empty where one of them does not answer.
    fn statistics(&self) -> Vec<Statistic> {
        self.server_statistics()
            .map(|server_statistics| statistics::of(&server_statistics))
            .unwrap_or_default()
    }

    fn sees_arrivals(&self) -> bool {
        true
    }

    fn slots(&self, plan: &LoadPlan) -> usize {
        plan.threads * self.servers() * plan.connections.count * plan.connections.depth
    }

    fn run(
        self: Arc<Self>,
        shared: &WorkerShared,
        thread: usize,
        plan: &LoadPlan,
        recorder: Recorder,
    ) -> Result<ThreadStats, DriveError> {
        let workload = &shared.workload;
        if plan.phase == PhaseKind::Mix && workload.spec().mix.contains(Op::Scan) {
            let words = "servers cannot scan; leave scans out of the mix";
            return Err(StoreError::Request(words.to_owned()).into());
        }
        match plan.phase {
            PhaseKind::Load => {
                let source = LoadSource::new(workload);
                worker::NetworkWorker::new(&self, shared, thread, plan, source, recorder)?
                    .run(thread, plan)
            }
            PhaseKind::Mix => match &plan.trace {
                None => {
                    let source = MixSource::new(workload);
                    worker::NetworkWorker::new(&self, shared, thread, plan, source, recorder)?
                        .run(thread, plan)
                }
                Some(replay) => {
                    let feed = shared.feed(thread)?;
                    let source = ReplaySource::new(replay, feed, plan, &shared.clock);
                    worker::NetworkWorker::new(&self, shared, thread, plan, source, recorder)?
                        .run(thread, plan)
                }
            },
        }
    }
}
