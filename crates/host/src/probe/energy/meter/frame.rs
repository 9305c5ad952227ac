//! Frames and registers of the MCP39F511A and 511N, after Microchip's data sheets.

use thiserror::Error;

use super::{Channels, MeterVariant};

const HEADER: u8 = 0xA5;
const SET_ADDRESS: u8 = 0x41;
const READ: u8 = 0x4E;
const ACKNOWLEDGED: u8 = 0x06;
const NOT_ACKNOWLEDGED: u8 = 0x15;
const CHECKSUM_FAILED: u8 = 0x51;

/// Registers are read from here: the system status.
pub(super) const FIRST: u16 = 0x02;
/// All output registers that hold a measurement.
pub(super) const LENGTH: usize = 44;

/// A header, a length and a checksum around the data.
pub(super) const REPLY: usize = LENGTH + 3;

/// Why a reply is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum BadReply {
    #[error("it did not take the request (NAK)")]
    Refused,
    #[error("the request reached it damaged")]
    Damaged,
    #[error("its answer has a wrong checksum")]
    Checksum,
    #[error("its answer begins with {0:#04x}, so it is not from an MCP39F511")]
    Foreign(u8),
    #[error("its answer announces {0} bytes instead of {REPLY}")]
    Length(u8),
    #[error("its answer ended after {0} of {REPLY} bytes")]
    Short(usize),
    #[error("it did not answer")]
    Silent,
}

/// The request for `count` bytes of registers from an address on.
pub(super) fn request(address: u16, count: u8) -> [u8; 8] {
    let [high, low] = address.to_be_bytes();
    let mut frame = [HEADER, 8, SET_ADDRESS, high, low, READ, count, 0];
    frame[7] = checksum(&frame[..7]);
    frame
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// The registers, once the reply is complete; `None` while it is not.
pub(super) fn reply(bytes: &[u8]) -> Result<Option<[u8; LENGTH]>, BadReply> {
    match bytes {
        [] => return Ok(None),
        [ACKNOWLEDGED, ..] => {}
        [NOT_ACKNOWLEDGED, ..] => return Err(BadReply::Refused),
        [CHECKSUM_FAILED, ..] => return Err(BadReply::Damaged),
        [other, ..] => return Err(BadReply::Foreign(*other)),
    }
    if let Some(length) = bytes.get(1).filter(|length| usize::from(**length) != REPLY) {
        return Err(BadReply::Length(*length));
    }
    if bytes.len() < REPLY {
        return Ok(None);
    }
    if checksum(&bytes[..REPLY - 1]) != bytes[REPLY - 1] {
        return Err(BadReply::Checksum);
    }
    let mut data = [0; LENGTH];
    data.copy_from_slice(&bytes[2..REPLY - 1]);
    Ok(Some(data))
}

/// The output registers from [`FIRST`] on.
pub(super) struct Registers(pub [u8; LENGTH]);

impl Registers {
    /// Active power in the register's steps. It is the magnitude: a machine only draws, and
    /// which way round the board is wired changes nothing.
    pub fn power_steps(&self, variant: MeterVariant, channels: Channels) -> u64 {
        let (first, second) = match variant {
            MeterVariant::Mcp39f511a => (self.u32_at(0x12), 0),
            MeterVariant::Mcp39f511n => (self.u32_at(0x16), self.u32_at(0x1A)),
        };
        match channels {
            Channels::All => u64::from(first) + u64::from(second),
            Channels::First => u64::from(first),
            Channels::Second => u64::from(second),
        }
    }

    fn u32_at(&self, address: u16) -> u32 {
        let at = usize::from(address - FIRST);
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(data: [u8; LENGTH]) -> Vec<u8> {
        let mut bytes = vec![ACKNOWLEDGED, REPLY as u8];
        bytes.extend(data);
        bytes.push(checksum(&bytes));
        bytes
    }

    #[test]
    fn the_request_is_that_of_the_data_sheet() {
        assert_eq!(request(FIRST, LENGTH as u8), [0xA5, 0x08, 0x41, 0x00, 0x02, 0x4E, 0x2C, 0x6A]);
    }

    #[test]
    fn registers_are_little_endian_at_their_addresses() {
        let mut data = [0; LENGTH];
        data[0x10..0x14].copy_from_slice(&12_345u32.to_le_bytes());
        data[0x14..0x18].copy_from_slice(&70_000u32.to_le_bytes());
        data[0x18..0x1C].copy_from_slice(&5u32.to_le_bytes());
        let registers = Registers(reply(&answer(data)).unwrap().unwrap());
        let steps = |variant, channels| registers.power_steps(variant, channels);
        assert_eq!(steps(MeterVariant::Mcp39f511a, Channels::All), 12_345);
        assert_eq!(steps(MeterVariant::Mcp39f511n, Channels::All), 70_005);
        assert_eq!(steps(MeterVariant::Mcp39f511n, Channels::First), 70_000);
        assert_eq!(steps(MeterVariant::Mcp39f511n, Channels::Second), 5);
    }

    #[test]
    fn prefixes_wait_and_each_flaw_has_its_error() {
        let good = answer([7; LENGTH]);
        for length in 0..good.len() {
            assert_eq!(reply(&good[..length]), Ok(None), "{length}");
        }
        assert_eq!(reply(&good), Ok(Some([7; LENGTH])));
        for at in 2..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(reply(&bad), Err(BadReply::Checksum), "{at}");
        }
        assert_eq!(reply(&[0x15]), Err(BadReply::Refused));
        assert_eq!(reply(&[0x51]), Err(BadReply::Damaged));
        assert_eq!(reply(&[0x00]), Err(BadReply::Foreign(0)));
        assert_eq!(reply(&[0x06, 3]), Err(BadReply::Length(3)));
    }
}
