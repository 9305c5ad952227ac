//! Arguments of `search`.

use std::path::PathBuf;

use analyse::slo::Objective;
use clap::{Args, ValueHint};
use model::{Rate, Span};

use crate::flags::live::LiveFlags;
use crate::flags::machine::MachineFlags;
use crate::flags::trace::TraceFlags;
use crate::flags::{LoadFlags, WorkloadFlags, share, store_forms};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter search memcached://127.0.0.1:11211 --slo 'p99<1ms' --workload etc --connections 16\n  \
    kvmeter search redis://127.0.0.1 --workload data-caching --time 10s    its own p99<1ms\n  \
    kvmeter search rocksdb:/tmp/db --slo 'read.p99.9<2ms & update.p99<5ms' --workload ycsb-a\n  \
    kvmeter search memcached://127.0.0.1:11211 --slo 'p99<1ms' --from 20k --to 200k --max-time 3m\n  \
    kvmeter search memcached --server threads=1 --slo 'p99<1ms' --workload etc\n  \
    kvmeter search memcached://127.0.0.1:11211 --slo 'p99<1ms' --trace monday.kvtrace --refill\n\n\
    A rate holds when it is achieved, the whole 95 % interval of its response time meets the\n\
    objective, and the client had headroom. Every trial is stored. Exit code 1 if no rate held, or\n\
    if the client was the limit and not the server. What the options of a store's URL do:\n  \
    kvmeter doctor --options")]
pub struct SearchArgs {
    #[arg(help = store_forms())]
    pub store: String,
    /// Latency objective: 'p99<1ms', 'read.p99.9<500us & mean<200us' [default: the workload's]
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Option<Objective>,
    /// The lowest rate to try [default: 10]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub from: Option<Rate>,
    /// The highest rate to try
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub to: Option<Rate>,
    /// Resolution: relative distance of the rates that did and did not hold
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "2%", value_parser = share)]
    pub resolution: f64,
    /// Length of a trial; an unclear one is repeated for longer
    #[arg(
        long,
        alias = "duration",
        short,
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "5s"
    )]
    pub time: Span,
    /// Maximum number of trials
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 40)]
    pub trials: usize,
    /// Time limit of all trials together, without loading
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub max_time: Option<Span>,
    #[command(flatten)]
    pub workload: WorkloadFlags,
    #[command(flatten)]
    pub trace: TraceFlags,
    /// A search holds each rate that it tries; understood to say what to do instead
    #[arg(long, value_name = "PROFILE", hide = true)]
    pub rate_profile: Option<String>,
    #[command(flatten)]
    pub load: LoadFlags,
    #[command(flatten)]
    pub machine: MachineFlags,
    #[command(flatten)]
    pub live: LiveFlags,
    /// Store the trials in this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
