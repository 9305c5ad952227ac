//! The options after the `?` of a store's URL: what an adapter declares and how values are parsed.

use std::str::FromStr;
use std::time::Duration;

use model::suggest::hint;
use model::{Bytes, Span};

use crate::{StoreError, StoreUrl};

/// An option that an adapter takes: its description in `--help`, `doctor` and error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionInfo {
    pub name: &'static str,
    /// As written in a URL, or in words where the library chooses.
    pub default: &'static str,
    pub what: &'static str,
    /// The data on disk depends on it: data written with another value does not match the URL.
    pub shapes_data: bool,
    /// Its value names a file or variable of the machine on which the URL is read.
    pub names: Option<MachineResource>,
}

/// The kind of machine resource that an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineResource {
    File,
    /// An environment variable.
    Variable,
}

impl OptionInfo {
    pub const fn new(name: &'static str, default: &'static str, what: &'static str) -> Self {
        Self { name, default, what, shapes_data: false, names: None }
    }

    /// The same option, whose value names a machine resource.
    pub const fn naming(self, what: MachineResource) -> Self {
        Self { names: Some(what), ..self }
    }

    /// The same option, on which the data on disk depends.
    pub const fn shaping(self) -> Self {
        Self { shapes_data: true, ..self }
    }
}

const A_TIME: &str = "a time such as `500ms` or `5s`";

fn span(text: &str) -> Option<Duration> {
    text.parse::<Span>().ok().map(|span| span.0).filter(|span| !span.is_zero())
}

/// The options of a URL, checked against the ones that the adapter declares.
#[derive(Debug)]
pub struct StoreOptions<'a> {
    url: &'a StoreUrl,
    known: &'static [OptionInfo],
}

impl<'a> StoreOptions<'a> {
    /// Refuses an option that is not known, naming the nearest that is, and one given twice.
    pub fn new(url: &'a StoreUrl, known: &'static [OptionInfo]) -> Result<Self, StoreError> {
        for (at, (name, _)) in url.options.iter().enumerate() {
            if !known.iter().any(|option| option.name == name) {
                let scheme = &url.scheme;
                return Err(StoreError::Request(if known.is_empty() {
                    format!("`{scheme}` takes no options, but `{name}` was given")
                } else {
                    let hint = hint(name, known.iter().map(|option| option.name));
                    format!("`{scheme}` has no option `{name}`; {hint}")
                }));
            }
            if url.options[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(StoreError::Request(format!("option `{name}` is given twice")));
            }
        }
        Ok(Self { url, known })
    }

    /// The text of an option, if it was given.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        debug_assert!(self.known.iter().any(|option| option.name == name), "{name} not declared");
        let (_, value) = self.url.options.iter().find(|(given, _)| given == name)?;
        Some(value)
    }

    fn read<T>(
        &self,
        name: &str,
        takes: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match read(text) {
            Some(value) => Ok(Some(value)),
            None => Err(StoreError::Request(format!(
                "option `{name}` of `{}` takes {takes}, not `{text}`",
                self.url.scheme
            ))),
        }
    }

    /// A size such as `2GiB`.
    pub fn bytes(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.read(name, "a size in bytes such as `512`, `64MiB` or `2GiB`", |text| {
            text.parse::<Bytes>().ok().map(|bytes| bytes.0)
        })
    }

    /// A time such as `500ms`, more than none.
    pub fn span(&self, name: &str) -> Result<Option<Duration>, StoreError> {
        self.read(name, A_TIME, span)
    }

    /// One of the names in `choices`, which gives its value, or a time.
    pub fn choice_or_span<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
        of_span: impl FnOnce(Duration) -> T,
    ) -> Result<Option<T>, StoreError> {
        let names: Vec<String> = choices.iter().map(|(choice, _)| format!("`{choice}`")).collect();
        self.read(name, &format!("{} or {A_TIME}", names.join(", ")), |text| {
            let named = choices.iter().find(|(choice, _)| *choice == text);
            named.map(|(_, value)| *value).or_else(|| span(text).map(of_span))
        })
    }

    /// `on` or `off`, or `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, StoreError> {
        self.read(name, "`on` or `off`", |text| match text {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        })
    }

    /// A whole number of at least `least` and at most `most`.
    pub fn integer<T>(&self, name: &str, least: T, most: T) -> Result<Option<T>, StoreError>
    where
        T: FromStr + PartialOrd + Copy + std::fmt::Display,
    {
        let takes = format!("a whole number from {least} to {most}");
        self.read(name, &takes, |text| {
            text.parse().ok().filter(|value| (least..=most).contains(value))
        })
    }

    /// A number of at least `least` and at most `most`.
    pub fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f64>, StoreError> {
        let takes = format!("a number from {least} to {most}");
        self.read(name, &takes, |text| {
            text.parse().ok().filter(|value| (least..=most).contains(value))
        })
    }

    /// One of the names in `choices`; returns its value.
    pub fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, StoreError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let names = choices.iter().map(|(choice, _)| *choice);
        match choices.iter().find(|(choice, _)| *choice == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(StoreError::Request(format!(
                "option `{name}` of `{}` does not take `{text}`; {}",
                self.url.scheme,
                hint(text, names)
            ))),
        }
    }
}

