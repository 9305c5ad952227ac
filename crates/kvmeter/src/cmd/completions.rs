use clap::CommandFactory;

use crate::args::{Cli, Completions};
use crate::exit::ExitOutcome;

pub fn run(args: &Completions) -> anyhow::Result<ExitOutcome> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kvmeter", &mut text);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &text)?;
    Ok(ExitOutcome::Done)
}
