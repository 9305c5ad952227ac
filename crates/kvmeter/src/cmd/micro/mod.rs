//! `micro NAME`: microbenchmarks of the machine, one file each.

mod clock;
mod hog;
mod job;
mod latency;
mod net;
mod session;
mod stream;
mod switch;
mod syscall;

use clap::{Args, Subcommand};
use micro::job::{FlowArgs, HogArgs, LatencyArgs, PingpongArgs, PlacementFlags, StreamArgs};
use model::Span;

use crate::exit::ExitOutcome;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter micro stream                                 memory bandwidth with all cores\n  \
    kvmeter micro stream --threads 1,2,4 --size 16KiB..256MiB\n  \
    kvmeter micro hog --rate 10GB/s --cpus 2,3 --time 1m  consumes bandwidth\n  \
    kvmeter micro latency --cpus 3 --pages huge          caches and memory\n  \
    kvmeter micro pingpong --transport tcp,unix,udp       round trips over loopback\n  \
    kvmeter micro flow --stride 64,4096                   a stream, touched as it comes\n  \
    kvmeter micro clock                                  what reading the time costs\n\n\
    With --json each also reports the machine and whether it was quiet.")]
pub struct MicroArgs {
    #[command(subcommand)]
    pub verb: MicroVerb,
}

#[derive(Debug, Subcommand)]
pub enum MicroVerb {
    /// Memory bandwidth by STREAM's four kernels: copy, scale, add, triad
    Stream(StreamArgs),
    /// Consumes a given memory bandwidth, and reports the consumed one
    Hog(HogArgs),
    /// Latency of dependent loads, by size; finds the caches
    Latency(LatencyArgs),
    /// Cost and resolution of each clock
    Clock(TimedArgs),
    /// Cost of simple system calls
    Syscall(TimedArgs),
    /// Cost of handing work to another thread, on one CPU and between two
    Switch(TimedArgs),
    /// Round trips between a client and a server, by message size, transport and connections
    Pingpong(Box<PingpongArgs>),
    /// A stream to a receiver that touches the data with a stride and a reuse distance
    Flow(Box<FlowArgs>),
    /// A microbenchmark or hog of a study
    #[command(hide = true)]
    Job(job::JobArgs),
}

#[derive(Debug, Args)]
pub struct TimedArgs {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// Length of each measurement
    #[arg(long, short, value_name = "TIME", default_value = "200ms")]
    pub time: Span,
}

pub fn run(args: &MicroArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    match &args.verb {
        MicroVerb::Stream(args) => stream::run(args, show),
        MicroVerb::Hog(args) => hog::run(args, show),
        MicroVerb::Latency(args) => latency::run(args, show),
        MicroVerb::Clock(args) => clock::run(args, show),
        MicroVerb::Syscall(args) => syscall::run(args, show),
        MicroVerb::Switch(args) => switch::run(args, show),
        MicroVerb::Pingpong(args) => net::pingpong(args, show),
        MicroVerb::Flow(args) => net::flow(args, show),
        MicroVerb::Job(args) => job::run(args, show),
    }
}
