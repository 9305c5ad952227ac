//! The two ends of a measurement, and ports of frames in memory.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use micro::net::{
    CellConfig, Client, Kind, Listener, Mac, MeasuredCell, NetError, NetJob, NoMeter, NoPort, Port,
    Server, Transport,
};
use model::Address;

pub const LIMIT: Duration = Duration::from_secs(5);

pub fn loopback() -> Address {
    Address::Tcp { host: "127.0.0.1".to_owned(), port: 0 }
}

pub fn job(kind: Kind, transport: Transport, size: u64) -> NetJob {
    NetJob { kind, transport, size, timeout_s: 20.0, ..NetJob::default() }
}

/// So many messages of all connections, without a warm-up.
pub fn messages(count: u64) -> CellConfig {
    let time = Duration::from_secs(60);
    CellConfig { warm_up: Duration::ZERO, time, messages: Some(count), cpus: Vec::new() }
}

/// Measures cells one after the other in one session over loopback.
pub fn all(jobs: &[NetJob], config: &CellConfig) -> Result<Vec<MeasuredCell>, NetError> {
    let stop = AtomicBool::new(false);
    let listener = Listener::bind(&loopback()).unwrap();
    let address = listener.address().clone();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = Server::<NoPort>::new(None, Vec::new(), &stop);
            server.serve(&listener, Some(LIMIT), &mut NoMeter, &mut |_| {}).unwrap();
        });
        let mut client = Client::<NoPort>::connect(&address, jobs[0].kind, LIMIT, None, &stop)?;
        jobs.iter().map(|job| client.measure(job, config, &mut NoMeter)).collect()
    })
}

pub fn one(job: &NetJob, config: &CellConfig) -> Result<MeasuredCell, NetError> {
    all(std::slice::from_ref(job), config).map(|mut all| all.remove(0))
}

type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A port of a wire in memory.
pub struct Memory {
    out: Queue,
    came: Queue,
    mac: Mac,
    longest: usize,
    spare: usize,
    /// Every so-many-th frame that is sent is lost, or has a bit turned.
    pub loses: Option<usize>,
    pub spoils: Option<usize>,
    sent: AtomicUsize,
}

pub struct Frame(Vec<u8>);

impl Deref for Frame {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A wire's two ends.
pub fn wire(longest: usize, spare: usize) -> (Memory, Memory) {
    let (a, b) = (Queue::default(), Queue::default());
    let port = |out: &Queue, came: &Queue, last| Memory {
        out: Arc::clone(out),
        came: Arc::clone(came),
        mac: [2, 0, 0, 0, 0, last],
        longest,
        spare,
        loses: None,
        spoils: None,
        sent: AtomicUsize::new(0),
    };
    (port(&a, &b, 1), port(&b, &a, 2))
}

impl Port for Memory {
    type Frame = Frame;
    fn address(&self) -> Mac {
        self.mac
    }
    fn max_frame_len(&self) -> usize {
        self.longest
    }
    fn spare_frames(&self) -> usize {
        self.spare
    }
    fn frame(&mut self, length: usize) -> Option<Frame> {
        assert!(length <= self.longest);
        Some(Frame(vec![0xEE; length]))
    }
    fn receive(&mut self, into: &mut VecDeque<Frame>) {
        let mut came = self.came.lock().unwrap();
        let count = came.len().min(32);
        into.extend(came.drain(..count).map(Frame));
    }
    fn send(&mut self, frames: &mut VecDeque<Frame>) {
        let mut out = self.out.lock().unwrap();
        while out.len() < 128
            && let Some(mut frame) = frames.pop_front()
        {
            let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
            let hit = |every: Option<usize>| every.is_some_and(|n| number.is_multiple_of(n));
            if hit(self.spoils) {
                // The first byte of the part.
                frame.0[46] ^= 1;
            }
            if !hit(self.loses) {
                out.push_back(frame.0);
            }
        }
    }
}

/// Measures over a wire.
pub fn over(
    (mut client, server): (Memory, Memory),
    job: &NetJob,
    config: &CellConfig,
) -> Result<MeasuredCell, NetError> {
    let stop = AtomicBool::new(false);
    let (here, there) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = Server::new(Some(server), Vec::new(), &stop);
            // The client is told of a failure, and tells.
            let _ = server.serve_pair(there, &mut NoMeter);
        });
        let mut client = Client::over(here, &mut client, &stop)?;
        client.measure(job, config, &mut NoMeter)
    })
}
