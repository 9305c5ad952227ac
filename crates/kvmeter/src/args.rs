//! The command line: its verbs. Each verb's flags, help and examples stand in its file.

use clap::{Parser, Subcommand};
use store::StoreUrl;

use crate::cmd::agent::AgentArgs;
use crate::cmd::bench::BenchArgs;
use crate::cmd::compare::CompareArgs;
use crate::cmd::completions::CompletionsArgs;
use crate::cmd::cost::CostArgs;
use crate::cmd::doctor::DoctorArgs;
use crate::cmd::export::ExportArgs;
use crate::cmd::history::HistoryArgs;
use crate::cmd::knob::KnobArgs;
use crate::cmd::leased::LeasedArgs;
use crate::cmd::man::ManArgs;
use crate::cmd::mbwu::MbwuArgs;
use crate::cmd::merge::MergeArgs;
use crate::cmd::micro::MicroArgs;
use crate::cmd::plan::PlanArgs;
#[cfg(feature = "kubernetes")]
use crate::cmd::pod_shell::PodShellArgs;
use crate::cmd::precondition::PreconditionArgs;
use crate::cmd::report::ReportArgs;
use crate::cmd::run::RunArgs;
use crate::cmd::search::SearchArgs;
use crate::cmd::server::ServerArgs;
use crate::cmd::simulate::SimulateArgs;
use crate::cmd::simulated_pass::SimulatedPassArgs;
use crate::cmd::workload::WorkloadArgs;
use crate::output::Common;

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
        Exit codes: 0 done, 1 the measurement failed or is invalid, or a gate (compare --fail-on) \
        proved\na regression, 2 the request was wrong, 3 the data do not suffice for a gate."
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
    /// Measures one store, without a study file
    Bench(Box<BenchArgs>),
    /// Issues load on behalf of `bench`, `search` and `run` on another machine
    Agent(AgentArgs),
    /// Finds the highest rate at which a store meets a latency objective
    Search(Box<SearchArgs>),
    /// Shows the work units (MBWU) that a results file holds: the rounds, what limited each, the
    /// count
    Mbwu(MbwuArgs),
    /// Brings a device or a file to a known state: everything on it is lost
    Precondition(PreconditionArgs),
    /// Shows a results file: tables here, or an HTML page with figures
    Report(ReportArgs),
    /// Compares two results: every difference with its 95 % interval
    Compare(CompareArgs),
    /// Shows where metrics changed over many results
    History(HistoryArgs),
    /// Computes the cost of serving a load: servers, energy, break-even prices
    Cost(Box<CostArgs>),
    /// Plans a purchase: how many of which machine serve a load, and at what cost
    Plan(Box<PlanArgs>),
    /// Merges results files, of one machine or several, into one
    Merge(MergeArgs),
    /// Writes results as CSV, JSON, Parquet, Markdown, or for HdrHistogram's tools
    Export(ExportArgs),
    /// Measures the machine itself, without a store
    Micro(MicroArgs),
    /// Describes the requests of a trace: sizes, popularity, reuse, arrivals
    Workload(WorkloadArgs),
    /// Lists, shows, turns and restores the machine's knobs
    Knob(KnobArgs),
    /// Simulates hardware that cannot be configured here: direct cache access
    Simulate(SimulateArgs),
    /// Runs a command as long as a coordinator renews its lease
    #[command(hide = true)]
    Leased(LeasedArgs),
    /// Runs a script in a pod, with its standard streams and exit code
    #[cfg(feature = "kubernetes")]
    #[command(hide = true)]
    PodShell(PodShellArgs),
    /// Runs one server for a coordinator on another machine
    #[command(hide = true)]
    Server(ServerArgs),
    /// Does one pass of a simulation
    #[command(hide = true)]
    SimulatedPass(SimulatedPassArgs),
    /// Prints completions for a shell
    Completions(CompletionsArgs),
    /// Writes the manual pages into a directory
    Man(ManArgs),
}

impl Verb {
    /// The plug-in that it would load.
    pub fn plugin(&self) -> anyhow::Result<Option<StoreUrl>> {
        let named = match self {
            Verb::Bench(args) => Some(args.store.as_str()),
            Verb::Search(args) => Some(args.store.as_str()),
            Verb::Doctor(args) => args.options.as_ref().and_then(|store| store.as_deref()),
            Verb::Run(args) => return args.plugin(),
            _ => None,
        };
        match named.filter(|store| store.starts_with("plugin:")) {
            Some(store) => Ok(Some(store.parse()?)),
            None => Ok(None),
        }
    }

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
