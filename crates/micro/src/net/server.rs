//! The server's end: waits for a client, then does what its cells ask.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use model::Address;
use socket2::{SockAddr, Socket};

use super::client::{ips, no_port, raise_descriptors};
use super::clock::boot_id;
use super::control::{Control, Hello, Ready, ToClient, ToServer, introduced};
use super::error::NetError;
use super::ether::{NoPort, Port};
use super::job::{Job, Kind, Transport};
use super::outcome::{End, Meter};
use super::place::Listener;
use super::sockets::{datagram, prepare};
use super::workers::{Part, Phase, run};
use super::{flow, frames, pingpong};

/// For what the other end does at once.
const AT_ONCE: Duration = Duration::from_secs(10);
/// Between two cells a client may think for so long.
const BETWEEN: Duration = Duration::from_secs(600);
/// Beyond the length of a phase, until its end is announced.
const LATER: Duration = Duration::from_secs(60);

/// A server of both benchmarks.
pub struct Server<'a, P: Port = NoPort> {
    port: Option<P>,
    /// Its threads are pinned to these in turn; none are where it is empty.
    cpus: Vec<u32>,
    stop: &'a AtomicBool,
}

enum Links<'l, P> {
    Sockets(Vec<Socket>),
    Port(&'l mut P),
}

impl<'a, P: Port> Server<'a, P> {
    pub fn new(port: Option<P>, cpus: Vec<u32>, stop: &'a AtomicBool) -> Self {
        Server { port, cpus, stop }
    }

    /// Serves one client after the other until it is stopped, or, with `alone_for`, until no
    /// client has come for so long or the first one is gone. `say` is told of every session
    /// that failed.
    ///
    /// # Errors
    /// It can accept no connection any more.
    pub fn serve(
        &mut self,
        listener: &Listener,
        alone_for: Option<Duration>,
        meter: &mut dyn Meter,
        say: &mut dyn FnMut(&NetError),
    ) -> Result<(), NetError> {
        raise_descriptors();
        loop {
            let until = alone_for.map(|alone| Instant::now() + alone);
            let socket = match listener.accept(until, self.stop) {
                Ok(Some(socket)) => socket,
                Ok(None) | Err(NetError::Stopped) => return Ok(()),
                Err(error) => return Err(error),
            };
            match introduced(&socket, AT_ONCE) {
                Ok(Hello::Control { .. }) => {
                    match self.session(socket, Some(listener), meter) {
                        Ok(()) => {}
                        Err(NetError::Stopped) if self.stop.load(Ordering::Relaxed) => {
                            return Ok(());
                        }
                        Err(error) => say(&error),
                    }
                    if alone_for.is_some() {
                        return Ok(());
                    }
                }
                // Left over from a client that is gone.
                Ok(Hello::Data { .. }) => {}
                Err(error) => say(&error),
            }
        }
    }

    /// Serves the client at the other end of a pair of sockets; cells go over the port.
    ///
    /// # Errors
    /// The session failed.
    pub fn serve_pair(
        &mut self,
        socket: UnixStream,
        meter: &mut dyn Meter,
    ) -> Result<(), NetError> {
        let socket = Socket::from(OwnedFd::from(socket));
        introduced(&socket, AT_ONCE)?;
        self.session(socket, None, meter)
    }

    fn session(
        &mut self,
        socket: Socket,
        listener: Option<&Listener>,
        meter: &mut dyn Meter,
    ) -> Result<(), NetError> {
        let mut control = Control::new(socket)?;
        control.say(&ToClient::WELCOME)?;
        let outcome = self.cells(&mut control, listener, meter);
        if let Err(error) = &outcome {
            let words = match error {
                NetError::Stopped => "it was stopped".to_owned(),
                error => error.to_string(),
            };
            // A client that is gone does not hear it.
            let _ = control.say(&ToClient::Failed { words, request: error.is_request() });
        }
        outcome
    }

