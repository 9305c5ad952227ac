//! The packets of a file: pcap of either byte order with micro- or nanoseconds, and pcapng.

use std::ops::Range;

use super::super::super::error::RecordProblem;
use super::super::super::input::Input;
use super::super::super::record::SECOND;
use super::super::Failure;

/// Bytes of a pcap file before its first packet, and before the data of each.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// The longest packet or block.
const LONGEST: u64 = 16 << 20;

/// Types of pcapng's blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;

/// Bytes of a block before its body, and after it.
const BLOCK_BEGIN: usize = 8;
const BLOCK_END: usize = 4;

/// Numbers of options of an interface.
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

/// A packet in the window.
#[derive(Debug)]
pub(super) struct Packet {
    pub at_ns: u64,
    pub link: u16,
    /// Where its captured bytes are, and how many of it were not captured.
    pub data: Range<usize>,
    pub missing: u32,
    /// Bytes to consume with it.
    pub size: usize,
}

pub(super) enum NextPacket {
    Packet(Packet),
    /// So many bytes that are no packet.
    Passed(usize),
    NotYet,
    End,
}

/// A network interface of a capture.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u16,
    ticks_a_second: u64,
    offset_s: i64,
}

/// The container of a capture.
#[derive(Debug)]
pub(super) struct Container {
    is_blocks: bool,
    big_endian: bool,
    interfaces: Vec<Interface>,
    last_ns: u64,
}

/// Whether a file begins as a capture does.
pub(in super::super::super) fn recognises(head: &[u8]) -> bool {
    head.first_chunk()
        .is_some_and(|magic| *magic == SECTION.to_be_bytes() || pcap(*magic).is_some())
}

/// Byte order and ticks a second.
fn pcap(magic: [u8; 4]) -> Option<(bool, u64)> {
    match u32::from_be_bytes(magic) {
        0xa1b2_c3d4 => Some((true, 1_000_000)),
        0xd4c3_b2a1 => Some((false, 1_000_000)),
        0xa1b2_3c4d => Some((true, SECOND)),
        0x4d3c_b2a1 => Some((false, SECOND)),
        _ => None,
    }
}

enum Have {
    Yes,
    NotYet,
    No,
}

fn have(input: &mut Input, bytes: usize, wait: bool) -> Result<Have, Failure> {
    Ok(match input.data().len() >= bytes {
        true => Have::Yes,
        false if !wait => Have::NotYet,
        false if input.need(bytes)? => Have::Yes,
        false => Have::No,
    })
}

fn cut(input: &Input, of: usize) -> Failure {
    Failure::fatal(RecordProblem::Cut { have: input.data().len() as u64, of: of as u64 })
}

fn too_large(number: u64) -> Failure {
    let (field, most) = ("packet length", LONGEST);
    Failure::fatal(RecordProblem::TooLarge { field, number, most })
}

impl Container {
    pub fn begin(input: &mut Input) -> Result<Container, Failure> {
        input.begin_record();
        if !input.need(4)? {
            return Err(cut(input, FILE_HEADER));
        }
        let magic = input.data().first_chunk().copied().unwrap_or_default();
        let mut container = Container {
            is_blocks: magic == SECTION.to_be_bytes(),
            big_endian: false,
            interfaces: Vec::new(),
            last_ns: 0,
        };
        if container.is_blocks {
            return Ok(container);
        }
        let expected = "the magic number of a capture";
        let (big_endian, ticks_a_second) =
            pcap(magic).ok_or_else(|| Failure::fatal(RecordProblem::Header { expected }))?;
        if !input.need(FILE_HEADER)? {
            return Err(cut(input, FILE_HEADER));
        }
        container.big_endian = big_endian;
        // The upper bits are the length of a checksum.
        let link = (container.u32(input.data(), 20) & 0xffff) as u16;
        container.interfaces.push(Interface { link, ticks_a_second, offset_s: 0 });
        input.consume(FILE_HEADER);
        Ok(container)
    }

    /// The next packet; without `wait` only if the window holds it.
    pub fn next(&mut self, input: &mut Input, wait: bool) -> Result<NextPacket, Failure> {
        input.begin_record();
        let begin = if self.is_blocks { BLOCK_BEGIN + BLOCK_END } else { PACKET_HEADER };
        match have(input, begin, wait)? {
            Have::Yes => {}
            Have::NotYet => return Ok(NextPacket::NotYet),
            Have::No if input.data().is_empty() => return Ok(NextPacket::End),
            Have::No => return Err(cut(input, begin)),
        }
        let size = match self.is_blocks {
            true => self.block_size(input.data())?,
            false => u64::from(self.u32(input.data(), 8)) + PACKET_HEADER as u64,
        };
        let size = usize::try_from(size).ok().filter(|size| *size as u64 <= LONGEST);
        let size = size.ok_or_else(|| too_large(u64::from(u32::MAX)))?;
        match have(input, size, wait)? {
            Have::Yes => {}
            Have::NotYet => return Ok(NextPacket::NotYet),
            Have::No => return Err(cut(input, size)),
        }
        let data = &input.data()[..size];
        match self.is_blocks {
            true => self.block(data),
            false => Ok(self.packet(data)),
        }
    }

