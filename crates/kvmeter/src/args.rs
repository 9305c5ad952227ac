//! The command line: verbs, flags, their help and their examples.

use std::path::PathBuf;

use crate::sweep::Sweep;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use model::{Count, Rate, Span};
use study::Speed;

#[derive(Debug, Parser)]
#[command(
    name = "kvmeter",
    version,
    about = "Measures key-value data serving: throughput, tail latency and cost per operation",
    after_help = "Examples:\n  \
        kvmeter doctor                                   what can be measured here, and what not\n  \
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
    /// Says what can be measured on this machine, what not, why, and what to do about it
    Doctor(Doctor),
    /// Runs a study: a TOML file or a built-in name
    Run(Run),
    /// One measurement of one store, without a study file
    Bench(Box<Bench>),
    /// Shows a results file: tables here, or an HTML page with figures
    Report(Report),
    /// Every difference between two results, with its 95 % interval
    Compare(Compare),
    /// Writes results as CSV, JSON, Parquet or Markdown
    Export(Export),
    /// Prints the completions for a shell
    Completions(Completions),
    /// Writes the manual pages into a directory
    Man(Man),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter doctor\n  \
    kvmeter doctor --store rocksdb:/data/db     also looks at the disk under the store\n  \
    kvmeter doctor --json | jq '.checks[] | select(.state != \"ok\")'")]
