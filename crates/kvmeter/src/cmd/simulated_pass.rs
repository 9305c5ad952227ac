//! A simulated pass for another kvmeter process; not for users.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::{ExitOutcome, request};

#[derive(Debug, Args)]
pub struct SimulatedPassArgs {
    /// The pass, as written by kvmeter
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

pub fn run(args: &SimulatedPassArgs) -> anyhow::Result<ExitOutcome> {
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| request(format!("{place}: {error}")))?;
    let pass = serde_json::from_str(&text).map_err(|error| request(format!("{place}: {error}")))?;
    execute::run_pass(&pass)?;
    Ok(ExitOutcome::Done)
}