    fn hear(&self, control: &mut Control, limit: Duration) -> Result<ToServer, NetError> {
        let stop = self.stop;
        let goes_on = || match stop.load(Ordering::Relaxed) {
            true => Err(NetError::Stopped),
            false => Ok(()),
        };
        control.hear("word", limit, &goes_on)
    }

    fn cells(
        &mut self,
        control: &mut Control,
        listener: Option<&Listener>,
        meter: &mut dyn Meter,
    ) -> Result<(), NetError> {
        let mut message = self.hear(control, BETWEEN);
        loop {
            let (job, client) = match message {
                Ok(ToServer::Job { job, boot_id }) => (job, boot_id),
                Ok(ToServer::Bye) | Err(NetError::Closed { .. }) => return Ok(()),
                Ok(other) => return Err(NetError::Garbled(format!("{other:?}"))),
                Err(error) => return Err(error),
            };
            job.check()?;
            let shared_clock = client.is_some() && client == boot_id();
            message = self.cell(&job, shared_clock, control, listener, meter);
        }
    }

    /// One cell; answers with the first message that is not of it.
    fn cell(
        &mut self,
        job: &Job,
        shared_clock: bool,
        control: &mut Control,
        listener: Option<&Listener>,
        meter: &mut dyn Meter,
    ) -> Result<ToServer, NetError> {
        let (stop, cpus) = (self.stop, self.cpus.clone());
        let mut port = self.port.take();
        let links = open(job, control, listener, port.as_mut(), stop);
        let outcome = links.and_then(|mut links| {
            loop {
                let (number, most_s) = match self.hear(control, BETWEEN)? {
                    ToServer::Phase { number, most_s } => (number, most_s),
                    other => return Ok(other),
                };
                let phase = Phase::new(stop, number);
                let limit = Duration::try_from_secs_f64(most_s).unwrap_or_default() + LATER;
                let threads = match links {
                    Links::Sockets(_) => job.threads(),
                    Links::Port(_) => 1,
                };
                let until_end = || {
                    phase.await_set_up(threads)?;
                    control.say(&ToClient::Going)?;
                    let said = control.hear("end of the phase", limit, &|| phase.goes_on())?;
                    let ToServer::End(sent) = said else {
                        return Err(NetError::Garbled("the end of a phase was due".to_owned()));
                    };
                    // Set once.
                    let _ = phase.sent.set(sent);
                    Ok(())
                };
                let end = work(job, shared_clock, &phase, &mut links, &cpus, meter, until_end)?;
                control.say(&ToClient::Report(Box::new(end)))?;
            }
        });
        self.port = port;
        outcome
    }
}

/// One phase on the server's threads; `until_end` returns when the client has sent all.
fn work<P: Port>(
    job: &Job,
    shared_clock: bool,
    phase: &Phase<'_>,
    links: &mut Links<'_, P>,
    cpus: &[u32],
    meter: &mut dyn Meter,
    until_end: impl FnOnce() -> Result<(), NetError>,
) -> Result<End, NetError> {
    match links {
        Links::Sockets(sockets) => {
            let work = |thread: u32| {
                let share: Vec<(usize, &Socket)> =
                    job.share(thread).map(|at| (at, &sockets[at])).collect();
                move || -> Result<Part, NetError> {
                    match job.kind {
                        Kind::Pingpong => pingpong::answer(job, phase, share),
                        Kind::Flow => flow::receive_all(job, phase, share, shared_clock),
                    }
                }
            };
            let works = (0..job.threads()).map(work).collect();
            run(works, cpus, phase, meter, until_end)
        }
        Links::Port(port) => {
            let work = || match job.kind {
                Kind::Pingpong => frames::answer(job, phase, *port),
                Kind::Flow => frames::receive_all(job, phase, *port, shared_clock),
            };
            run(vec![work], cpus, phase, meter, until_end)
        }
    }
}