pub struct Doctor {
    /// Look at the file system and device under this store or path, too
    #[arg(long, value_name = "STORE|PATH")]
    pub store: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run quickstart\n  \
    kvmeter run quickstart --dry-run\n  \
    kvmeter run study.toml --out results.sqlite --set data.records=1M --set measure.time=30s\n  \
    kvmeter run study.toml --out results.sqlite --resume    goes on after a kill\n\n\
    Without --out the results go to results/NAME-TIME.sqlite.")]
pub struct Run {
    /// A study file, or the name of a built-in study
    #[arg(value_hint = ValueHint::FilePath)]
    pub study: String,
    /// The results file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Print every run in its order with an estimate of its time and disk, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on where a stopped or killed run of this study ended
    #[arg(long)]
    pub resume: bool,
    /// Change a value of the study
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the HTML report here (next to the results file unless given)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// One JSON object for each run, a line each, as it ends; with --dry-run one array
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter bench null --workload ycsb-c                 what the harness itself costs\n  \
    kvmeter bench rocksdb:/tmp/db --workload ycsb-a --records 1M --time 10s --threads 2\n  \
    kvmeter bench 'rocksdb:/tmp/db?cache=2GiB&direct_io=on' --workload ycsb-b --json\n  \
    kvmeter bench lmdb:/tmp/lmdb --mix read=0.9,delete=0.1 --popularity uniform\n  \
    kvmeter bench rocksdb:/tmp/db --workload ycsb-c --rate 20k --arrivals poisson\n  \
    kvmeter bench memcached://127.0.0.1:11211 --workload etc --rate 20k --connections 16\n  \
    kvmeter bench redis://127.0.0.1 --workload ycsb-b --connections 16 --rate 10k..100k/10\n  \
    kvmeter bench memcached://127.0.0.1:11211 --trace cluster26.sort.zst --speed 2\n  \
    kvmeter bench null --trace cluster26.sort.zst --dry-run     what is in the trace\n\n\
    Data is loaded first unless the directory holds it already. Stores and their options:\n  \
    kvmeter doctor")]
pub struct Bench {
    /// null, rocksdb:PATH?option=value&..., lmdb:PATH, fjall:PATH, memcached://HOST:PORT, redis://HOST:PORT
    pub store: String,
    /// A preset
    #[arg(long, short, value_name = "NAME", default_value = "ycsb-c",
        value_parser = PossibleValuesParser::new(workload::Spec::presets().iter().map(preset)))]
    pub workload: String,
    /// Replay this Twitter cache trace instead of a workload: plain, gzip or zstd; `-` is standard
    /// input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = [
        "workload", "records", "scale", "key_size", "value_size", "mix", "popularity",
        "multi_get", "hit_ratio"])]
    pub trace: Option<PathBuf>,
    /// How many times as fast as recorded the trace passes, or `max` for a closed loop in its
    /// order [default: 1]
    #[arg(long, value_name = "TIMES", requires = "trace", allow_hyphen_values = true)]
    pub speed: Option<Speed>,
    /// Say what is in the trace, and do nothing
    #[arg(long, requires = "trace")]
    pub dry_run: bool,
    /// Records that are loaded
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub records: Option<Count>,
    /// Measured operations; in an open loop the time in which so many are due; of a trace its first
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub ops: Option<Count>,
    /// Length of the measured window [default: 10s without --ops; of a trace all of it]
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<Span>,
    /// Asking threads
    #[arg(long, short = 'j', value_name = "N", allow_hyphen_values = true, default_value_t = 1)]
    pub threads: u32,
    /// Operations per second of all threads together: an open loop. FROM..TO/N measures N rates
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<Sweep>,
    /// When requests of an open loop are due: constant, poisson, pareto[:SHAPE], facebook
    /// [default: the workload's, else constant; of a trace within its seconds poisson]
    #[arg(long, value_name = "PROCESS")]
    pub arrivals: Option<String>,
    /// Pause of a closed loop between an answer and the next request
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub think: Option<Span>,
    /// Operations before the measured window
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warm_up: Option<Span>,
    /// Rate of the warm-up, where it has one of its own
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub warm_up_rate: Option<Rate>,
    /// Wait for the steady state: rounds of this length [default: 1s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s")]
    pub steady: Option<Span>,
    /// Connections of each thread to each server [default: 1]
    #[arg(long, short = 'c', value_name = "N", allow_hyphen_values = true, help_heading = SERVERS)]
    pub connections: Option<u32>,
    /// Requests that may be under way on one connection [default: 1]
    #[arg(long, short, value_name = "N", allow_hyphen_values = true, help_heading = SERVERS)]
    pub depth: Option<u32>,
    /// Requests of an open loop that may wait, in each thread, for a connection [default: 100k]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = SERVERS)]
    pub queue: Option<Count>,
    /// Look for answers without ever sleeping
    #[arg(long, help_heading = SERVERS)]
    pub busy_poll: bool,
    /// How the kernel is asked about sockets: epoll or io_uring
    #[arg(long, value_name = "ENGINE", help_heading = SERVERS)]
    pub engine: Option<String>,
    /// Keys that a read asks for at once
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub multi_get: Option<u32>,
    /// Share of reads that ask for what was loaded; the others ask for what never was
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub hit_ratio: Option<f64>,
    /// Set what a read missed, as the application behind a cache does
    #[arg(long)]
    pub refill: bool,
    /// Multiplies the preset's records, as CloudSuite scales its data
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, conflicts_with = "records")]
    pub scale: Option<f64>,
    /// Size of a key: 30, uniform:10..40, ...
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub key_size: Option<String>,
    /// Size of a value: 1KiB, uniform:100..2KiB, normal:1000,200, pareto:15,214.5,0.35, ...
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub value_size: Option<String>,
    /// Share of a value that a compressor can remove, 0 to 1
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub compressibility: Option<f64>,
    /// Weights instead of the preset's: read=0.9,update=0.1
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true)]
    pub mix: Option<String>,
    /// uniform, sequential, zipfian[:0.99], scrambled_zipfian[:0.99], latest[:0.99], ...
    #[arg(long, value_name = "NAME")]
    pub popularity: Option<String>,
    /// Decides the data, the stream and the arrivals
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1)]
    pub seed: u64,
    /// How often to measure
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1)]
    pub repeat: u32,
    /// Leave the threads to the scheduler
    #[arg(long)]
    pub no_pin: bool,
    /// Keep the result in this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// One JSON object; an array of them with --repeat
    #[arg(long)]
    pub json: bool,
}

/// Heading of what only concerns stores behind a network.
const SERVERS: &str = "Servers";

/// A preset as help and completion show it.
fn preset(preset: &workload::Preset) -> PossibleValue {
    PossibleValue::new(preset.name).help(preset.description)
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
    /// [default: what the format is best at]
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(
        record::table::Which::ALL.map(record::table::Which::name)))]
    pub table: Option<String>,
    /// Where to write instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
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
