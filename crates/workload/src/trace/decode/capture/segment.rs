//! TCP's segment in a packet.

use std::net::IpAddr;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use super::super::super::error::RecordProblem;

/// Types of links, as <https://www.tcpdump.org/linktypes.html> numbers them.
const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const LOOP: u16 = 108;
const LINUX_COOKED: u16 = 113;
const LINUX_COOKED_2: u16 = 276;
/// Also as some systems numbered it.
const RAW_IP: [u16; 5] = [12, 14, 101, 228, 229];

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Direction {
    pub from: (IpAddr, u16),
    pub to: (IpAddr, u16),
}

impl Direction {
    pub fn reverse(self) -> Direction {
        Direction { from: self.to, to: self.from }
    }
}

/// A segment.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub direction: Direction,
    pub sequence: u32,
    pub syn: bool,
    pub ack: bool,
    pub fin: bool,
    pub rst: bool,
    pub payload: &'a [u8],
    /// Bytes behind the payload that were not captured.
    pub missing: u32,
}

impl<'a> Segment<'a> {
    /// The segment of a packet of which so many bytes were not captured; none in other packets.
    pub fn of(
        link: u16,
        packet: &'a [u8],
        missing: u32,
    ) -> Result<Option<Segment<'a>>, RecordProblem> {
        let sliced = match link {
            ETHERNET => LaxSlicedPacket::from_ethernet(packet).ok(),
            NULL | LOOP => packet.get(4..).and_then(|ip| LaxSlicedPacket::from_ip(ip).ok()),
            LINUX_COOKED => cooked(packet, 14, 16),
            LINUX_COOKED_2 => cooked(packet, 0, 20),
            link if RAW_IP.contains(&link) => LaxSlicedPacket::from_ip(packet).ok(),
            number => return Err(RecordProblem::LinkType { number }),
        };
        Ok(sliced.and_then(|sliced| Segment::of_ip(&sliced, missing)))
    }

    fn of_ip(sliced: &LaxSlicedPacket<'a>, missing: u32) -> Option<Segment<'a>> {
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return None };
        let (from, to, incomplete) = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let (from, to) = (header.source_addr().into(), header.destination_addr().into());
                (from, to, ip.payload().incomplete)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let (from, to) = (header.source_addr().into(), header.destination_addr().into());
                (from, to, ip.payload().incomplete)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        Some(Segment {
            direction: Direction {
                from: (from, tcp.source_port()),
                to: (to, tcp.destination_port()),
            },
            sequence: tcp.sequence_number(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            payload: tcp.payload(),
            missing: if incomplete { missing } else { 0 },
        })
    }
}

/// A packet behind a header of Linux, which has the protocol at one place and ends at another.
fn cooked(packet: &[u8], protocol: usize, end: usize) -> Option<LaxSlicedPacket<'_>> {
    let kind = packet.get(protocol..)?.first_chunk().copied()?;
    let kind = EtherType(u16::from_be_bytes(kind));
    Some(LaxSlicedPacket::from_ether_type(kind, packet.get(end..)?))
}
