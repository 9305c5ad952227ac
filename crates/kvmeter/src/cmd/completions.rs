use clap::{Args, Command};

use crate::exit::ExitOutcome;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    kvmeter completions bash > ~/.local/share/bash-completion/completions/kvmeter")]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

pub fn run(args: &CompletionsArgs, command: &mut Command) -> anyhow::Result<ExitOutcome> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, command, "kvmeter", &mut text);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &text)?;
    Ok(ExitOutcome::Done)
}
