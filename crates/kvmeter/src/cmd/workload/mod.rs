//! `kvmeter workload`: recorded requests in words and figures.

mod describe;

use clap::{Args, Subcommand};

use crate::exit::ExitOutcome;
use crate::output::Output;

#[derive(Debug, Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    pub what: WorkloadVerb,
}

#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// Describes a trace: operations, sizes, popularity, reuse, arrivals
    Describe(describe::DescribeArgs),
}

pub fn run(args: &WorkloadArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    match &args.what {
        WorkloadVerb::Describe(args) => describe::run(args, show),
    }
}
