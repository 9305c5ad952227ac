//! An agent that answers each request with whatever a test wants.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use host::probe::energy::SnmpSettings;
use snmp2::Pdu;

/// The object that the tests read.
pub const OID: &str = "1.3.6.1.4.1.1.1.0";

pub const INTEGER: u8 = 2;
const OCTETS: u8 = 4;
const NAME: u8 = 6;
const SEQUENCE: u8 = 0x30;
const RESPONSE: u8 = 0xa2;

/// A request as it came.
pub struct Request {
    pub id: i32,
    /// How often a request with this number has come before.
    pub repeats: usize,
    pub from: SocketAddr,
    version: u8,
    community: Vec<u8>,
    pub names: Vec<Vec<u8>>,
}

impl Request {
    fn parsed(bytes: &[u8], from: SocketAddr) -> Request {
        let pdu = Pdu::from_bytes(bytes).unwrap();
        Request {
            id: pdu.req_id,
            repeats: 0,
            from,
            version: pdu.version().unwrap() as u8,
            community: pdu.community.to_vec(),
            names: pdu.varbinds.map(|(name, _)| name.as_bytes().to_vec()).collect(),
        }
    }

    /// An answer with these values, each with its tag.
    pub fn answer(&self, values: &[(u8, &[u8])]) -> Vec<u8> {
        let pairs = self.names.iter().zip(values);
        let pairs: Vec<(Vec<u8>, u8, &[u8])> =
            pairs.map(|(name, (tag, value))| (name.clone(), *tag, *value)).collect();
        self.response(self.id, (0, 0), &pairs)
    }

    /// Any answer: its number, error-status and error-index, and names with values.
    pub fn response(&self, id: i32, error: (u8, u8), pairs: &[(Vec<u8>, u8, &[u8])]) -> Vec<u8> {
        let pairs: Vec<u8> = pairs
            .iter()
            .flat_map(|(name, tag, value)| {
                tlv(SEQUENCE, &[tlv(NAME, name), tlv(*tag, value)].concat())
            })
            .collect();
        let pdu = [
            tlv(INTEGER, &id.to_be_bytes()),
            tlv(INTEGER, &[error.0]),
            tlv(INTEGER, &[error.1]),
            tlv(SEQUENCE, &pairs),
        ];
        let message = [
            tlv(INTEGER, &[self.version]),
            tlv(OCTETS, &self.community),
            tlv(RESPONSE, &pdu.concat()),
        ];
        tlv(SEQUENCE, &message.concat())
    }
}

/// Tag, length and value (X.690).
pub fn tlv(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap();
    let mut bytes = match length {
        0..128 => vec![tag, length as u8],
        _ => [&[tag, 0x82], length.to_be_bytes().as_slice()].concat(),
    };
    bytes.extend_from_slice(value);
    bytes
}

pub struct FakeAgent {
    pub address: SocketAddr,
    pub requests: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeAgent {
    /// An agent that sends these datagrams for a request.
    pub fn answering(answers: impl Fn(&Request) -> Vec<Vec<u8>> + Send + 'static) -> FakeAgent {
        FakeAgent::at("127.0.0.1:0", answers).unwrap()
    }

    /// The same at another address of this machine; none if it has no such address.
    pub fn at(
        address: &str,
        answers: impl Fn(&Request) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Option<FakeAgent> {
        let socket = UdpSocket::bind(address).ok()?;
        let address = socket.local_addr().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (requests, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, until) = (Arc::clone(&requests), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            let mut seen: Vec<i32> = Vec::new();
            let mut buffer = [0; 65_536];
            while !until.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let mut request = Request::parsed(&buffer[..length], from);
                request.repeats = seen.iter().filter(|id| **id == request.id).count();
                seen.push(request.id);
                counted.fetch_add(1, Ordering::Relaxed);
                for datagram in answers(&request) {
                    // A client that has gone refuses it.
                    let _ = socket.send_to(&datagram, from);
                }
            }
        });
        Some(FakeAgent { address, requests, ended, thread: Some(thread) })
    }

    pub fn settings(&self) -> SnmpSettings {
        SnmpSettings::of(self.address.to_string(), &[OID])
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // It panicked where a request could not be parsed.
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking(), "the agent panicked");
    }
}
