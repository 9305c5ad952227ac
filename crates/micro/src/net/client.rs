//! The client's end: requests a cell, sends, and combines the reports of both ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::Address;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{SockAddr, Socket};

use super::clock::{boot_id, now_ns};
use super::control::{Control, Hello, Ready, ToClient, ToServer, send_hello};
use super::error::NetError;
use super::ether::{NoPort, Port};
use super::job::{Kind, NetJob, Transport};
use super::listener::connect;
use super::outcome::{EndMeter, EndOutcome, MeasuredCell, NoMeter};
use super::sockets::{datagram, prepare};
use super::workers::{EndPhase, SendUntil, ThreadPart, run};
use super::{flow, frames, pingpong};

/// For answers that the other end gives without work.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// For answers that take work: gigabytes to allocate and to drain.
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// Duration, length and CPUs of the measurement of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellConfig {
    /// A phase before the measured one, which does not count; zero for none.
    pub warm_up: Duration,
    /// Length of the measured phase: no message begins later.
    pub time: Duration,
    /// Messages of all connections together, where that ends the phase first.
    pub messages: Option<u64>,
    /// The client's threads are pinned to these in turn; none are where it is empty.
    pub cpus: Vec<u32>,
}

/// A session with a server.
pub struct Client<'a, P: Port = NoPort> {
    control: Control,
    /// None where a pair of sockets joins the ends.
    address: Option<Address>,
    port: Option<&'a mut P>,
    stop: &'a AtomicBool,
    /// Number of the next phase; unlikely to be that of another session.
    phase: u64,
}

/// The data connections of a cell.
enum CellConnections {
    Sockets(Vec<Socket>),
    Port([u8; 6], usize),
}

impl<'a, P: Port> Client<'a, P> {
    /// Connects to a server; `kind` is for the error that says how to start one.
    ///
    /// # Errors
    /// Nothing listens there, or it is not a server of `kvmeter micro`.
    pub fn connect(
        address: &Address,
        kind: Kind,
        limit: Duration,
        port: Option<&'a mut P>,
        stop: &'a AtomicBool,
    ) -> Result<Self, NetError> {
        let socket = connect(address, &kind.to_string(), limit)?;
        Client::handshake(socket, Some(address.clone()), port, stop)
    }

    /// A session over one end of a pair; cells go over the port.
    ///
    /// # Errors
    /// The other end does not answer.
    pub fn over(
        socket: UnixStream,
        port: &'a mut P,
        stop: &'a AtomicBool,
    ) -> Result<Self, NetError> {
        Client::handshake(OwnedFd::from(socket).into(), None, Some(port), stop)
    }

    /// Uses this port for cells over Ethernet.
    pub fn use_port(&mut self, port: &'a mut P) {
        self.port = Some(port);
    }

    fn handshake(
        socket: Socket,
        address: Option<Address>,
        port: Option<&'a mut P>,
        stop: &'a AtomicBool,
    ) -> Result<Self, NetError> {
        let mut client =
            Client { control: Control::new(socket)?, address, port, stop, phase: now_ns() };
        client.control.send(&Hello::CONTROL)?;
        let place = client.address.as_ref().map(Address::to_string).unwrap_or_default();
        match client.receive("greeting", RESPONSE_TIMEOUT) {
            Ok(ToClient::Welcome { .. }) => Ok(client),
            Ok(other) => Err(NetError::NotAServer { place, why: format!("it says {other:?}") }),
            Err(
                error
                @ (NetError::Protocol(_) | NetError::Timeout { .. } | NetError::Closed { .. }),
            ) => Err(NetError::NotAServer { place, why: error.to_string() }),
            Err(error) => Err(error),
        }
    }

    /// Measures a cell: warms up, then measures. After an error the session is of no use.
    ///
    /// # Errors
    /// The cell is invalid, an end failed or timed out, or the user stopped it.
    pub fn measure(
        &mut self,
        job: &NetJob,
        config: &CellConfig,
        meter: &mut dyn EndMeter,
    ) -> Result<MeasuredCell, NetError> {
        job.check()?;
        raise_descriptor_limit();
        self.control.send(&ToServer::Job { job: job.clone(), boot_id: boot_id() })?;
        let limit = RESPONSE_TIMEOUT + Duration::from_millis(u64::from(job.connections));
        let ToClient::Ready(ready) = self.receive("readiness", limit)? else {
            return Err(NetError::Protocol("readiness was expected".to_owned()));
        };
        let links = self.open(job, &ready)?;
        let mut numbers = vec![0; job.connections as usize];
        if !config.warm_up.is_zero() {
            let short = CellConfig { time: config.warm_up, messages: None, ..config.clone() };
            self.phase(job, &links, &mut numbers, &short, &mut NoMeter)?;
        }
        let (client, server) = self.phase(job, &links, &mut numbers, config, meter)?;
        Ok(MeasuredCell { job: job.clone(), client, server, notes: Vec::new() })
    }

    fn receive(&mut self, what: &'static str, limit: Duration) -> Result<ToClient, NetError> {
        let stop = self.stop;
        let goes_on = || match stop.load(Ordering::Relaxed) {
            true => Err(NetError::Stopped),
            false => Ok(()),
        };
        match self.control.receive(what, limit, &goes_on)? {
            ToClient::Failed { words, request } => Err(NetError::Remote { words, request }),
            other => Ok(other),
        }
    }

