//! The command line: verbs, flags, their help and their examples.

use std::path::PathBuf;

use crate::agent_flags::{AGENTS, CredentialFlags};
use crate::cost_flags::{Cost, PlatformFlag};
use crate::flags::{LoadFlags, WorkloadFlags, share};
use crate::machine_flags::{MachineFlags, RecordedMachine};
use crate::micro_args::Micro;
use crate::rate_sweep::RateSweep;
use analyse::slo::Objective;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use model::{Bytes, Count, Rate, Span};
use study::{AgentPermissions, AllowedServer, ReplaySpeed};

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

#[derive(Debug, Args)]
pub struct Common {
    /// No progress and no notes; errors still show
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// When to colour; `NO_COLOR` is honoured
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Says what can be measured on this machine, and what to do about the rest
    Doctor(Doctor),
    /// Runs a study: a TOML file or a built-in name
    Run(Run),
    /// One measurement of one store, without a study file
    Bench(Box<Bench>),
    /// Issues load on behalf of `bench`, `search` and `run` on another machine
    Agent(Agent),
    /// Finds the highest rate at which a store meets a latency objective
    Search(Box<Search>),
    /// Shows the work units (MBWU) that a results file holds: the rounds, what limited each, the count
    Mbwu(Mbwu),
    /// Brings a device or a file to a known state: everything on it is lost
    Precondition(Precondition),
    /// Shows a results file: tables here, or an HTML page with figures
    Report(Report),
    /// Compares two results: every difference with its 95 % interval
    Compare(Compare),
    /// Computes the cost of serving a load: servers, energy, break-even prices
    Cost(Box<Cost>),
    /// Merges results files, of one machine or several, into one
    Merge(Merge),
    /// Writes results as CSV, JSON, Parquet or Markdown
    Export(Export),
    /// Measures the machine itself, without a store
    Micro(Micro),
    /// Lists, shows, turns and restores the machine's knobs
    Knob(Knob),
    /// Simulates hardware that cannot be configured here: direct cache access
    Simulate(Simulate),
    /// Does one pass of a simulation
    #[command(hide = true)]
    SimulatedPass(SimulatedPass),
    /// Prints the completions for a shell
    Completions(Completions),
    /// Writes the manual pages into a directory
    Man(Man),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter doctor\n  \
    kvmeter doctor --store rocksdb:/data/db     also looks at the disk under the store\n  \
    kvmeter doctor --options spill              what the options of a store's URL do\n  \
    kvmeter doctor --json | jq '.checks[] | select(.state != \"ok\")'")]
pub struct Doctor {
    /// Also check the file system and device of this store or path
    #[arg(long, value_name = "STORE|PATH")]
    pub store: Option<String>,
    /// Say what the options of this store's URL do, or of all stores', and nothing else
    #[arg(long, value_name = "STORE", num_args = 0..=1,
        conflicts_with_all = ["store", "record", "root"])]
    pub options: Option<Option<String>>,
    /// Record this machine in a text file for `--root`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// A recorded machine instead of this one: a file of `--record`, or a folder
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub root: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run quickstart\n  \
    kvmeter run quickstart --dry-run\n  \
    kvmeter run study.toml --out results.sqlite --set data.records=1M --set measure.time=30s\n  \
    kvmeter run study.toml --out results.sqlite --resume    resumes after a kill\n  \
    kvmeter run study.toml --scale small --max-time 30m     a smaller one, within half an hour\n  \
    kvmeter run mbwu --device /mnt/ssd1 --device /mnt/ssd2  work units of devices\n\n\
    Without --out the results go to results/NAME-TIME.sqlite.")]
