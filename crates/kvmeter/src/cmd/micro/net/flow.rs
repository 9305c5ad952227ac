//! `micro flow`: a stream whose receiver touches it.

use clap::Args;
use micro::net::{Kind, NetJob};
use model::{Bytes, Rate};

use super::cells::{NetCells, usual};
use super::flags::NetFlags;
use crate::exit::ExitOutcome;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter micro flow                                    TCP over loopback\n  \
    kvmeter micro flow --size 16KiB --stride 64,256,4096 --reuse 0,64MiB\n  \
    kvmeter micro flow --transport udp --rate 100k        loss is counted, not hidden\n  \
    kvmeter micro flow --listen 0.0.0.0                   on the other machine, then here:\n  \
    kvmeter micro flow --connect server --messages 1M --size 1KiB\n  \
    kvmeter micro flow --stack kernel,dpdk --size 1KiB --stride 64,4096\n\n\
    The server touches each byte of the stream whose position is a multiple of the stride, as soon\n\
    as the reuse distance has arrived after it. It checks what it touches.")]
pub struct FlowArgs {
    #[command(flatten)]
    pub net: NetFlags,
    /// Distance of touched bytes; up to 8 all bytes are read, at 0 none
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "64")]
    pub stride: Vec<Bytes>,
    /// Reuse distance: bytes that arrive on a connection after a byte, before it is touched
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "0")]
    pub reuse: Vec<Bytes>,
    /// Messages a second over all connections [default: as fast as possible]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
}

pub fn run(args: &FlowArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let rate = args.rate.map(|rate| rate.0);
    let job = NetJob { kind: Kind::Flow, rate, ..usual(&args.net) };
    let touches: Vec<(u64, u64)> = args
        .stride
        .iter()
        .flat_map(|stride| args.reuse.iter().map(move |reuse| (stride.0, reuse.0)))
        .collect();
    super::run(&args.net, &NetCells::new(&args.net, &job, &touches)?, show)
}
