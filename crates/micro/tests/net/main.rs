//! Both network benchmarks between a client and a server in this process: over loopback
//! sockets, and over ports of frames in memory that lose and spoil as told.
#![allow(clippy::unwrap_used)]

mod ends;
mod flow;
mod frames;
mod mistakes;
mod pingpong;