pub struct Run {
    /// A study file, or the name of a built-in study
    #[arg(value_hint = ValueHint::FilePath)]
    pub study: String,
    /// The results file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Print the cells, every run in its order, and an estimate of time, disk and energy; run
    /// nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run the smaller or larger version that the study calls by this name
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Time limit from now on; repeats are dropped before cells
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub max_time: Option<Span>,
    /// Resume a stopped or killed run of this study
    #[arg(long)]
    pub resume: bool,
    /// Of a study with `[mbwu]`: a folder on the file system of a device that is measured, or a block
    /// device, which loses what is on it; once for each device
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub device: Vec<PathBuf>,
    /// The serial number or model of each block device, to confirm that it may be overwritten
    #[arg(long, value_name = "NAME", requires = "device")]
    pub confirm: Vec<String>,
    /// Content of a block device that may be lost, as --dry-run names it: ext4:3f2a91c0
    #[arg(long, value_name = "WORD", requires = "device", value_delimiter = ',')]
    pub overwrite: Vec<String>,
    /// Change a value of the study
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the HTML report here (next to the results file unless given)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// One JSON object for each run, a line each, as it ends; with --dry-run one array
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub recorded: RecordedMachine,
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
    /// spill:PATH?option=value&..., rocksdb:PATH, lmdb:PATH, fjall:PATH, null, memcached://HOST:PORT, redis://HOST:PORT
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
    /// Number of measured operations; in an open loop the time in which as many are due; of a trace
    /// the first ones
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub ops: Option<Count>,
    /// Length of the measured window [default: 10s without --ops; of a trace all of it]
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<Span>,
    /// Operations per second of all threads together: an open loop. FROM..TO/N measures N rates
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<RateSweep>,
    /// Latency objective of an open loop, shown with its latency: 'p99<1ms'
    #[arg(long, value_name = "OBJECTIVE", requires = "rate")]
    pub slo: Option<Objective>,
    /// Think time of a closed loop, between an answer and the next operation
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub think: Option<Span>,
    /// Wait for the steady state, in rounds of this length [default: 1s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s")]
    pub steady: Option<Span>,
    /// Measure from this machine while the agents load, at this rate over one connection: only its
    /// latencies count
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = AGENTS,
        requires = "agents")]
    pub agents_measure_rate: Option<Rate>,
    /// Number of repeats
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1)]
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
    openssl rand -hex 32 > agent.token && chmod 600 agent.token\n  \
    kvmeter agent --listen 0.0.0.0:9377 --agent-token-file agent.token\n  \
    kvmeter agent --listen 0.0.0.0 --agent-ca ca.pem --agent-cert host1.pem --agent-key host1.key\n\n\
    It serves one `kvmeter bench --agents`, `search --agents` or `run` at a time, until Ctrl-C.\n\
    A token alone travels in plain text. What a store's URL names of this machine, a password's\n\
    variable or file and the files of TLS, is used only where --allow-env or --allow-file names it\n\
    too, and only towards servers that --allow-server names.")]
pub struct Agent {
    /// Address to listen on [default port: 9377]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: String,
    #[command(flatten)]
    pub credentials: CredentialFlags,
    /// An environment variable that a store's URL may name as `password_env`; may be repeated
    #[arg(long, value_name = "NAME", help_heading = ALLOWED)]
    pub allow_env: Vec<String>,
    /// A file that a store's URL may name, written just so; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ALLOWED)]
    pub allow_file: Vec<PathBuf>,
    /// A server that may be loaded, at all its ports or one; may be repeated [default: any behind
    /// TCP, and none that is sent a password or shown a certificate of this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = AllowedServer::parse, help_heading = ALLOWED)]
    pub allow_server: Vec<AllowedServer>,
    /// The most connections at once; new ones replace the oldest that have not authenticated
    #[arg(long, value_name = "N", default_value_t = agents::DEFAULT_CONNECTIONS,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,
}

/// Heading of what a coordinator may use.
const ALLOWED: &str = "What a coordinator may use of this machine";

impl Agent {
    pub fn allowed(&self) -> AgentPermissions {
        AgentPermissions {
            variables: self.allow_env.clone(),
            files: self.allow_file.clone(),
            servers: self.allow_server.clone(),
        }
    }
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
    /// spill:PATH?option=value&..., rocksdb:PATH, lmdb:PATH, fjall:PATH, null, memcached://HOST:PORT, redis://HOST:PORT
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
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true, default_value = "5s")]
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

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run mbwu --device /mnt/ssd1 --device /mnt/ssd2 --out units.sqlite\n  \
    kvmeter mbwu units.sqlite\n  \
    kvmeter mbwu units.sqlite --platform name=box,price=2400,watts=180 \\\n               \
    --platform mbwu-embedded,mbwus=0.5\n  \
    kvmeter mbwu units.sqlite --json | jq '.units, .ended_by_resource'\n\n\
    Exit code 1 where no unit was proven: `at least` is not a unit.")]
