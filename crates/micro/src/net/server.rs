//! The server's end: waits for a client, then serves its cells.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::Address;
use socket2::{SockAddr, Socket};

use super::acceptor::{Acceptor, Arrival};
use super::client::{ip_addresses, no_port, raise_descriptor_limit};
use super::clock::boot_id;
use super::control::{Control, Hello, Ready, ToClient, ToServer, read_hello};
use super::error::NetError;
use super::ether::{NoPort, Port};
use super::job::{Kind, NetJob, ServerLimits, Transport};
use super::listener::Listener;
use super::outcome::{EndMeter, EndOutcome};
use super::sockets::{datagram, prepare};
use super::workers::{EndPhase, ThreadPart, run};
use super::{flow, frames, pingpong};

/// For answers that the other end gives without work.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may be idle between two cells.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long after a phase its end may be announced.
const END_GRACE: Duration = Duration::from_secs(60);
/// Longest phase.
const MAX_PHASE: Duration = Duration::from_secs(24 * 3600);
/// Between two checks for a connection and of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The refusal of a second client.
const BUSY: &str = "it serves another client; try again when that is done";

/// A server of both benchmarks.
pub struct Server<'a, P: Port = NoPort> {
    port: Option<P>,
    /// Its threads are pinned to these in turn; none are where it is empty.
    cpus: Vec<u32>,
    limits: ServerLimits,
    stop: &'a AtomicBool,
}

enum ServerConnections<'l, P> {
    Sockets(Vec<Socket>),
    Port(&'l mut P),
}

impl<'a, P: Port> Server<'a, P> {
    pub fn new(port: Option<P>, cpus: Vec<u32>, stop: &'a AtomicBool) -> Self {
        Server { port, cpus, limits: ServerLimits::DEFAULT, stop }
    }

    /// Sets other limits than the default.
    pub fn with_limits(self, limits: ServerLimits) -> Self {
        Server { limits, ..self }
    }

    /// Serves one client after the other until it is stopped, or, with `alone_for`, until no client
    /// has connected for so long or the first one has ended. Calls `say` with the error of every
    /// failed session.
    ///
    /// # Errors
    /// A thread or a socket of its own failed; failed sessions go to `say`.
    pub fn serve(
        &mut self,
        listener: &Listener,
        alone_for: Option<Duration>,
        meter: &mut dyn EndMeter,
        say: &mut dyn FnMut(&NetError),
    ) -> Result<(), NetError> {
        raise_descriptor_limit();
        let waiting = WaitingClients {
            acceptor: RefCell::new(Acceptor::new(listener)),
            next: RefCell::default(),
        };
        let mut until = alone_for.map(|alone| Instant::now() + alone);
        loop {
            if self.stop.load(Ordering::Relaxed)
                || until.is_some_and(|until| Instant::now() >= until)
            {
                return Ok(());
            }
            let Some(socket) = waiting.client(say) else {
                thread::sleep(POLL_INTERVAL);
                continue;
            };
            match self.session(socket, Some(&waiting), meter) {
                Ok(()) => {}
                Err(NetError::Stopped) if self.stop.load(Ordering::Relaxed) => return Ok(()),
                Err(error) => say(&error),
            }
            if alone_for.is_some() {
                return Ok(());
            }
            until = None;
        }
    }

    /// Serves the client at the other end of a pair of sockets; cells go over the port.
    ///
    /// # Errors
    /// The session failed.
    pub fn serve_pair(
        &mut self,
        socket: UnixStream,
        meter: &mut dyn EndMeter,
    ) -> Result<(), NetError> {
        let socket = Socket::from(OwnedFd::from(socket));
        read_hello(&socket, RESPONSE_TIMEOUT)?;
        self.session(socket, None, meter)
    }

    fn session(
        &mut self,
        socket: Socket,
        waiting: Option<&WaitingClients<'_>>,
        meter: &mut dyn EndMeter,
    ) -> Result<(), NetError> {
        let mut control = Control::new(socket)?;
        control.send(&ToClient::WELCOME)?;
        let outcome = self.cells(&mut control, waiting, meter);
        if let Err(error) = &outcome {
            let words = match error {
                NetError::Stopped => "it was stopped".to_owned(),
                error => error.to_string(),
            };
            // A client that has ended cannot be told.
            let _ = control.send(&ToClient::Failed { words, request: error.is_request() });
        }
        outcome
    }

    /// Receives the client's next request. Other clients that connect meanwhile are refused, or
    /// replace this one when it has been idle for a while.
    fn receive_job(
        &self,
        control: &mut Control,
        waiting: Option<&WaitingClients<'_>>,
    ) -> Result<ToServer, NetError> {
        let (stop, since) = (self.stop, Instant::now());
        let goes_on = || match (stop.load(Ordering::Relaxed), waiting) {
            (true, _) => Err(NetError::Stopped),
            (false, Some(waiting)) => waiting.turn_away(since.elapsed() > RESPONSE_TIMEOUT),
            (false, None) => Ok(()),
        };
        control.receive("word", IDLE_TIMEOUT, &goes_on)
    }

