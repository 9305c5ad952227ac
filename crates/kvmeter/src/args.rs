//! The command line: its verbs. Each verb's flags, help and examples stand in its file.

use std::path::PathBuf;

use analyse::slo::Objective;
use clap::{Args, Parser, Subcommand, ValueHint};
use model::{Rate, Span};
use study::ReplaySpeed;

use crate::cmd::agent::AgentArgs;
use crate::cmd::compare::CompareArgs;
use crate::cmd::completions::CompletionsArgs;
use crate::cmd::cost::CostArgs;
use crate::cmd::doctor::DoctorArgs;
use crate::cmd::export::ExportArgs;
use crate::cmd::knob::KnobArgs;
use crate::cmd::man::ManArgs;
use crate::cmd::mbwu::MbwuArgs;
use crate::cmd::merge::MergeArgs;
use crate::cmd::micro::MicroArgs;
use crate::cmd::precondition::PreconditionArgs;
use crate::cmd::report::ReportArgs;
use crate::cmd::run::RunArgs;
use crate::cmd::simulate::SimulateArgs;
use crate::cmd::simulated_pass::SimulatedPassArgs;
use crate::flags::agents::AGENTS;
use crate::flags::load::{ClosedLoop, OptionFlags, Window};
use crate::flags::machine::MachineFlags;
use crate::flags::{LoadFlags, WorkloadFlags, share};
use crate::output::Common;
use crate::rate_sweep::RateSweep;

#[derive(Debug, Parser)]
#[command(
    name = "kvmeter",
    version,
    long_version = concat!(
        env!("CARGO_PKG_VERSION"), " (", env!("KVMETER_COMMIT"), ", ", env!("KVMETER_TARGET"), ")"
    ),
    about = "Measures key-value data serving: throughput, tail latency and cost per operation",
    after_help = "Examples:\n  \
        kvmeter doctor                                   what can be measured here\n  \
        kvmeter bench rocksdb:/tmp/db --workload ycsb-c  one measurement\n  \
        kvmeter run quickstart                           a study\n  \
        kvmeter report results/quickstart.sqlite --html report.html\n\n\
        Exit codes: 0 done, 1 the measurement failed or is invalid, 2 the request was wrong."
)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Says what can be measured on this machine, and what to do about the rest
    Doctor(DoctorArgs),
    /// Runs a study: a TOML file or a built-in name
    Run(RunArgs),
    /// One measurement of one store, without a study file
    Bench(Box<Bench>),
    /// Issues load on behalf of `bench`, `search` and `run` on another machine
    Agent(AgentArgs),
    /// Finds the highest rate at which a store meets a latency objective
    Search(Box<Search>),
    /// Shows the work units (MBWU) that a results file holds: the rounds, what limited each, the count
    Mbwu(MbwuArgs),
    /// Brings a device or a file to a known state: everything on it is lost
    Precondition(PreconditionArgs),
    /// Shows a results file: tables here, or an HTML page with figures
    Report(ReportArgs),
    /// Compares two results: every difference with its 95 % interval
    Compare(CompareArgs),
    /// Computes the cost of serving a load: servers, energy, break-even prices
    Cost(Box<CostArgs>),
    /// Merges results files, of one machine or several, into one
    Merge(MergeArgs),
    /// Writes results as CSV, JSON, Parquet or Markdown
    Export(ExportArgs),
    /// Measures the machine itself, without a store
    Micro(MicroArgs),
    /// Lists, shows, turns and restores the machine's knobs
    Knob(KnobArgs),
    /// Simulates hardware that cannot be configured here: direct cache access
    Simulate(SimulateArgs),
    /// Does one pass of a simulation
    #[command(hide = true)]
    SimulatedPass(SimulatedPassArgs),
    /// Prints the completions for a shell
    Completions(CompletionsArgs),
    /// Writes the manual pages into a directory
    Man(ManArgs),
}

impl Verb {
    /// Whether it measures, or reads the knobs that a measurement turns.
    pub fn measures(&self) -> bool {
        matches!(
            self,
            Verb::Run(_)
                | Verb::Bench(_)
                | Verb::Search(_)
                | Verb::Agent(_)
                | Verb::Doctor(_)
                | Verb::Micro(_)
        )
    }
}

/// How the URL of each store is written.
fn store_forms() -> String {
    let forms: Vec<String> = store::ADAPTERS.iter().map(store::Adapter::url_form).collect();
    format!("{}; options of a store as ?option=value&...", forms.join(", "))
}

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
    kvmeter bench memcached://127.0.0.1:11211 --trace cluster26.sort.zst --speed 2\n  \
    kvmeter bench null --trace cluster26.sort.zst --dry-run     what is in the trace\n  \
    kvmeter bench rocksdb:/tmp/db --probes auto --require energy.total --json\n  \
    kvmeter bench rocksdb:/tmp/db --knob idle=none --knob turbo=off\n\n\
    Data is loaded first unless the directory holds it already. What the options of\n\
    a store's URL do:\n  \
    kvmeter doctor --options")]
pub struct Bench {
    #[arg(help = store_forms())]
    pub store: String,
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// Replay this Twitter cache trace instead of a workload: plain, gzip or zstd; `-` is standard
    /// input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = [
        "preset", "records", "scale", "key_size", "value_size", "mix", "popularity",
        "multi_get", "hit_ratio"])]
    pub trace: Option<PathBuf>,
    /// Speed of the replay relative to the recording, or `max` for a closed loop in its order
    /// [default: 1]
    #[arg(long, value_name = "TIMES", requires = "trace", allow_hyphen_values = true)]
    pub speed: Option<ReplaySpeed>,
    /// Show the content of the trace, the writes of knobs, or the planned runs; run nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub load: LoadFlags,
    #[command(flatten)]
    pub machine: MachineFlags,
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
    /// Measure from this machine while the agents load, at this rate over one connection: only its
    /// latencies count
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = AGENTS,
        requires = "agents")]
    pub agents_measure_rate: Option<Rate>,
    /// Number of repeats
    #[arg(
        long,
        alias = "repeats",
        value_name = "N",
        allow_hyphen_values = true,
        default_value_t = 1
    )]
    pub repeat: u32,
    /// Store the result in this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// One JSON object; an array of them with --repeat or several rates
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter search memcached://127.0.0.1:11211 --slo 'p99<1ms' --workload etc --connections 16\n  \
    kvmeter search redis://127.0.0.1 --workload data-caching --time 10s    its own p99<1ms\n  \
    kvmeter search rocksdb:/tmp/db --slo 'read.p99.9<2ms & update.p99<5ms' --workload ycsb-a\n  \
    kvmeter search memcached://127.0.0.1:11211 --slo 'p99<1ms' --from 20k --to 200k --max-time 3m\n  \
    kvmeter search memcached --server threads=1 --slo 'p99<1ms' --workload etc\n\n\
    A rate holds when it is achieved, the whole 95 % interval of its response time meets the\n\
    objective, and the client had headroom. Every trial is stored. Exit code 1 if no rate held, or\n\
    if the client was the limit and not the server. What the options of a store's URL do:\n  \
    kvmeter doctor --options")]
pub struct Search {
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
    /// The most trials
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 40)]
    pub trials: usize,
    /// Time limit of all trials together, without loading
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub max_time: Option<Span>,
    #[command(flatten)]
    pub workload: WorkloadFlags,
    #[command(flatten)]
    pub load: LoadFlags,
    #[command(flatten)]
    pub machine: MachineFlags,
    /// Store the trials in this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}
