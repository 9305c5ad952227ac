//! `kvmeter workload`: recorded requests in words and figures.

mod capture;
mod check;
mod describe;
mod file;
mod results;

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
    /// Captures the requests of a running server as a trace without values and names
    Capture(capture::CaptureArgs),
}

pub fn run(args: &WorkloadArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    match &args.what {
        WorkloadVerb::Describe(args) => describe::run(args, show),
        WorkloadVerb::Capture(args) => capture::run(args, show),
    }
}
