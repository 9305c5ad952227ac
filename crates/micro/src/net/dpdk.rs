//! DPDK's ports as [`Port`].

use std::collections::VecDeque;

use super::ether::{Mac, Port};
use dpdk::Frame;

impl Port for dpdk::Port {
    type Frame = Frame;

    fn address(&self) -> Mac {
        self.address()
    }

    fn max_frame_len(&self) -> usize {
        self.max_frame_len()
    }

    fn spare_frames(&self) -> usize {
        self.spare_frames()
    }

    fn frame(&mut self, length: usize) -> Option<Frame> {
        self.frame(length)
    }

    fn receive(&mut self, into: &mut VecDeque<Frame>) {
        self.receive(into);
    }

    fn send(&mut self, frames: &mut VecDeque<Frame>) {
        self.send(frames);
    }
}
