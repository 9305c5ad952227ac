//! The settings of a server in a study, checked against those that the program declares.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use model::suggest::hint;
use model::{Bytes, LONGEST_SOCKET, cpu_list};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use super::error::SettingError;

/// A setting that a program takes: its description in help and error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSetting {
    pub name: &'static str,
    /// As written in a study, or in words where the program chooses.
    pub default: &'static str,
    pub what: &'static str,
    /// The program's own options that it sets; `arguments` may not contain them.
    pub flags: &'static [&'static str],
}

impl ServerSetting {
    pub const fn new(name: &'static str, default: &'static str, what: &'static str) -> Self {
        ServerSetting { name, default, what, flags: &[] }
    }

    /// The same setting, as the only way to set these options of the program.
    pub const fn owns(self, flags: &'static [&'static str]) -> Self {
        ServerSetting { flags, ..self }
    }
}

pub(super) const PORT: ServerSetting =
    ServerSetting::new("port", "a free one", "TCP port to listen at");
pub(super) const SOCKET: ServerSetting =
    ServerSetting::new("socket", "none", "absolute path of a unix socket, instead of TCP");
pub(super) const LISTEN: ServerSetting = ServerSetting::new(
    "listen",
    "127.0.0.1",
    "IP address to listen at; `0.0.0.0` is every IPv4 one",
);
pub(super) const CPUS: ServerSetting =
    ServerSetting::new("cpus", "those of kvmeter", "CPUs that it may run on, such as `0-3,8`");
pub(super) const BINARY: ServerSetting =
    ServerSetting::new("binary", "the program's name, on the PATH", "another executable");
pub(super) const ARGUMENTS: ServerSetting =
    ServerSetting::new("arguments", "[]", "further arguments, passed on as they are");

/// A TOML value. Integers and lists of integers are accepted, fractions are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Number(number) => write!(f, "{number}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::List(items) => write!(f, "{items:?}"),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Number(number)
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(items: [&str; N]) -> Self {
        Value::List(items.iter().map(|item| (*item).to_owned()).collect())
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a whole number, true, false or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::from(text))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Number(number))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
                i64::try_from(number).map(Value::Number).map_err(E::custom)
            }
            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Flag(flag))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element::<Value>()? {
                    if matches!(item, Value::List(_)) {
                        return Err(de::Error::custom("a list within a list is not supported"));
                    }
                    list.push(item.to_string());
                }
                Ok(Value::List(list))
            }
        }
        from.deserialize_any(Any)
    }
}

/// A study's settings of a server: names and values, unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSettings(pub Vec<(String, Value)>);

impl ServerSettings {
    /// The same settings and one more.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }
}

impl Serialize for ServerSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for ServerSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = ServerSettings;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut table: A,
            ) -> Result<ServerSettings, A::Error> {
                let mut settings = ServerSettings::default();
                while let Some(pair) = table.next_entry()? {
                    settings.0.push(pair);
                }
                Ok(settings)
            }
        }
        from.deserialize_map(Table)
    }
}

/// Settings with names that the program knows.
#[derive(Debug)]
pub struct GivenSettings<'a> {
    program: &'static str,
    known: &'static [ServerSetting],
    settings: &'a ServerSettings,
}

