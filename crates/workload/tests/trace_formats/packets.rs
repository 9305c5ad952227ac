//! Packets and captures that are made by hand.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Link {
    Ethernet,
    /// Ethernet with a tag.
    Vlan,
    Cooked,
    Cooked2,
    Loopback,
    Raw,
}

/// The last byte of an address, and a port.
pub(super) type End = (u8, u16);

pub(super) const CLIENT: End = (1, 4000);
pub(super) const SERVER: End = (2, 11211);

/// A command of Redis.
pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{words}", words.matches('$').count()).into_bytes()
}

/// A value of Redis.
pub(super) fn reply(value: &str) -> Vec<u8> {
    format!("${}\r\n{value}\r\n", value.len()).into_bytes()
}

/// Packets a millisecond apart.
pub(super) struct Capture {
    link: Link,
    ipv6: bool,
    packets: Vec<Vec<u8>>,
    longest: usize,
}

impl Capture {
    pub fn new(link: Link, ipv6: bool) -> Capture {
        Capture { link, ipv6, packets: Vec::new(), longest: usize::MAX }
    }

    /// Captures so many bytes of each packet.
    pub fn cut(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// A connection whose first byte has the number 0.
    pub fn syn(&mut self, from: End, to: End) {
        self.syn_at(from, to, u32::MAX);
    }

    pub fn syn_at(&mut self, from: End, to: End, sequence: u32) {
        self.packet(from, to, sequence, 0x02, b"");
    }

    pub fn segment(&mut self, from: End, to: End, sequence: u32, payload: &[u8]) {
        self.packet(from, to, sequence, 0x18, payload);
    }

    fn packet(&mut self, from: End, to: End, sequence: u32, flags: u8, payload: &[u8]) {
        let mut tcp = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
        tcp.extend(sequence.to_be_bytes());
        // No acknowledged byte; a header of 32 bytes, with options.
        tcp.extend([0, 0, 0, 0, 0x80, flags, 1, 0, 0, 0, 0, 0]);
        tcp.extend([1; 12]);
        tcp.extend(payload);
        let ip = match self.ipv6 {
            false => {
                let mut ip = vec![0x45, 0];
                ip.extend(((20 + tcp.len()) as u16).to_be_bytes());
                ip.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
                ip
            }
            true => {
                let mut ip = vec![0x60, 0, 0, 0];
                // Behind a header of options for each hop.
                ip.extend(((8 + tcp.len()) as u16).to_be_bytes());
                ip.extend([0, 64]);
                for end in [from.0, to.0] {
                    ip.extend([0xfd; 15]);
                    ip.push(end);
                }
                ip.extend([6, 0, 1, 4, 0, 0, 0, 0]);
                ip
            }
        };
        let kind: [u8; 2] = if self.ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let head = match self.link {
            Link::Ethernet => [&[2; 12][..], &kind].concat(),
            Link::Vlan => [&[2; 12][..], &[0x81, 0, 0, 7], &kind].concat(),
            Link::Cooked => [&[0; 14][..], &kind].concat(),
            Link::Cooked2 => [&kind[..], &[0; 18]].concat(),
            Link::Loopback => vec![2, 0, 0, 0],
            Link::Raw => Vec::new(),
        };
        self.packets.push([head, ip, tcp].concat());
    }

    fn link_type(&self) -> u32 {
        match self.link {
            Link::Ethernet | Link::Vlan => 1,
            Link::Cooked => 113,
            Link::Cooked2 => 276,
            Link::Loopback => 0,
            Link::Raw => 101,
        }
    }

    /// Nanoseconds, and seven more to tell nanoseconds from microseconds.
    fn at_ns(n: usize) -> u64 {
        1_700_000_000_000_000_000 + n as u64 * 1_000_000 + 7
    }

    pub fn pcap(&self, big_endian: bool, nanoseconds: bool) -> Vec<u8> {
        let number = |number: u32| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut bytes = number(magic).to_vec();
        bytes.extend([0; 16]);
        bytes.extend(number(self.link_type()));
        for (n, packet) in self.packets.iter().enumerate() {
            let (at, captured) = (Capture::at_ns(n), packet.len().min(self.longest));
            let part = at % 1_000_000_000 / if nanoseconds { 1 } else { 1000 };
            for field in
                [(at / 1_000_000_000) as u32, part as u32, captured as u32, packet.len() as u32]
            {
                bytes.extend(number(field));
            }
            bytes.extend(&packet[..captured]);
        }
        bytes
    }

    /// With microseconds, or in big-endian blocks with a resolution of 2^-20 s and an offset.
    pub fn pcapng(&self, big_endian: bool) -> Vec<u8> {
        let number = |number: u32| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let half = |number: u16| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let block = |kind: u32, body: &[u8]| {
            let size = number((12 + body.len().next_multiple_of(4)) as u32);
            let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
            [&number(kind)[..], &size, body, &padding, &size].concat()
        };
        let mut section = number(0x1a2b_3c4d).to_vec();
        section.extend([half(1), half(0)].concat());
        section.extend([0xff; 8]);
        let mut interface = [half(self.link_type() as u16), half(0)].concat();
        interface.extend(number(0));
        let (ticks_a_second, offset_s) =
            if big_endian { (1_000_000_000, 1_000_000_000) } else { (1_000_000, 0) };
        if big_endian {
            interface.extend([&half(9)[..], &half(1), &[9, 0, 0, 0]].concat());
            interface.extend([half(14), half(8)].concat());
            interface.extend(u64::to_be_bytes(offset_s));
            interface.extend([0; 4]);
        }
        // A comment, statistics, and another one's block are passed over.
        let mut bytes =
            [block(0x0a0d_0d0a, &section), block(1, &interface), block(5, &[0; 12])].concat();
        for (n, packet) in self.packets.iter().enumerate() {
            let captured = packet.len().min(self.longest);
            let at = (Capture::at_ns(n) - 7) - offset_s * 1_000_000_000;
            let ticks = u128::from(at) * ticks_a_second / 1_000_000_000;
            let mut body = number(0).to_vec();
            for field in [(ticks >> 32) as u32, ticks as u32, captured as u32, packet.len() as u32]
            {
                body.extend(number(field));
            }
            body.extend(&packet[..captured]);
            bytes.extend(block(6, &body));
        }
        bytes
    }
}
