//! Reads of sockets as packets of TCP in a file of packets.
//!
//! Format: <https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap>, raw IPv4. A descriptor stands
//! for its connection as the client's address; positions are sequence numbers.

use syscall_trace::SocketRead;

/// Little-endian, with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const RAW_IP: u32 = 101;
const SECOND: u64 = 1_000_000_000;
/// Bytes of the headers of IPv4 and TCP.
const HEADERS: usize = 40;
/// Bytes of a connection in one packet, whose length has 16 bits.
const LONGEST: u32 = 60_000;
const TCP: u8 = 6;
const SYN: u8 = 0x02;
const ACK_PUSH: u8 = 0x18;
const SERVER: [u8; 4] = [10, 255, 255, 254];
const PORT: u16 = 1;

/// Writes packets into memory.
pub(super) struct PacketWriter(Vec<u8>);

impl PacketWriter {
    /// With the header of a file.
    pub fn new() -> PacketWriter {
        let mut out = Vec::new();
        for word in [MAGIC, 2 | 4 << 16, 0, 0, u32::MAX, RAW_IP] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        PacketWriter(out)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends the packets of a read: one, or several where it is long.
    pub fn append(&mut self, read: &SocketRead<'_>) {
        let sequence = read.position as u32;
        if read.length == 0 {
            // The first byte has the number after it.
            return self.packet(read.at_ns, read.descriptor, sequence.wrapping_sub(1), SYN, &[], 0);
        }
        let (mut left, mut bytes, mut sequence) = (read.length, read.bytes, sequence);
        while left > 0 {
            let length = left.min(LONGEST);
            let (now, later) = bytes.split_at(bytes.len().min(length as usize));
            self.packet(read.at_ns, read.descriptor, sequence, ACK_PUSH, now, length);
            (left, bytes, sequence) = (left - length, later, sequence.wrapping_add(length));
        }
    }

    /// One packet with so many bytes of the connection, of which the first are there.
    fn packet(
        &mut self,
        at_ns: u64,
        descriptor: u32,
        sequence: u32,
        flags: u8,
        bytes: &[u8],
        length: u32,
    ) {
        let (captured, whole) = (HEADERS + bytes.len(), HEADERS as u32 + length);
        let out = &mut self.0;
        for word in [(at_ns / SECOND) as u32, (at_ns % SECOND) as u32, captured as u32, whole] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        // Version and length of the header; service.
        out.extend_from_slice(&[0x45, 0]);
        out.extend_from_slice(&(whole as u16).to_be_bytes());
        // Identification, fragment, time to live, and no checksum.
        out.extend_from_slice(&[0, 0, 0, 0, 64, TCP, 0, 0]);
        let [_, low, high_port, low_port] = descriptor.to_be_bytes();
        out.extend_from_slice(&[10, 0, 0, low]);
        out.extend_from_slice(&SERVER);
        out.extend_from_slice(&[high_port, low_port]);
        out.extend_from_slice(&PORT.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        // Acknowledgement, length of the header, flags, window, checksum, urgent pointer.
        out.extend_from_slice(&[0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use workload::trace::{TraceOptions, TraceRecords};

    fn read(descriptor: u32, position: u64, length: u32, bytes: &[u8]) -> SocketRead<'_> {
        SocketRead { at_ns: 1_000 + position, descriptor, position, length, bytes }
    }

    #[test]
    fn a_reader_of_captures_finds_the_requests_again() {
        let mut packets = PacketWriter::new();
        // A value of 100,000 B of which the first is copied, between two requests in one read.
        let set = b"set large 0 0 100000\r\n";
        let whole = set.len() as u32 + 100_002;
        for read in [
            read(70_000, 0, 0, &[]),
            read(5, 0, 0, &[]),
            read(70_000, 0, whole, set),
            read(5, 0, 7, b"get a\r\n"),
            read(70_000, u64::from(whole), 14, b"get b\r\nget c\r\n"),
        ] {
            packets.append(&read);
        }
        let stream = Cursor::new(packets.bytes().to_vec());
        let mut records =
            TraceRecords::read("reads".into(), Box::new(stream), &TraceOptions::default()).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            found.push((record.operation.to_string(), record.value_size));
        }
        let get = || ("get".to_owned(), None);
        assert_eq!(found, [("set".to_owned(), Some(100_000)), get(), get(), get()]);
    }
}