    fn cells(
        &mut self,
        control: &mut Control,
        waiting: Option<&WaitingClients<'_>>,
        meter: &mut dyn EndMeter,
    ) -> Result<(), NetError> {
        let mut message = self.receive_job(control, waiting);
        loop {
            let (job, client) = match message {
                Ok(ToServer::Job { job, boot_id }) => (job, boot_id),
                Ok(ToServer::Bye) | Err(NetError::Closed { .. }) => return Ok(()),
                Ok(other) => return Err(NetError::Protocol(format!("{other:?}"))),
                Err(error) => return Err(error),
            };
            job.check()?;
            self.limits.check(&job)?;
            let shared_clock = client.is_some() && client == boot_id();
            message = self.cell(&job, shared_clock, control, waiting, meter);
        }
    }

    /// Serves one cell; returns the first message that is not of it.
    fn cell(
        &mut self,
        job: &NetJob,
        shared_clock: bool,
        control: &mut Control,
        waiting: Option<&WaitingClients<'_>>,
        meter: &mut dyn EndMeter,
    ) -> Result<ToServer, NetError> {
        let (stop, cpus) = (self.stop, self.cpus.clone());
        let mut port = self.port.take();
        let links = open(job, control, waiting, port.as_mut(), stop);
        let outcome = links.and_then(|mut links| {
            loop {
                let (number, most_s) = match self.receive_job(control, waiting)? {
                    ToServer::Phase { number, most_s } => (number, most_s),
                    other => return Ok(other),
                };
                let phase = EndPhase::new(stop, number);
                let most = Duration::try_from_secs_f64(most_s).unwrap_or_default();
                let limit = most.min(MAX_PHASE) + END_GRACE;
                let threads = match links {
                    ServerConnections::Sockets(_) => job.threads(),
                    ServerConnections::Port(_) => 1,
                };
                let until_end = || {
                    phase.await_set_up(threads)?;
                    control.send(&ToClient::Going)?;
                    let message =
                        control.receive("end of the phase", limit, &|| phase.check_running())?;
                    let ToServer::End(sent) = message else {
                        return Err(NetError::Protocol(
                            "the end of a phase was expected".to_owned(),
                        ));
                    };
                    // Set once.
                    let _ = phase.sent.set(sent);
                    Ok(())
                };
                let end = work(job, shared_clock, &phase, &mut links, &cpus, meter, until_end)?;
                control.send(&ToClient::Report(Box::new(end)))?;
            }
        });
        self.port = port;
        outcome
    }
}

/// One phase on the server's threads; `until_end` returns when the client has sent all.
fn work<P: Port>(
    job: &NetJob,
    shared_clock: bool,
    phase: &EndPhase<'_>,
    links: &mut ServerConnections<'_, P>,
    cpus: &[u32],
    meter: &mut dyn EndMeter,
    until_end: impl FnOnce() -> Result<(), NetError>,
) -> Result<EndOutcome, NetError> {
    match links {
        ServerConnections::Sockets(sockets) => {
            let work = |thread: u32| {
                let share: Vec<(usize, &Socket)> =
                    job.share(thread).map(|at| (at, &sockets[at])).collect();
                move || -> Result<ThreadPart, NetError> {
                    match job.kind {
                        Kind::Pingpong => pingpong::run_server(job, phase, share),
                        Kind::Flow => flow::receive_all(job, phase, share, shared_clock),
                    }
                }
            };
            let works = (0..job.threads()).map(work).collect();
            run(works, cpus, phase, meter, until_end)
        }
        ServerConnections::Port(port) => {
            let work = || match job.kind {
                Kind::Pingpong => frames::run_server(job, phase, *port),
                Kind::Flow => frames::receive_all(job, phase, *port, shared_clock),
            };
            run(vec![work], cpus, phase, meter, until_end)
        }
    }
}

