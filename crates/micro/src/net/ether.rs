//! Ethernet frames: what carries them, and what ours look like.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// A port that sends and receives frames, driven by one thread.
pub trait Port: Send {
    /// A whole frame without its checksum, given back to the port's pool when it is dropped.
    type Frame: DerefMut<Target = [u8]> + Send;

    fn address(&self) -> Mac;

    /// Bytes of the longest frame, header included, checksum not.
    fn max_frame_len(&self) -> usize;

    /// Received frames that may be held while the port goes on receiving.
    fn spare_frames(&self) -> usize;

    /// An empty frame of so many bytes; none while all are under way.
    fn frame(&mut self, length: usize) -> Option<Self::Frame>;

    /// Appends what has arrived, a burst at most.
    fn receive(&mut self, into: &mut VecDeque<Self::Frame>);

    /// Sends from the front as many as the port takes now; the others stay.
    fn send(&mut self, frames: &mut VecDeque<Self::Frame>);
}

/// For ends that have none.
#[derive(Debug)]
pub enum NoPort {}

/// The frame of no port.
#[derive(Debug)]
pub enum NoFrame {}

impl Deref for NoFrame {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match *self {}
    }
}

impl DerefMut for NoFrame {
    fn deref_mut(&mut self) -> &mut [u8] {
        match *self {}
    }
}

impl Port for NoPort {
    type Frame = NoFrame;
    fn address(&self) -> Mac {
        match *self {}
    }
    fn max_frame_len(&self) -> usize {
        match *self {}
    }
    fn spare_frames(&self) -> usize {
        match *self {}
    }
    fn frame(&mut self, _: usize) -> Option<NoFrame> {
        match *self {}
    }
    fn receive(&mut self, _: &mut VecDeque<NoFrame>) {
        match *self {}
    }
    fn send(&mut self, _: &mut VecDeque<NoFrame>) {
        match *self {}
    }
}

/// IEEE 802's first "Local Experimental Ethertype".
const ETHERTYPE: [u8; 2] = [0x88, 0xB5];
/// Tells our frames from other experiments.
const MAGIC: [u8; 2] = *b"kv";
/// Ethernet's header and ours.
pub const HEAD: usize = 46;
/// Shorter frames are padded by nobody but the sender (IEEE 802.3, without checksum).
pub const SHORTEST: usize = 60;

/// What our frames say in front of their part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub to: Mac,
    pub from: Mac,
    pub connection: u32,
    /// Which phase of which cell.
    pub phase: u64,
    pub message: u64,
    /// Of the part within the message.
    pub offset: u32,
    pub length: u32,
}

impl FrameHeader {
    /// Bytes of the frame with its part.
    pub fn frame(&self) -> usize {
        (HEAD + self.length as usize).max(SHORTEST)
    }

    /// Writes the header; the frame is at least [`Head::frame`] long.
    pub fn write(&self, frame: &mut [u8]) {
        frame[0..6].copy_from_slice(&self.to);
        frame[6..12].copy_from_slice(&self.from);
        frame[12..14].copy_from_slice(&ETHERTYPE);
        frame[14..16].copy_from_slice(&MAGIC);
        frame[16..20].copy_from_slice(&self.connection.to_be_bytes());
        frame[20..28].copy_from_slice(&self.phase.to_be_bytes());
        frame[28..36].copy_from_slice(&self.message.to_be_bytes());
        frame[36..40].copy_from_slice(&self.offset.to_be_bytes());
        frame[40..44].copy_from_slice(&self.length.to_be_bytes());
        frame[44..46].fill(0);
        let end = HEAD + self.length as usize;
        if end < SHORTEST {
            frame[end..SHORTEST].fill(0);
        }
    }

    /// The header of a frame of ours; none of anybody else's, or of one that is cut.
    pub fn read(frame: &[u8]) -> Option<FrameHeader> {
        if frame.len() < HEAD || frame[12..14] != ETHERTYPE || frame[14..16] != MAGIC {
            return None;
        }
        let mac = |at: usize| std::array::from_fn(|byte| frame[at + byte]);
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| frame[at + byte]));
        let long = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| frame[at + byte]));
        let head = FrameHeader {
            to: mac(0),
            from: mac(6),
            connection: word(16),
            phase: long(20),
            message: long(28),
            offset: word(36),
            length: word(40),
        };
        (frame.len() >= HEAD + head.length as usize).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_read_back_and_foreign_frames_are_none(
            bytes in prop::collection::vec(any::<u8>(), 0..100), length in 0_u32..64, message: u64,
        ) {
            prop_assert!(FrameHeader::read(&bytes).is_none());
            let head = FrameHeader {
                to: [1; 6], from: [2; 6], connection: 7, phase: 9, message, offset: 3, length,
            };
            let mut frame = vec![0xFF; head.frame()];
            head.write(&mut frame);
            prop_assert_eq!(FrameHeader::read(&frame), Some(head));
            prop_assert!(frame.len() >= SHORTEST);
            prop_assert!(FrameHeader::read(&frame[..HEAD + length as usize]).is_some());
            prop_assert!(length == 0 || FrameHeader::read(&frame[..HEAD + length as usize - 1]).is_none());
        }
    }
}
