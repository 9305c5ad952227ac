//! What there is to know about one load option, and the macro that declares them.

use std::ops::Range;

use thiserror::Error;
use toml::Spanned;

use super::{LOAD_OPTIONS, LoadConfig, LoadOptions};

/// An option of a load: a key of `[load]` and `[measure]`, a flag of `bench` and `search`, and a
/// setting of a run.
pub struct LoadOption {
    /// In a study's tables and among the settings of a run.
    pub key: &'static str,
    pub flag: Option<Flag>,
    /// Only servers support it.
    pub for_servers: bool,
    /// It belongs to a measured phase, and a load phase has no such thing.
    pub(crate) measured_only: bool,
    pub(super) help: &'static str,
    /// The option alone, from the value of its flag.
    pub parse: fn(&str) -> Result<LoadOptions, String>,
    /// Where it stands in the study, if it was given.
    pub(crate) span: fn(&LoadOptions) -> Option<Range<usize>>,
    /// The setting of a run, if there is one.
    pub(super) recorded: fn(&LoadConfig) -> Option<String>,
}

impl LoadOption {
    /// The help of the flag.
    pub fn help(&self) -> &'static str {
        self.help.trim()
    }
}

impl LoadOptions {
    /// Where a key stands in the study, if it was given.
    pub(crate) fn span_of(&self, key: &str) -> Option<Range<usize>> {
        let option = LOAD_OPTIONS.iter().find(|option| option.key == key)?;
        (option.span)(self)
    }
}

/// A value that stands in no study.
pub fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// The flag of a load option.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub long: &'static str,
    pub short: Option<char>,
    pub value: FlagValue,
    pub group: FlagGroup,
    /// The key that it follows in help, where that is not the one before it in the table.
    pub follows: Option<&'static str>,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy)]
pub enum FlagValue {
    /// A whole number of this name.
    Number(&'static str),
    /// A number with a unit, of this name.
    Quantity(&'static str),
    /// A text of this name.
    Text(&'static str),
    /// Nothing: the option has this value where the flag is given.
    Switch(&'static str),
    /// A value of this name after `=`, or none for the second.
    Optional(&'static str, &'static str),
}

/// Flags that stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagGroup {
    /// Of `bench` and `search`.
    Load,
    /// The measured window, of `bench`.
    Window,
    /// A closed loop, of `bench`.
    ClosedLoop,
}

impl Flag {
    pub(super) const fn new(long: &'static str, value: FlagValue) -> Flag {
        Flag { long, short: None, value, group: FlagGroup::Load, follows: None }
    }

    pub(super) const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    pub(super) const fn of(self, group: FlagGroup) -> Flag {
        Flag { group, ..self }
    }

    pub(super) const fn follows(self, key: &'static str) -> Flag {
        Flag { follows: Some(key), ..self }
    }
}

/// An invalid load option, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}`: {why}")]
pub struct InvalidOption {
    /// The key in a study.
    pub key: &'static str,
    pub why: String,
}

impl InvalidOption {
    /// The flag of the key, without its hyphens.
    pub fn flag(&self) -> String {
        let option = LOAD_OPTIONS.iter().find(|option| option.key == self.key);
        match option.and_then(|option| option.flag) {
            Some(flag) => flag.long.to_owned(),
            None => self.key.replace('_', "-"),
        }
    }
}

/// Declares [`LoadOptions`], a field for each option, and the slice of all of them. A row has the
/// help, the key and the type, and of these what applies:
/// - `flag`: none for an option that has no flag, or one that is more than the option;
/// - `for_servers`: only servers support it;
/// - `measured_only`: a load phase does not take it;
/// - `check`: why the value alone is invalid;
/// - `apply`: puts it into the checked form, which holds the default until then;
/// - `recorded`: what a run's settings hold.
macro_rules! load_options {
    ($(
        $(#[doc = $help:literal])+
        $key:ident: $type:ty {
            $(flag: $flag:expr,)?
            $(for_servers: $for_servers:literal,)?
            $(measured_only: $measured_only:literal,)?
            $(check: $check:expr,)?
            $(apply: $apply:expr,)?
            recorded: $recorded:expr,
        }
    )+) => {
        /// The load of a phase as written: a table of a study, or the flags of `bench` and `search`.
        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct LoadOptions {
            $($(#[doc = $help])+ pub $key: Option<Spanned<$type>>,)+
        }

        /// Every load option.
        pub const LOAD_OPTIONS: &[LoadOption] = &[$(
            LoadOption {
                key: stringify!($key),
                flag: [$(Some($flag),)? None][0],
                for_servers: [$($for_servers,)? false][0],
                measured_only: [$($measured_only,)? false][0],
                help: concat!($($help),+),
                parse: |text| {
                    let value = text.parse::<$type>().map_err(|error| error.to_string())?;
                    Ok(LoadOptions { $key: Some(unplaced(value)), ..LoadOptions::default() })
                },
                span: |options| options.$key.as_ref().map(Spanned::span),
                recorded: $recorded,
            },
        )+];

        impl LoadOptions {
            /// These, and those of the others that are not among them.
            pub fn or(self, others: LoadOptions) -> LoadOptions {
                LoadOptions { $($key: self.$key.or(others.$key),)+ }
            }

            /// Checks each value by itself.
            pub(super) fn check_values(&self) -> Result<(), InvalidOption> {
                $($(
                    let check: fn(&$type) -> Result<(), String> = $check;
                    if let Some(Err(why)) = self.$key.as_ref().map(|given| check(given.get_ref())) {
                        return Err(InvalidOption { key: stringify!($key), why });
                    }
                )?)+
                Ok(())
            }

            /// Puts each value that does not depend on others into the checked form.
            pub(super) fn apply(&self, config: &mut LoadConfig) {
                $($(
                    let apply: fn(&mut LoadConfig, &$type) = $apply;
                    if let Some(given) = &self.$key {
                        apply(config, given.get_ref());
                    }
                )?)+
            }
        }
    };
}
pub(super) use load_options;