pub struct Mbwu {
    /// A results file of a study with `[mbwu]`, or a part of it: FILE?key=value&key=value
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    /// Cost of an MBWU: this platform, a built-in one or a file, with your own values: price,
    /// watts, m2, amps, name; repeat for others, with their `mbwus`
    #[arg(long, value_name = "NAME|FILE[,KEY=VALUE...]")]
    pub platform: Vec<PlatformFlag>,
    /// One JSON object; an array where the file holds several evaluations
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter precondition /dev/nvme1n1 --dry-run          what would be done and lost, and how to confirm it\n  \
    kvmeter precondition /dev/nvme1n1 --lbas 75% --confirm S4EVNX0M123456\n  \
    kvmeter precondition /dev/nvme1n1 --random --limit 4h --confirm S4EVNX0M123456\n  \
    kvmeter precondition disk.img --size 1GiB --confirm disk.img\n\n\
    Exit code 1 where it ended early or was not steady, or the device failed.")]
pub struct Precondition {
    /// A whole block device, or a file
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// The serial number or model of the device, or the file's path, to confirm that it may be
    /// overwritten
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
    /// Content that may be lost, as --dry-run names it: ext4:3f2a91c0
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub overwrite: Vec<String>,
    /// Show what would be done; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Make or resize a file to this size
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Share of the addresses that is written, from the first on
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    pub lbas: f64,
    /// Sequential passes over that share
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    pub times: f64,
    /// Follow with random writes of 4 KiB until the steady state
    #[arg(long)]
    pub random: bool,
    /// Length of a round of random writes
    #[arg(long, value_name = "TIME", default_value = "1m", requires = "random")]
    pub round: Span,
    /// The most rounds of random writes
    #[arg(long, value_name = "N", default_value_t = 25, requires = "random")]
    pub rounds: u32,
    /// Writes in flight
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub depth: u32,
    /// Limit of bytes per second
    #[arg(long, value_name = "BYTES")]
    pub rate: Option<Bytes>,
    /// NVMe sanitize instead of discard: erases every namespace of the controller
    #[arg(long, conflicts_with_all = ["no_purge", "format"])]
    pub sanitize: bool,
    /// NVMe format with erasure of the user data instead of discard; the blocks keep their size
    #[arg(long, conflicts_with = "no_purge")]
    pub format: bool,
    /// Do not discard, sanitize or format first
    #[arg(long)]
    pub no_purge: bool,
    /// End after this time; continue with --resume
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Span>,
    /// Continue an earlier invocation
    #[arg(long)]
    pub resume: bool,
    /// File of the progress [default: next to a file; for a device in the state folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub state: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter report results.sqlite\n  \
    kvmeter report results.sqlite --html report.html\n  \
    kvmeter report 'results.sqlite?store=rocksdb&workload=ycsb-a' --markdown")]
pub struct Report {
    /// A results file, or a part of it: FILE?key=value&key=value
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print Markdown instead of tables for the terminal
    #[arg(long)]
    pub markdown: bool,
    /// Print JSON instead: an array with one object a run
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print only the answers of studies; with --json an array with one object a study
    #[arg(long)]
    pub answers: bool,
    /// Write the study's own figures as SVG, and the data behind each as CSV, into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub figures: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter merge arm.sqlite x86.sqlite --out both.sqlite\n  \
    kvmeter report both.sqlite --html both.html\n\n\
    Each run keeps its machine: a question or figure of a study may name `machine`.")]
pub struct Merge {
    /// Results files, or parts of them: FILE?key=value&key=value
    #[arg(required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// The new results file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter compare before.sqlite after.sqlite\n  \
    kvmeter compare 'results.sqlite?store=rocksdb' 'results.sqlite?store=lmdb'\n\n\
    Where the 95 % interval of a difference covers zero, there is no difference.")]
pub struct Compare {
    /// The first side: FILE or FILE?key=value&...
    #[arg(value_hint = ValueHint::FilePath)]
    pub a: String,
    /// The second side
    #[arg(value_hint = ValueHint::FilePath)]
    pub b: String,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter export results.sqlite --format csv > latency.csv\n  \
    kvmeter export results.sqlite --format parquet --table series --out series.parquet")]
pub struct Export {
    /// FILE or FILE?key=value&...
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    #[arg(long, short, value_name = "FORMAT", value_parser = PossibleValuesParser::new(
        record::export::EXPORTERS.map(|exporter| exporter.name())))]
    pub format: String,
    /// The table [default: depends on the format]
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(
        record::table::TableName::ALL.map(record::table::TableName::name)))]
    pub table: Option<String>,
    /// Where to write instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter knob list                                      the knobs and their levels here\n  \
    kvmeter knob show idle                                 one knob: scope, mechanism, proof\n  \
    kvmeter knob set idle=none --dry-run                   every write, without doing it\n  \
    kvmeter knob set idle=none turbo=off -- ./load --all   a command under knobs, then back\n  \
    kvmeter knob set governor=performance                  until `knob restore` or the next boot\n  \
    kvmeter knob restore\n\n\
    Every write is journalled before it is done. However kvmeter ends, the old values return.")]
pub struct Knob {
    #[command(subcommand)]
    pub verb: KnobVerb,
    /// The machine recorded in this folder instead of this one
    #[arg(long, global = true, hide = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum KnobVerb {
    /// Every knob with its present level and the levels that it has here
    List {
        /// One JSON array
        #[arg(long)]
        json: bool,
    },
    /// Everything about one knob
    Show {
        /// Its name, as `kvmeter knob list` has it
        knob: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Turns knobs: for a command, or until `knob restore`
    Set {
        /// Levels such as idle=none or governor=performance@0-3
        #[arg(required = true, value_name = "KNOB=LEVEL")]
        levels: Vec<String>,
        /// Print every write with its old and new value, without doing it
        #[arg(long)]
        dry_run: bool,
        /// Run this under the knobs, restore them, and end with its exit code
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Restores all knobs that kvmeter left turned
    Restore,
    /// Watches over the knobs of another kvmeter
    #[command(hide = true)]
    Supervise {
        /// The folder of its journal
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Simulate {
    #[command(subcommand)]
    pub what: Simulated,
}

#[derive(Debug, Subcommand)]
pub enum Simulated {
    /// The last-level cache with direct cache access, under packets, cores and co-runners
    Dca(Box<SimulateDca>),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter simulate dca                                       forwarding at 100 Gbit/s\n  \
    kvmeter simulate dca --sweep descriptors=128,1024,4096 --sweep ways=2,4,6\n  \
    kvmeter simulate dca --traffic co-run --policy on,off,iat,yield-search\n  \
    kvmeter simulate dca --machine my.toml --traffic my-traffic.toml --json\n  \
    kvmeter simulate dca --trace accesses.txt\n  \
    kvmeter simulate dca --validate\n\n\
    Machines: xeon-gold-6140, xeon-e5-2697-v2. Traffic: forward, ping-pong, flow, store, co-run, data-caching.\n\
    Policies: on, off, ways:N, phase-and-rate, iat, yield-search.\n\
    Every number is simulated; docs/cache-simulation.md says what is modelled and what is not.")]
pub struct SimulateDca {
    /// A built-in machine or a TOML file [default: xeon-gold-6140]
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub machine: Option<String>,
    /// Built-in traffic or a TOML file
    #[arg(long, default_value = "forward", value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub traffic: String,
    /// Policies that assign the ways
    #[arg(long, default_value = "on", value_delimiter = ',', value_name = "POLICY")]
    pub policy: Vec<String>,
    /// One or more values for packet, descriptors, cores, ways, rate, cycles, stride, working-set
    /// or seed; every combination is simulated
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub sweep: Vec<String>,
    /// Packets as in this recorded run: `FILE` or `FILE?key=value`
    #[arg(long, value_name = "RESULTS", conflicts_with = "trace", value_hint = ValueHint::FilePath)]
    pub from_run: Option<String>,
    /// A memory trace through the caches instead of traffic: a line an access,
    /// `core0 read 0x1000 8` or `card write 0x1000 1500`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["validate", "sweep"], value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Simulate every published point, or those of the series named, and show its error; ends
    /// with 1 where a limit is broken
    #[arg(long, value_name = "SERIES", num_args = 0.., require_equals = true, value_delimiter = ',', conflicts_with_all = ["sweep", "from_run"])]
    pub validate: Option<Vec<String>>,
    /// Simulate figures 4.1 to 4.9 of Basavaraj 2017, on its machine unless --machine names another
    #[arg(long, requires = "figures", conflicts_with_all = ["sweep", "validate", "trace", "from_run"])]
    pub seed_figures: bool,
    /// Draw the sweep into this HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub figures: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct SimulatedPass {
    /// The pass, as written by kvmeter
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kvmeter completions bash > ~/.local/share/bash-completion/completions/kvmeter")]
pub struct Completions {
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kvmeter man ~/.local/share/man/man1 && man kvmeter")]
pub struct Man {
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
}
