use std::io;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, Man};
use crate::exit::{ExitOutcome, request};

pub fn run(args: &Man) -> anyhow::Result<ExitOutcome> {
    let place = args.directory.display();
    std::fs::create_dir_all(&args.directory)
        .and_then(|()| pages(&args.directory))
        .map_err(|error| request(format!("{place}: {error}; name a directory to write to")))?;
    Ok(ExitOutcome::Done)
}

/// The names of the pages are predictable, so they are written to a temporary folder first and then
/// replaced safely.
fn pages(directory: &Path) -> io::Result<()> {
    let apart = tempfile::tempdir()?;
    clap_mangen::generate_to(Cli::command(), apart.path())?;
    for page in std::fs::read_dir(apart.path())? {
        let page = page?;
        safe_file::replace(&directory.join(page.file_name()), &std::fs::read(page.path())?)?;
    }
    Ok(())
}
