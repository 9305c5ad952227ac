//! What a running server of this machine reads from its clients, as a packet capture.

mod packets;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::Unavailable;
use server::watch::Process;
use store::StoreUrl;
use syscall_trace::{LostReads, ReadCapture};

use self::packets::PacketWriter;
use crate::error::ExecuteError;
use crate::server_log::one_server;

/// How often the ring is looked at while it is empty.
const LOOK: Duration = Duration::from_millis(1);

/// The reads of one server's process, by eBPF, until it is dropped.
pub struct ServerReads {
    /// `memcached, process 71`.
    pub process: String,
    capture: ReadCapture,
}

impl ServerReads {
    /// Begins with the process that listens at a store's address.
    ///
    /// # Errors
    /// A store without a server, several of them, a server on another machine, or no right to trace
    /// it.
    pub fn begin(store: &StoreUrl) -> Result<ServerReads, ExecuteError> {
        let remote = one_server(store)?;
        let refused = |why: Unavailable| ExecuteError::Request(format!("{store}: {why}"));
        let process = Process::listening_at(&remote.servers[0]).map_err(refused)?;
        let capture =
            ReadCapture::attach(process.pid()).map_err(|why| refused(Unavailable::from(why)))?;
        let process = format!("{}, process {}", process.name(), process.pid());
        Ok(ServerReads { process, capture })
    }

    /// The reads as a file of packets, until an instant, a flag that is raised, or the server's
    /// end; and what it loses.
    pub fn packets(
        self,
        until: Option<Instant>,
        stop: &Arc<AtomicBool>,
    ) -> (Box<dyn Read + Send>, LostReads) {
        let losses = self.capture.losses();
        let packets = ReadStream {
            capture: self.capture,
            packets: PacketWriter::new(),
            passed: 0,
            until,
            stop: Arc::clone(stop),
        };
        (Box::new(packets), losses)
    }
}

struct ReadStream {
    capture: ReadCapture,
    packets: PacketWriter,
    /// Bytes of the packets that were passed on.
    passed: usize,
    until: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Read for ReadStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = &self.packets.bytes()[self.passed..];
            if !ready.is_empty() {
                let length = ready.len().min(out.len());
                out[..length].copy_from_slice(&ready[..length]);
                self.passed += length;
                return Ok(length);
            }
            let over = self.until.is_some_and(|until| Instant::now() >= until);
            if over || self.stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            self.packets.clear();
            self.passed = 0;
            // Before looking, so that its last reads are not missed.
            let exited = self.capture.exited();
            let packets = &mut self.packets;
            match (self.capture.take(|read| packets.append(&read)), exited) {
                (0, true) => return Ok(0),
                (0, false) => thread::sleep(LOOK),
                _ => {}
            }
        }
    }
}
