//! `simulate dca --validate`: simulations beside published measurements.

use cachesim::validate::validate_series;
use report::simulation;

use super::dca_args::DcaArgs;
use crate::exit::ExitOutcome;
use crate::output::Output;

pub fn run(series: &[String], args: &DcaArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    args.check_page()?;
    let validation = validate_series(series)?;
    args.write_page(|| simulation::validation_page(&validation))?;
    match args.json {
        true => show.json(&validation)?,
        false => show.tables(&[simulation::validation(&validation)])?,
    }
    Ok(if validation.valid { ExitOutcome::Done } else { ExitOutcome::Invalid })
}