/// Opens the data connections, and tells the client how to connect.
fn open<'l, P: Port>(
    job: &NetJob,
    control: &mut Control,
    waiting: Option<&WaitingClients<'_>>,
    port: Option<&'l mut P>,
    stop: &AtomicBool,
) -> Result<ServerConnections<'l, P>, NetError> {
    let mut ready = Ready { boot_id: boot_id(), ..Ready::default() };
    match job.transport {
        Transport::Tcp | Transport::Unix => {
            let wanted_unix = job.transport == Transport::Unix;
            let given = waiting.filter(|waiting| waiting.is_unix() == wanted_unix);
            if let Some(waiting) = given {
                if let (true, Address::Unix(path)) = (wanted_unix, waiting.address()) {
                    ready.unix = Some(path);
                }
                control.send(&ToClient::Ready(ready))?;
                return accept_all(job, &mut waiting.acceptor.borrow_mut(), stop)
                    .map(ServerConnections::Sockets);
            }
            if waiting.is_none() {
                return Err(no_port());
            }
            if !wanted_unix {
                return Err(NetError::Refused(
                    "it listens on a unix socket alone; let it listen on HOST:PORT for TCP"
                        .to_owned(),
                ));
            }
            let own = Listener::bind(&Address::Unix(socket_file()))?;
            if let Address::Unix(path) = own.address() {
                ready.unix = Some(path.clone());
            }
            control.send(&ToClient::Ready(ready))?;
            accept_all(job, &mut Acceptor::new(&own), stop).map(ServerConnections::Sockets)
        }
        Transport::Udp => {
            let (ip, peer) = ip_addresses(control.socket());
            let mut sockets = Vec::new();
            for _ in 0..job.connections {
                let (socket, port) = datagram(ip, job)?;
                ready.udp.push(port);
                sockets.push(socket);
            }
            control.send(&ToClient::Ready(ready))?;
            let goes_on =
                || if stop.load(Ordering::Relaxed) { Err(NetError::Stopped) } else { Ok(()) };
            let ToServer::Ports(ports) = control.receive("ports", RESPONSE_TIMEOUT, &goes_on)?
            else {
                return Err(NetError::Protocol("the client's ports were expected".to_owned()));
            };
            for (socket, port) in sockets.iter().zip(ports) {
                let place = SockAddr::from(SocketAddr::new(peer, port));
                socket.connect(&place).map_err(NetError::io("connecting a UDP socket"))?;
            }
            Ok(ServerConnections::Sockets(sockets))
        }
        Transport::Ethernet => {
            let port = port.ok_or_else(no_port)?;
            frames::check(job, port)?;
            ready.mac = Some(port.address());
            ready.longest_frame = port.max_frame_len();
            control.send(&ToClient::Ready(ready))?;
            Ok(ServerConnections::Port(port))
        }
    }
}

/// Clients that wait for their turn.
struct WaitingClients<'l> {
    acceptor: RefCell<Acceptor<'l>>,
    /// The client that replaces an idle one.
    next: RefCell<Option<Socket>>,
}

impl WaitingClients<'_> {
    fn address(&self) -> Address {
        self.acceptor.borrow().address().clone()
    }

    fn is_unix(&self) -> bool {
        matches!(self.address(), Address::Unix(_))
    }

    /// The next client, if there is one. Others that connect with it are refused.
    fn client(&self, say: &mut dyn FnMut(&NetError)) -> Option<Socket> {
        let mut client = self.next.take();
        for arrival in self.acceptor.borrow_mut().poll() {
            match arrival {
                Arrival::Identified(socket, Hello::Control { .. }) if client.is_none() => {
                    client = Some(socket);
                }
                Arrival::Identified(socket, Hello::Control { .. }) => turn_away(socket),
                // A data connection of a client that has ended.
                Arrival::Identified(_, Hello::Data { .. }) => {}
                Arrival::Rejected(error) => say(&error),
            }
        }
        client
    }

    /// Refuses other clients while one is served; an idle one is replaced instead.
    fn turn_away(&self, idle: bool) -> Result<(), NetError> {
        let Some(other) = self.client(&mut |_| {}) else { return Ok(()) };
        if idle {
            self.next.replace(Some(other));
            return Err(NetError::Refused(format!(
                "another client came, and this one had sent no request for {} s",
                RESPONSE_TIMEOUT.as_secs()
            )));
        }
        turn_away(other);
        Ok(())
    }
}

fn turn_away(socket: Socket) {
    // The other end may be gone.
    let _ = Control::new(socket).and_then(|mut other| {
        other.send(&ToClient::Failed { words: BUSY.to_owned(), request: false })
    });
}

/// A unique path for a unix socket.
fn socket_file() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("kvmeter-micro-{}-{count}.sock", std::process::id()))
}

/// The cell's connections, in the order of their numbers.
fn accept_all(
    job: &NetJob,
    acceptor: &mut Acceptor<'_>,
    stop: &AtomicBool,
) -> Result<Vec<Socket>, NetError> {
    let mut sockets: Vec<Option<Socket>> = (0..job.connections).map(|_| None).collect();
    let mut missing = sockets.len();
    let until =
        Instant::now() + RESPONSE_TIMEOUT + Duration::from_millis(u64::from(job.connections));
    while missing > 0 {
        if stop.load(Ordering::Relaxed) {
            return Err(NetError::Stopped);
        }
        if Instant::now() > until {
            let seconds = RESPONSE_TIMEOUT.as_secs_f64();
            let silent = NetError::Timeout { what: "data connection", seconds };
            return Err(acceptor.accept_error().unwrap_or(silent));
        }
        let arrivals = acceptor.poll();
        if arrivals.is_empty() {
            thread::sleep(POLL_INTERVAL);
        }
        for arrival in arrivals {
            match arrival {
                Arrival::Identified(socket, Hello::Data { number }) => {
                    prepare(&socket, job)?;
                    if let Some(slot @ None) = sockets.get_mut(number as usize) {
                        *slot = Some(socket);
                        missing -= 1;
                    }
                }
                Arrival::Identified(socket, Hello::Control { .. }) => turn_away(socket),
                // Connections that are dropped.
                Arrival::Rejected(_) => {}
            }
        }
    }
    Ok(sockets.into_iter().flatten().collect())
}
