//! `simulate dca --trace`: a memory trace through the caches.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use cachesim::{Policy, SimulatedMachine};
use report::simulation;

use super::dca_args::DcaArgs;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

pub fn run(
    args: &DcaArgs,
    machine: &SimulatedMachine,
    path: &Path,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let [policy] = &args.policy[..] else {
        return Err(request("--trace: one policy of on, off and ways:N"));
    };
    let (setting, controller) = Policy::parse(policy)?.start(machine.choice())?;
    if controller.is_some() {
        return Err(request(format!(
            "--policy {policy}: a trace has no time, so nothing can be controlled; use on, off or ways:N"
        )));
    }
    let file = File::open(path)
        .map_err(|error| request(format!("{}: cannot be read: {error}", path.display())))?;
    let origin = path.display().to_string();
    let outcome = cachesim::trace::run(machine, setting.card, 1, &origin, BufReader::new(file))?;
    match args.json {
        true => show.json(&outcome)?,
        false => show.tables(&[simulation::trace(&outcome)])?,
    }
    Ok(ExitOutcome::Done)
}
