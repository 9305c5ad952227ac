//! Ethernet frames: the port that carries them, and kvmeter's header.

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

    /// Received frames that the caller may hold while the port goes on receiving.
    fn spare_frames(&self) -> usize;

    /// An empty frame of `length` bytes; none while all are in use.
    fn frame(&mut self, length: usize) -> Option<Self::Frame>;

    /// Appends the frames that have arrived, one burst at most.
    fn receive(&mut self, into: &mut VecDeque<Self::Frame>);

    /// Sends as many frames from the front as the port takes now; the others stay.
    fn send(&mut self, frames: &mut VecDeque<Self::Frame>);
}

/// The port of ends that have none.
#[derive(Debug)]
pub enum NoPort {}

/// The frame of [`NoPort`].
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
/// Distinguishes kvmeter's frames from others of this type.
const MAGIC: [u8; 2] = *b"kv";
/// Length of Ethernet's header and kvmeter's.
pub const HEAD: usize = 46;
/// The sender pads shorter frames (IEEE 802.3, without checksum).
pub const MIN_FRAME_LEN: usize = 60;

/// The header in front of a frame's part of a message.
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
    /// Bytes of the frame, its part of the message included.
    pub fn frame(&self) -> usize {
        (HEAD + self.length as usize).max(MIN_FRAME_LEN)
    }

    /// Writes the header; the frame is at least [`FrameHeader::frame`] long.
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
        if end < MIN_FRAME_LEN {
            frame[end..MIN_FRAME_LEN].fill(0);
        }
    }

    /// The header of a frame; none for foreign or truncated frames.
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
        fn headers_round_trip_and_foreign_frames_are_rejected(
            bytes in prop::collection::vec(any::<u8>(), 0..100), length in 0_u32..64, message: u64,
        ) {
            prop_assert!(FrameHeader::read(&bytes).is_none());
            let head = FrameHeader {
                to: [1; 6], from: [2; 6], connection: 7, phase: 9, message, offset: 3, length,
            };
            let mut frame = vec![0xFF; head.frame()];
            head.write(&mut frame);
            prop_assert_eq!(FrameHeader::read(&frame), Some(head));
            prop_assert!(frame.len() >= MIN_FRAME_LEN);
            prop_assert!(FrameHeader::read(&frame[..HEAD + length as usize]).is_some());
            prop_assert!(length == 0 || FrameHeader::read(&frame[..HEAD + length as usize - 1]).is_none());
        }
    }
}