    fn open(&mut self, job: &NetJob, ready: &Ready) -> Result<CellConnections, NetError> {
        let count = job.connections;
        let links = match job.transport {
            Transport::Tcp | Transport::Unix => {
                let place = match (&ready.unix, &self.address) {
                    (Some(_), _) if ready.boot_id != boot_id() => {
                        return Err(NetError::Refused(
                            "unix sockets do not reach another machine; use TCP or UDP".to_owned(),
                        ));
                    }
                    (Some(path), _) => Address::Unix(path.clone()),
                    (None, Some(address)) => address.clone(),
                    (None, None) => {
                        return Err(NetError::Refused("this session has only a port".to_owned()));
                    }
                };
                let mut sockets = Vec::new();
                for number in 0..count {
                    let socket = connect(&place, &job.kind.to_string(), RESPONSE_TIMEOUT)?;
                    send_hello(&socket, &Hello::Data { number })?;
                    prepare(&socket, job)?;
                    sockets.push(socket);
                }
                CellConnections::Sockets(sockets)
            }
            Transport::Udp => {
                let (own, peer) = ip_addresses(self.control.socket());
                let (mut sockets, mut ports) = (Vec::new(), Vec::new());
                for port in &ready.udp {
                    let (socket, own) = datagram(own, job)?;
                    let place = SockAddr::from(SocketAddr::new(peer, *port));
                    socket.connect(&place).map_err(NetError::io("connecting a UDP socket"))?;
                    sockets.push(socket);
                    ports.push(own);
                }
                self.control.send(&ToServer::Ports(ports))?;
                CellConnections::Sockets(sockets)
            }
            Transport::Ethernet => match (ready.mac, &self.port) {
                (Some(mac), Some(_)) => CellConnections::Port(mac, ready.longest_frame),
                _ => return Err(no_port()),
            },
        };
        Ok(links)
    }

    fn phase(
        &mut self,
        job: &NetJob,
        links: &CellConnections,
        numbers: &mut [u64],
        config: &CellConfig,
        meter: &mut dyn EndMeter,
    ) -> Result<(EndOutcome, EndOutcome), NetError> {
        self.phase += 1;
        let most_s = config.time.as_secs_f64();
        self.control.send(&ToServer::Phase { number: self.phase, most_s })?;
        let ToClient::Going = self.receive("start", REPORT_TIMEOUT)? else {
            return Err(NetError::Protocol("a start was expected".to_owned()));
        };
        let phase = EndPhase::new(self.stop, self.phase);
        let share = |all: u64| all.div_ceil(u64::from(job.connections)).max(1);
        let until = SendUntil {
            instant_ns: now_ns().saturating_add(config.time.as_nanos() as u64),
            messages: config.messages.map_or(u64::MAX, share),
        };
        let outcome = match links {
            CellConnections::Sockets(sockets) => {
                on_sockets(job, &phase, sockets, numbers, until, &config.cpus, meter)
            }
            CellConnections::Port(mac, longest) => {
                let port = self.port.as_deref_mut().ok_or_else(no_port)?;
                let peer = (*mac, *longest);
                let work = || match job.kind {
                    Kind::Pingpong => frames::run_client(job, &phase, port, peer, numbers, until),
                    Kind::Flow => frames::send_all(job, &phase, port, peer, numbers, until),
                };
                run(vec![work], &config.cpus, &phase, meter, || Ok(()))
            }
        };
        let client = match outcome {
            Ok(end) => end,
            // The server may have sent the reason.
            Err(error) => match self.receive("reason", Duration::from_secs(1)) {
                Err(remote @ NetError::Remote { .. }) => return Err(remote),
                _ => return Err(error),
            },
        };
        let sent = match job.kind {
            Kind::Pingpong => vec![0; numbers.len()],
            Kind::Flow => numbers.to_vec(),
        };
        self.control.send(&ToServer::End(sent))?;
        let ToClient::Report(server) = self.receive("report", REPORT_TIMEOUT)? else {
            return Err(NetError::Protocol("a report was expected".to_owned()));
        };
        Ok((client, *server))
    }
}

impl<P: Port> Drop for Client<'_, P> {
    fn drop(&mut self) {
        // The server also notices the end of the connection.
        let _ = self.control.send(&ToServer::Bye);
    }
}

fn on_sockets(
    job: &NetJob,
    phase: &EndPhase<'_>,
    sockets: &[Socket],
    numbers: &mut [u64],
    until: SendUntil,
    cpus: &[u32],
    meter: &mut dyn EndMeter,
) -> Result<EndOutcome, NetError> {
    let mut shares: Vec<Vec<(usize, &Socket, &mut u64)>> =
        (0..job.threads()).map(|_| Vec::new()).collect();
    for ((at, socket), number) in sockets.iter().enumerate().zip(numbers) {
        let thread = at % shares.len();
        shares[thread].push((at, socket, number));
    }
    let work = |share| {
        move || -> Result<ThreadPart, NetError> {
            match job.kind {
                Kind::Pingpong => pingpong::run_client(job, phase, share, until),
                Kind::Flow => flow::send_all(job, phase, share, until),
            }
        }
    };
    run(shares.into_iter().map(work).collect(), cpus, phase, meter, || Ok(()))
}

/// The addresses of this machine and of the other one, as the control connection has them.
pub fn ip_addresses(control: &Socket) -> (IpAddr, IpAddr) {
    let ip = |place: std::io::Result<SockAddr>| {
        let place = place.ok().and_then(|place| place.as_socket());
        place.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |place| place.ip())
    };
    (ip(control.local_addr()), ip(control.peer_addr()))
}

pub fn no_port() -> NetError {
    NetError::Refused(
        "Ethernet frames need a DPDK port on both ends; start both with --stack dpdk".to_owned(),
    )
}

/// Raises the limit on descriptors to the hard limit: each connection takes one.
pub fn raise_descriptor_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A refusal shows when connections are opened.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
