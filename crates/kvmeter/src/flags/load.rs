//! The flags of load options, made from the table of options.

use std::marker::PhantomData;

use clap::builder::TypedValueParser;
use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use study::{Flag, FlagGroup, FlagValue, LOAD_OPTIONS, LoadOption, LoadOptions};

use crate::flags::SERVERS;

/// The options that the flags of a group give.
#[derive(Debug, Clone)]
pub struct OptionFlags<G> {
    pub given: LoadOptions,
    group: PhantomData<G>,
}

/// A type for each [`FlagGroup`].
pub trait Group {
    const GROUP: FlagGroup;
}

macro_rules! groups {
    ($($name:ident),+) => {$(
        #[derive(Debug, Clone)]
        pub enum $name {}

        impl Group for $name {
            const GROUP: FlagGroup = FlagGroup::$name;
        }
    )+};
}
groups!(Load, Window, ClosedLoop);

/// The flags of a group, in the order of help.
fn flags(group: FlagGroup) -> Vec<(&'static LoadOption, Flag)> {
    let flags = LOAD_OPTIONS.iter().filter_map(|option| Some((option, option.flag?)));
    let (moved, mut ordered): (Vec<_>, Vec<_>) =
        flags.filter(|(_, flag)| flag.group == group).partition(|(_, flag)| flag.follows.is_some());
    for (option, flag) in moved {
        let before = ordered.iter().position(|(other, _)| flag.follows == Some(other.key));
        ordered.insert(before.map_or(ordered.len(), |at| at + 1), (option, flag));
    }
    ordered
}

fn arg(option: &'static LoadOption, flag: Flag) -> Arg {
    let parse = option.parse;
    let arg = Arg::new(option.key)
        .long(flag.long)
        .aliases(other_name(flag.long))
        .short(flag.short)
        .help(option.help())
        .help_heading(option.for_servers.then_some(SERVERS));
    match flag.value {
        FlagValue::Number(name) => {
            let number = value_parser!(u32).try_map(move |number| parse(&number.to_string()));
            arg.value_name(name).allow_hyphen_values(true).value_parser(number)
        }
        FlagValue::Quantity(name) => {
            arg.value_name(name).allow_hyphen_values(true).value_parser(parse)
        }
        FlagValue::Text(name) => arg.value_name(name),
        FlagValue::Switch(_) => arg.action(ArgAction::SetTrue),
        FlagValue::Optional(name, missing) => arg
            .value_name(name)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(missing)
            .value_parser(parse),
    }
}

/// The name of the same flag in other tools, which is understood and not shown.
fn other_name(long: &str) -> Option<&'static str> {
    match long {
        "time" => Some("duration"),
        "warm-up" => Some("warmup"),
        _ => None,
    }
}

/// The option that a flag gives, if it was given.
fn given(matches: &ArgMatches, option: &LoadOption, flag: Flag) -> Result<LoadOptions, Error> {
    let text = match flag.value {
        FlagValue::Switch(value) => matches.get_flag(option.key).then_some(value),
        FlagValue::Text(_) => matches.get_one::<String>(option.key).map(String::as_str),
        _ => return Ok(matches.get_one::<LoadOptions>(option.key).cloned().unwrap_or_default()),
    };
    let option = text.map(option.parse).transpose();
    Ok(option.map_err(|why| Error::raw(ErrorKind::ValueValidation, why))?.unwrap_or_default())
}

impl<G: Group> Args for OptionFlags<G> {
    fn augment_args(command: Command) -> Command {
        command.args(flags(G::GROUP).into_iter().map(|(option, flag)| arg(option, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<G: Group> FromArgMatches for OptionFlags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |(option, flag)| given(matches, option, flag);
        let all = flags(G::GROUP).into_iter().map(given).collect::<Result<Vec<_>, _>>()?;
        let given = all.into_iter().fold(LoadOptions::default(), LoadOptions::or);
        Ok(OptionFlags { given, group: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let new = Self::from_arg_matches(matches)?;
        self.given = new.given.or(std::mem::take(&mut self.given));
        Ok(())
    }
}
