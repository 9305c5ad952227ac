//! DPDK's ports as ours.

use std::collections::VecDeque;

use super::ether::{Mac, Port};
use dpdk::Frame;

impl Port for dpdk::Port {
    type Frame = Frame;

    fn address(&self) -> Mac {
        self.address()
    }

    fn longest(&self) -> usize {
        self.longest()
    }

    fn spare(&self) -> usize {
        self.spare()
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