/// Makes the data's way, and tells the client how to take it.
fn open<'l, P: Port>(
    job: &Job,
    control: &mut Control,
    listener: Option<&Listener>,
    port: Option<&'l mut P>,
    stop: &AtomicBool,
) -> Result<Links<'l, P>, NetError> {
    let mut ready = Ready { boot_id: boot_id(), ..Ready::default() };
    match job.transport {
        Transport::Tcp | Transport::Unix => {
            let wanted_unix = job.transport == Transport::Unix;
            let given = listener.filter(|own| is_unix(own.address()) == wanted_unix);
            let own = match (given, wanted_unix) {
                (Some(_), _) => None,
                (None, true) => Some(Listener::bind(&Address::Unix(socket_file()))?),
                (None, false) => {
                    return Err(NetError::Refused(
                        "it listens on a unix socket alone; let it listen on HOST:PORT for TCP"
                            .to_owned(),
                    ));
                }
            };
            let Some(from) = own.as_ref().or(given) else { return Err(no_port()) };
            if let (true, Address::Unix(path)) = (wanted_unix, from.address()) {
                ready.unix = Some(path.clone());
            }
            control.say(&ToClient::Ready(ready))?;
            accept_all(job, from, stop).map(Links::Sockets)
        }
        Transport::Udp => {
            let (ip, peer) = ips(control.socket());
            let mut sockets = Vec::new();
            for _ in 0..job.connections {
                let (socket, port) = datagram(ip, job)?;
                ready.udp.push(port);
                sockets.push(socket);
            }
            control.say(&ToClient::Ready(ready))?;
            let goes_on =
                || if stop.load(Ordering::Relaxed) { Err(NetError::Stopped) } else { Ok(()) };
            let ToServer::Ports(ports) = control.hear("ports", AT_ONCE, &goes_on)? else {
                return Err(NetError::Garbled("the client's ports were due".to_owned()));
            };
            for (socket, port) in sockets.iter().zip(ports) {
                let place = SockAddr::from(SocketAddr::new(peer, port));
                socket.connect(&place).map_err(NetError::io("connecting a UDP socket"))?;
            }
            Ok(Links::Sockets(sockets))
        }
        Transport::Ethernet => {
            let port = port.ok_or_else(no_port)?;
            frames::check(job, port)?;
            ready.mac = Some(port.address());
            ready.longest_frame = port.longest();
            control.say(&ToClient::Ready(ready))?;
            Ok(Links::Port(port))
        }
    }
}

fn is_unix(address: &Address) -> bool {
    matches!(address, Address::Unix(_))
}

/// A place for a unix socket that nobody else has.
fn socket_file() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("kvmeter-micro-{}-{count}.sock", std::process::id()))
}

/// The cell's connections, in the order of their numbers.
fn accept_all(job: &Job, listener: &Listener, stop: &AtomicBool) -> Result<Vec<Socket>, NetError> {
    let mut sockets: Vec<Option<Socket>> = (0..job.connections).map(|_| None).collect();
    let mut missing = sockets.len();
    let until = Instant::now() + AT_ONCE + Duration::from_millis(u64::from(job.connections));
    while missing > 0 {
        let Some(socket) = listener.accept(Some(until), stop)? else {
            return Err(NetError::Silent {
                what: "data connection",
                seconds: AT_ONCE.as_secs_f64(),
            });
        };
        match introduced(&socket, AT_ONCE) {
            Ok(Hello::Data { number }) => {
                prepare(&socket, job)?;
                if let Some(slot @ None) = sockets.get_mut(number as usize) {
                    *slot = Some(socket);
                    missing -= 1;
                }
            }
            Ok(Hello::Control { .. }) => {
                let mut other = Control::new(socket)?;
                let words = "it serves another client; try again when that is done".to_owned();
                // Whoever it is may be gone.
                let _ = other.say(&ToClient::Failed { words, request: false });
            }
            // A stranger, who is let go.
            Err(_) => {}
        }
    }
    Ok(sockets.into_iter().flatten().collect())
}
