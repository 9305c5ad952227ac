//! Arguments of `bench`.

use std::path::PathBuf;

use analyse::slo::Objective;
use clap::{Args, ValueHint};
use model::Rate;
use study::Profiling;

use super::rate_sweep::RateSweep;
use crate::exit::request;
use crate::flags::agents::{AGENTS, CLIENTS};
use crate::flags::live::LiveFlags;
use crate::flags::load::{ClosedLoop, OptionFlags, Window};
use crate::flags::machine::MachineFlags;
use crate::flags::trace::TraceFlags;
use crate::flags::{LoadFlags, WorkloadFlags, store_forms};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter bench null --workload ycsb-c                 what the harness itself costs\n  \
    kvmeter bench rocksdb:/tmp/db --workload ycsb-a --records 1M --time 10s --threads 2\n  \
    kvmeter bench 'rocksdb:/tmp/db?cache=2GiB&direct_io=on' --workload ycsb-b --json\n  \
    kvmeter bench lmdb:/tmp/lmdb --mix read=0.9,delete=0.1 --popularity uniform\n  \
    kvmeter bench rocksdb:/tmp/db --workload ycsb-c --rate 20k --arrivals poisson\n  \
    kvmeter bench memcached://127.0.0.1:11211 --workload etc --rate 20k\n  \
    kvmeter bench redis://127.0.0.1 --workload ycsb-b --rate 10k..100k/10 --slo 'p99<1ms'\n  \
    kvmeter bench memcached --server memory=1GiB,threads=2 --workload etc --rate 50k\n  \
    kvmeter bench memcached://server -j 8 --agents host1,host2 --agent-token-file agent.token\n  \
    kvmeter bench memcached://server -j 8 --agents-on ssh:host1,host2\n  \
    kvmeter bench memcached://127.0.0.1:11211 --trace cluster26.sort.zst --speed 2\n  \
    kvmeter bench null --trace cluster26.sort.zst --dry-run     what is in the trace\n  \
    kvmeter bench rocksdb:/tmp/db --probes auto --require energy.total --json\n  \
    kvmeter bench rocksdb:/tmp/db --knob idle=none --knob turbo=off\n  \
    kvmeter bench rocksdb:/tmp/db --workload ycsb-c --why    where its time goes\n  \
    kvmeter bench rocksdb:/tmp/db --live                 a page that shows it while it runs\n\n\
    Data is loaded first unless the directory already has it. What the options of\n\
    a store's URL do:\n  \
    kvmeter doctor --options")]
pub struct BenchArgs {
    #[arg(help = store_forms())]
    pub store: String,
    #[command(flatten)]
    pub workload: WorkloadFlags,
    #[command(flatten)]
    pub trace: TraceFlags,
    /// Show the content of the trace, the writes of knobs, or the planned runs; run nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub load: LoadFlags,
    #[command(flatten)]
    pub machine: MachineFlags,
    #[command(flatten)]
    pub live: LiveFlags,
    #[command(flatten)]
    pub window: OptionFlags<Window>,
    /// Operations per second of all threads together: an open loop. FROM..TO/N measures N rates
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<RateSweep>,
    /// Latency objective of an open loop, shown with its latency: 'p99<1ms'
    #[arg(long, value_name = "OBJECTIVE", requires = "rate")]
    pub slo: Option<Objective>,
    #[command(flatten)]
    pub closed_loop: OptionFlags<ClosedLoop>,
    /// Measure latency only from this machine, at this rate over one connection, while the agents
    /// issue the load
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = AGENTS,
        requires = CLIENTS)]
    pub agents_measure_rate: Option<Rate>,
    /// Measure latency from this agent's machine, or this host of --agents-on, instead of this one
    #[arg(long, value_name = "HOST[:PORT]", help_heading = AGENTS,
        requires = "agents_measure_rate")]
    pub agents_measure_host: Option<String>,
    /// Number of repeats
    #[arg(
        long,
        alias = "repeats",
        value_name = "N",
        allow_hyphen_values = true,
        default_value_t = 1
    )]
    pub repeat: u32,
    /// After the measured runs, run the load again and sample where its time goes: the functions of
    /// client and server that take the CPU time, and where their threads wait
    #[arg(long, conflicts_with_all = [CLIENTS, "file"])]
    pub why: bool,
    /// Samples a second of CPU time for --why [default: 499]
    #[arg(long, value_name = "N", requires = "why")]
    pub why_frequency: Option<u64>,
    /// Store the result in this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Print one JSON object; an array of them with --repeat or several rates
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// The pass that `--why` asks for.
    pub fn profiling(&self) -> anyhow::Result<Option<Profiling>> {
        let frequency = |profiling: Profiling| match self.why_frequency {
            None => Ok(profiling),
            Some(frequency) => profiling
                .with_frequency(frequency)
                .map_err(|why| request(format!("--why-frequency: {why}"))),
        };
        self.why.then(|| frequency(Profiling::default())).transpose()
    }
}