impl<'a> GivenSettings<'a> {
    /// # Errors
    /// An unknown setting, with the nearest known one; one given twice.
    pub fn new(
        program: &'static str,
        known: &'static [ServerSetting],
        settings: &'a ServerSettings,
    ) -> Result<Self, SettingError> {
        for (at, (key, _)) in settings.0.iter().enumerate() {
            let key = key.clone();
            if !known.iter().any(|setting| setting.name == key) {
                let hint = hint(&key, known.iter().map(|setting| setting.name));
                return Err(SettingError::Unknown { program, key, hint });
            }
            if settings.0[..at].iter().any(|(earlier, _)| *earlier == key) {
                return Err(SettingError::Twice { program, key });
            }
        }
        Ok(GivenSettings { program, known, settings })
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        debug_assert!(self.known.iter().any(|setting| setting.name == key), "{key} not declared");
        self.settings.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether a setting is given.
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The error for an invalid value of a setting.
    pub fn wrong(&self, key: &'static str, takes: impl Into<String>) -> SettingError {
        let given = self.value(key).map(Value::to_string).unwrap_or_default();
        SettingError::Wrong { program: self.program, key, takes: takes.into(), given }
    }

    /// A text that is not empty.
    pub fn text(&self, key: &'static str) -> Result<Option<&'a str>, SettingError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Text(text)) if !text.is_empty() && !text.contains('\0') => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    /// A whole number within `range`.
    pub fn number(
        &self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, SettingError> {
        let number = match self.value(key) {
            None => return Ok(None),
            Some(Value::Number(number)) => u32::try_from(*number).ok(),
            Some(_) => None,
        };
        number.filter(|number| range.contains(number)).map(Some).ok_or_else(|| {
            self.wrong(key, format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// A size in bytes, a multiple of `step`, of at least one step.
    pub fn bytes(&self, key: &'static str, step: Bytes) -> Result<Option<Bytes>, SettingError> {
        let bytes = match self.value(key) {
            None => return Ok(None),
            Some(Value::Number(number)) => u64::try_from(*number).ok().map(Bytes),
            Some(Value::Text(text)) => text.parse().ok(),
            Some(_) => None,
        };
        let sound = |bytes: &Bytes| bytes.0 > 0 && bytes.0.is_multiple_of(step.0);
        bytes.filter(sound).map(Some).ok_or_else(|| match step.0 {
            1 => self.wrong(key, "a size such as `64MiB` or `16GiB`"),
            _ => self.wrong(key, format!("a size in whole {step}, such as `64MiB` or `16GiB`")),
        })
    }

    /// One of `known`.
    pub fn choice(
        &self,
        key: &'static str,
        known: &[&'static str],
    ) -> Result<Option<&'a str>, SettingError> {
        match self.text(key)? {
            Some(text) if !known.contains(&text) => {
                Err(self.wrong(key, format!("a name ({})", hint(text, known.iter().copied()))))
            }
            text => Ok(text),
        }
    }

    /// A list of texts.
    pub fn list(&self, key: &'static str) -> Result<&'a [String], SettingError> {
        match self.value(key) {
            None => Ok(&[]),
            Some(Value::List(items)) if !items.iter().any(|item| item.contains('\0')) => Ok(items),
            Some(_) => Err(self.wrong(key, "a list of texts such as `[\"-v\"]`")),
        }
    }
}

/// The settings of all programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonSettings {
    pub listen: IpAddr,
    /// A free port if not given.
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
    /// Those of kvmeter if not given.
    pub cpus: Option<Vec<u32>>,
    pub binary: Option<PathBuf>,
    pub arguments: Vec<String>,
}

impl CommonSettings {
    pub(super) fn read(given: &GivenSettings<'_>) -> Result<Self, SettingError> {
        let port = given.number("port", 1..=65_535)?;
        let listen = match given.text("listen")? {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(text) => text.parse().map_err(|_| {
                given.wrong("listen", "an IP address such as `127.0.0.1`, `::1` or `0.0.0.0`")
            })?,
        };
        let socket = given.text("socket")?.map(PathBuf::from);
        if let Some(path) = &socket {
            for other in ["port", "listen"] {
                if given.has(other) {
                    let program = given.program;
                    return Err(SettingError::Together { program, key: "socket", other });
                }
            }
            if !path.is_absolute() || path.as_os_str().len() > LONGEST_SOCKET {
                let takes = format!("an absolute path of at most {LONGEST_SOCKET} bytes");
                return Err(given.wrong("socket", takes));
            }
        }
        let cpus = match given.value("cpus") {
            None => None,
            Some(Value::Text(text)) => cpu_list::parse(text)
                .filter(|cpus| !cpus.is_empty())
                .map(Some)
                .ok_or_else(|| given.wrong("cpus", "a list such as `0-3,8`"))?,
            // One CPU may be written as a number.
            Some(Value::Number(_)) => given.number("cpus", 0..=65_535)?.map(|cpu| vec![cpu]),
            Some(_) => return Err(given.wrong("cpus", "a list such as `0-3,8`")),
        };
        let arguments = given.list("arguments")?.to_vec();
        for argument in &arguments {
            let long = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
            let owner = given.known.iter().find(|setting| setting.flags.contains(&long));
            if let Some(setting) = owner {
                return Err(SettingError::Argument {
                    program: given.program,
                    argument: argument.clone(),
                    instead: format!("give `{}` instead", setting.name),
                });
            }
        }
        Ok(CommonSettings {
            listen,
            port: port.and_then(|port| u16::try_from(port).ok()),
            socket,
            cpus,
            binary: given.text("binary")?.map(|text| Path::new(text).to_owned()),
            arguments,
        })
    }
}