/// `on` or `off`, as [`StoreOptions::flag`] reads it.
pub fn on_off(value: bool) -> String {
    (if value { "on" } else { "off" }).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[OptionInfo] = &[
        OptionInfo::new("cache", "8MiB", "a cache"),
        OptionInfo::new("sync", "off", "a flag"),
        OptionInfo::new("jobs", "2", "a number"),
        OptionInfo::new("compression", "none", "a choice"),
        OptionInfo::new("every", "never", "a choice or a time"),
    ];
    const EVERY: [(&str, Option<Duration>); 2] =
        [("never", None), ("always", Some(Duration::ZERO))];

    fn given(options: &str) -> StoreUrl {
        let options = options.split('&').map(|option| {
            let (name, value) = option.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        StoreUrl {
            scheme: "any".to_owned(),
            path: "p".into(),
            servers: Vec::new(),
            options: options.collect(),
        }
    }

    #[test]
    fn values_are_typed() {
        let url = given("cache=2GiB&sync=on&jobs=4&compression=lz4");
        let options = StoreOptions::new(&url, KNOWN).unwrap();
        assert_eq!(options.bytes("cache").unwrap(), Some(2 << 30));
        assert_eq!(options.flag("sync").unwrap(), Some(true));
        assert_eq!(options.integer("jobs", 1, 64).unwrap(), Some(4));
        let choices = [("none", 0), ("lz4", 1)];
        assert_eq!(options.choice("compression", &choices).unwrap(), Some(1));
        for (text, every) in [
            ("never", None),
            ("always", Some(Duration::ZERO)),
            ("500ms", Some(Duration::from_millis(500))),
            // As everywhere in kvmeter, a number alone is in seconds.
            ("5", Some(Duration::from_secs(5))),
        ] {
            let url = given(&format!("every={text}"));
            let options = StoreOptions::new(&url, KNOWN).unwrap();
            assert_eq!(options.choice_or_span("every", &EVERY, Some).unwrap(), Some(every));
        }
        let url = given("sync=false");
        let options = StoreOptions::new(&url, KNOWN).unwrap();
        assert_eq!(options.flag("sync").unwrap(), Some(false));
        assert_eq!(options.bytes("cache").unwrap(), None);
    }

    #[test]
    fn errors_name_the_option() {
        let message = |url: &str, read: fn(&StoreOptions) -> Option<StoreError>| {
            let url = given(url);
            match StoreOptions::new(&url, KNOWN) {
                Err(error) => error.to_string(),
                Ok(options) => read(&options).map_or(String::new(), |error| error.to_string()),
            }
        };
        assert_eq!(
            message("cahce=1", |_| None),
            "`any` has no option `cahce`; did you mean `cache`?"
        );
        assert_eq!(message("sync=on&sync=off", |_| None), "option `sync` is given twice");
        assert_eq!(
            message("sync=maybe", |options| options.flag("sync").err()),
            "option `sync` of `any` takes `on` or `off`, not `maybe`"
        );
        assert_eq!(
            message("jobs=0", |options| options.integer("jobs", 1, 64).err()),
            "option `jobs` of `any` takes a whole number from 1 to 64, not `0`"
        );
        assert_eq!(
            message("compression=lz5", |options| options
                .choice("compression", &[("none", 0), ("lz4", 1)])
                .err()),
            "option `compression` of `any` does not take `lz5`; did you mean `lz4`?"
        );
        for wrong in ["foo", "0s"] {
            assert_eq!(
                message(&format!("every={wrong}"), |options| options
                    .choice_or_span("every", &EVERY, Some)
                    .err()),
                format!(
                    "option `every` of `any` takes `never`, `always` or a time such as `500ms` or \
                     `5s`, not `{wrong}`"
                )
            );
        }
        let cache = message("cache=big", |options| options.bytes("cache").err());
        assert!(cache.contains("`cache`") && cache.contains("`big`"), "{cache}");
    }

    #[test]
    fn store_without_options_refuses_them() {
        let error = StoreOptions::new(&given("sync=on"), &[]).unwrap_err().to_string();
        assert_eq!(error, "`any` takes no options, but `sync` was given");
    }
}
