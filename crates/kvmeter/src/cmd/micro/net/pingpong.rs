//! `micro pingpong`: round trips.

use clap::Args;
use micro::net::{Kind, NetJob};

use super::cells::{NetCells, usual};
use super::flags::NetFlags;
use crate::exit::ExitOutcome;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter micro pingpong                                TCP over loopback, 1 B to 1 MiB\n  \
    kvmeter micro pingpong --transport tcp,unix,udp --size 64 --connections 1,16\n  \
    kvmeter micro pingpong --listen 0.0.0.0               on the other machine, then here:\n  \
    kvmeter micro pingpong --connect server --busy-poll --json\n  \
    kvmeter micro pingpong --stack kernel,dpdk --size 64  DPDK beside it, over rings in memory\n  \
    kvmeter micro pingpong --stack dpdk --connect server --port 0000:03:00.0\n\n\
    Each message is answered with itself, and every byte of the answer is checked. Lost datagrams\n\
    are counted. Exit code 1 where a message was wrong or none came through.")]
pub struct PingpongArgs {
    #[command(flatten)]
    pub net: NetFlags,
}

pub fn run(args: &PingpongArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let job = NetJob { kind: Kind::Pingpong, stride: 0, ..usual(&args.net) };
    super::run(&args.net, &NetCells::new(&args.net, &job, &[(0, 0)])?, show)
}
