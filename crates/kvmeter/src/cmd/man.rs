use clap::CommandFactory;

use crate::args::{Cli, Man};
use crate::exit::{Outcome, request};

pub fn run(args: &Man) -> anyhow::Result<Outcome> {
    let place = args.directory.display();
    std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.directory))
        .map_err(|error| request(format!("{place}: {error}; name a directory to write to")))?;
    Ok(Outcome::Done)
}
