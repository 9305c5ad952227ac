//! Paths on the command line, whatever flag they belong to.

use clap::{Arg, ArgMatches, Command, ValueHint};
use model::tilde::unexpanded;

use crate::exit::request;

/// Refuses a `~` that the shell did not expand, as in `--out=~/results.sqlite`, which would create
/// a folder of that name.
pub fn check(command: &Command, matches: &ArgMatches) -> anyhow::Result<()> {
    for arg in command.get_arguments().filter(|arg| is_path(arg)) {
        let values = matches.try_get_raw(arg.get_id().as_str()).ok().flatten();
        for value in values.into_iter().flatten().filter_map(|value| value.to_str()) {
            if let Some(why) = unexpanded(value) {
                let place = arg.get_long().map_or_else(String::new, |long| format!("--{long}: "));
                return Err(request(format!("{place}{why}")));
            }
        }
    }
    match matches.subcommand() {
        Some((name, matches)) => {
            command.find_subcommand(name).map_or(Ok(()), |verb| check(verb, matches))
        }
        None => Ok(()),
    }
}

fn is_path(arg: &Arg) -> bool {
    matches!(
        arg.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath | ValueHint::ExecutablePath
    )
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::path::PathBuf;

    use super::*;

    /// Every argument of type `PathBuf` has a value hint and is checked.
    fn hints(command: &Command) {
        for arg in command.get_arguments() {
            if arg.get_value_parser().type_id() == TypeId::of::<PathBuf>() {
                assert!(is_path(arg), "{} of {}", arg.get_id(), command.get_name());
            }
        }
        command.get_subcommands().for_each(hints);
    }

    #[test]
    fn every_path_of_the_command_line_is_checked() {
        hints(&crate::command());
        let check = |args: &[&str]| {
            let command = crate::command();
            let matches = command.clone().try_get_matches_from(args).unwrap();
            check(&command, &matches).map_err(|error| error.to_string())
        };
        let error = check(&["kvmeter", "bench", "null", "--out=~/x.sqlite"]).unwrap_err();
        assert!(error.contains("--out: `~/x.sqlite`") && error.contains("$HOME/x"), "{error}");
        assert!(check(&["kvmeter", "man", "~"]).is_err());
        assert!(check(&["kvmeter", "bench", "null", "--out=x"]).is_ok());
    }
}
