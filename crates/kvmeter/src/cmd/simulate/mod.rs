//! `kvmeter simulate`: hardware that cannot be configured here.

mod dca;
mod dca_args;
mod recorded;
mod sweep;
mod thesis;
mod trace;
mod validate;

use clap::{Args, Subcommand};

use crate::exit::ExitOutcome;
use crate::output::Output;

#[derive(Debug, Args)]
pub struct SimulateArgs {
    #[command(subcommand)]
    pub what: SimulateVerb,
}

#[derive(Debug, Subcommand)]
pub enum SimulateVerb {
    /// The last-level cache with direct cache access, under packets, cores and co-runners
    Dca(Box<dca_args::DcaArgs>),
}

pub fn run(args: &SimulateArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    match &args.what {
        SimulateVerb::Dca(args) => dca::run(args, show),
    }
}
