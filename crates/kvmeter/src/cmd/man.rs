use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, ValueHint};

use crate::exit::{ExitOutcome, request};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kvmeter man ~/.local/share/man/man1 && man kvmeter")]
pub struct ManArgs {
    #[arg(value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
}

pub fn run(args: &ManArgs, command: Command) -> anyhow::Result<ExitOutcome> {
    let place = args.directory.display();
    std::fs::create_dir_all(&args.directory)
        .and_then(|()| pages(&args.directory, command))
        .map_err(|error| request(format!("{place}: {error}; name a directory to write to")))?;
    Ok(ExitOutcome::Done)
}

/// The names of the pages are predictable, so they are written to a temporary folder first and then
/// replaced safely.
fn pages(directory: &Path, command: Command) -> io::Result<()> {
    let apart = tempfile::tempdir()?;
    clap_mangen::generate_to(command, apart.path())?;
    for page in std::fs::read_dir(apart.path())? {
        let page = page?;
        safe_file::replace(&directory.join(page.file_name()), &std::fs::read(page.path())?)?;
    }
    Ok(())
}