    fn u16(&self, data: &[u8], at: usize) -> u16 {
        let bytes = data.get(at..at + 2).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(&self, data: &[u8], at: usize) -> u32 {
        let bytes = data.get(at..at + 4).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// A packet of a pcap file with its header.
    fn packet(&mut self, data: &[u8]) -> NextPacket {
        let Interface { link, ticks_a_second, .. } = self.interfaces[0];
        let (second, part) = (u64::from(self.u32(data, 0)), u64::from(self.u32(data, 4)));
        let at_ns = second * SECOND + part.min(ticks_a_second) * (SECOND / ticks_a_second);
        let missing = self.u32(data, 12).saturating_sub(self.u32(data, 8));
        let size = data.len();
        NextPacket::Packet(Packet { at_ns, link, data: PACKET_HEADER..size, missing, size })
    }

    /// The size of a block; a section says its byte order.
    fn block_size(&mut self, data: &[u8]) -> Result<u64, Failure> {
        if data[..4] == SECTION.to_be_bytes() {
            self.big_endian = data[8..12] == [0x1a, 0x2b, 0x3c, 0x4d];
            self.interfaces.clear();
        }
        match u64::from(self.u32(data, 4)) {
            size if size > LONGEST => Err(too_large(size)),
            size if size < (BLOCK_BEGIN + BLOCK_END) as u64 || size % 4 != 0 => {
                Err(Failure::fatal(RecordProblem::PayloadLength))
            }
            size => Ok(size),
        }
    }

    /// A whole block.
    fn block(&mut self, data: &[u8]) -> Result<NextPacket, Failure> {
        let size = data.len();
        let body = &data[BLOCK_BEGIN..size - BLOCK_END];
        let kind = self.u32(data, 0);
        // Where in the body the captured bytes begin.
        let (interface, time, begin) = match kind {
            INTERFACE => {
                let interface = self.interface(body);
                self.interfaces.push(interface);
                return Ok(NextPacket::Passed(size));
            }
            PACKET => (self.u32(body, 0) as usize, Some(4), 20),
            OLD_PACKET => (usize::from(self.u16(body, 0)), Some(4), 20),
            SIMPLE_PACKET => (0, None, 4),
            _ => return Ok(NextPacket::Passed(size)),
        };
        let Some(&Interface { link, ticks_a_second, offset_s }) = self.interfaces.get(interface)
        else {
            return Err(Failure::fatal(RecordProblem::PayloadLength));
        };
        let whole = self.u32(body, begin - 4);
        let captured = match time {
            Some(_) => self.u32(body, begin - 8) as usize,
            None => (body.len().saturating_sub(begin)).min(whole as usize),
        };
        if begin + captured > body.len() {
            return Err(Failure::fatal(RecordProblem::PayloadLength));
        }
        if let Some(at) = time {
            let ticks = u64::from(self.u32(body, at)) << 32 | u64::from(self.u32(body, at + 4));
            let ns = u128::from(ticks) * u128::from(SECOND) / u128::from(ticks_a_second);
            let ns = ns as i128 + i128::from(offset_s) * i128::from(SECOND);
            self.last_ns = u64::try_from(ns.max(0)).unwrap_or(u64::MAX);
        }
        let data = BLOCK_BEGIN + begin..BLOCK_BEGIN + begin + captured;
        let missing = whole.saturating_sub(captured as u32);
        Ok(NextPacket::Packet(Packet { at_ns: self.last_ns, link, data, missing, size }))
    }

    fn interface(&self, body: &[u8]) -> Interface {
        let mut interface =
            Interface { link: self.u16(body, 0), ticks_a_second: 1_000_000, offset_s: 0 };
        let mut options = body.get(8..).unwrap_or_default();
        while options.len() >= 4 {
            let (code, length) = (self.u16(options, 0), usize::from(self.u16(options, 2)));
            let Some(value) = options.get(4..4 + length) else { break };
            match (code, value) {
                (0, _) => break,
                (RESOLUTION, [bits]) => {
                    let exponent = u32::from(bits & 0x7f);
                    let base: u64 = if bits & 0x80 == 0 { 10 } else { 2 };
                    interface.ticks_a_second = base.checked_pow(exponent).unwrap_or(1_000_000);
                }
                (OFFSET, value) if length == 8 => {
                    let (high, low) = match self.big_endian {
                        true => (self.u32(value, 0), self.u32(value, 4)),
                        false => (self.u32(value, 4), self.u32(value, 0)),
                    };
                    interface.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        interface
    }
}
