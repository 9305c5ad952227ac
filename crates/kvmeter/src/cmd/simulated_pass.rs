//! A simulated pass for another kvmeter process; not for users.

use crate::args::SimulatedPass;
use crate::exit::{ExitOutcome, request};

pub fn run(args: &SimulatedPass) -> anyhow::Result<ExitOutcome> {
    let place = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| request(format!("{place}: {error}")))?;
    let pass = serde_json::from_str(&text).map_err(|error| request(format!("{place}: {error}")))?;
    study::run_pass(&pass)?;
    Ok(ExitOutcome::Done)
}
