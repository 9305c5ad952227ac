use std::io;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, Man};
use crate::exit::{Outcome, request};

pub fn run(args: &Man) -> anyhow::Result<Outcome> {
    let place = args.directory.display();
    std::fs::create_dir_all(&args.directory)
        .and_then(|()| pages(&args.directory))
        .map_err(|error| request(format!("{place}: {error}; name a directory to write to")))?;
    Ok(Outcome::Done)
}

/// The pages have names that anybody can guess: they are made apart and replace what is there.
fn pages(directory: &Path) -> io::Result<()> {
    let apart = tempfile::tempdir()?;
    clap_mangen::generate_to(Cli::command(), apart.path())?;
    for page in std::fs::read_dir(apart.path())? {
        let page = page?;
        safe_file::replace(&directory.join(page.file_name()), &std::fs::read(page.path())?)?;
    }
    Ok(())
}
