//! The settings of microbenchmarks, as the flags of `kvmeter micro` have them.

use model::suggest::hint;
use model::{Bytes, Count, Rate, Span};
use toml::Spanned;

use super::BenchTable;
use crate::error::StudyError;
use crate::source::Source;
use crate::spec::option_text;

/// What the text of a setting says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    Size,
    Count,
    Rate,
    Span,
    Cpus,
    Number,
    Word(&'static [&'static str]),
    /// Yes or no: the flag that is given for `on` and for `off`, if any.
    Switch(Option<&'static str>, Option<&'static str>),
    Text,
}

/// On which stack a setting means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Any,
    Kernel,
    Dpdk,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    takes: Takes,
    of: Of,
}

const fn any(name: &'static str, takes: Takes) -> Key {
    Key { name, takes, of: Of::Any }
}

const fn kernel(name: &'static str, takes: Takes) -> Key {
    Key { name, takes, of: Of::Kernel }
}

const fn dpdk(name: &'static str, takes: Takes) -> Key {
    Key { name, takes, of: Of::Dpdk }
}

const STACK: &str = "stack";
const KERNEL: &str = "kernel";
const DPDK: &str = "dpdk";

const NET: &[Key] = &[
    any(STACK, Takes::Word(&[KERNEL, DPDK])),
    any("size", Takes::Size),
    any("connections", Takes::Number),
    any("threads", Takes::Number),
    any("time", Takes::Span),
    any("messages", Takes::Count),
    any("warm_up", Takes::Span),
    any("timeout", Takes::Span),
    any("cpus", Takes::Cpus),
    any("server_cpus", Takes::Cpus),
    any("connect", Takes::Text),
    any("pin", Takes::Switch(None, Some("no-pin"))),
    kernel("transport", Takes::Word(&["tcp", "unix", "udp"])),
    kernel("busy_poll", Takes::Switch(Some("busy-poll"), None)),
    kernel("socket_buffer", Takes::Size),
    dpdk("port", Takes::Text),
    dpdk("server_port", Takes::Text),
    dpdk("eal", Takes::Text),
    dpdk("server_eal", Takes::Text),
    dpdk("frames", Takes::Count),
    dpdk("mtu", Takes::Number),
];

const FLOW: &[Key] =
    &[any("stride", Takes::Size), any("reuse", Takes::Size), any("rate", Takes::Rate)];

const MEMORY: &[Key] = &[
    any("size", Takes::Size),
    any("time", Takes::Span),
    any("cpus", Takes::Cpus),
    any("pages", Takes::Word(&["system", "huge", "small", "reserved"])),
    any("place", Takes::Text),
];

const STREAM: &[Key] = &[
    any("threads", Takes::Number),
    any("rounds", Takes::Number),
    any("stores", Takes::Word(&["plain", "streaming"])),
];

const LATENCY: &[Key] = &[any("stride", Takes::Size)];

/// A microbenchmark that a study can run.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) name: &'static str,
    keys: [&'static [Key]; 2],
    /// Settings without which a run would be of many cells, or of none.
    needs: &'static [&'static str],
    /// Seconds of its window where the study says nothing, and of a warm-up before it.
    pub(super) usual_s: (f64, f64),
}

const DECLARED: [Declared; 4] = [
    Declared { name: "pingpong", keys: [NET, &[]], needs: &["size"], usual_s: (1.0, 0.1) },
    Declared { name: "flow", keys: [NET, FLOW], needs: &["size"], usual_s: (1.0, 0.1) },
    Declared { name: "stream", keys: [MEMORY, STREAM], needs: &[], usual_s: (1.0, 0.0) },
    Declared { name: "latency", keys: [MEMORY, LATENCY], needs: &["size"], usual_s: (0.05, 0.0) },
];

/// A setting of a table that means something: its declaration, its text, and where it stands.
pub(super) type Chosen<'a> = (Key, String, &'a Spanned<toml::Value>);

/// The bench of this name.
pub(super) fn declared(
    source: &Source,
    name: &Spanned<String>,
) -> Result<&'static Declared, StudyError> {
    let known = DECLARED.iter().map(|declared| declared.name);
    DECLARED.iter().find(|declared| declared.name == name.get_ref()).ok_or_else(|| {
        let wrong = name.get_ref();
        let words = format!("there is no microbenchmark `{wrong}`; {}", hint(wrong, known));
        source.at(name.span(), &words)
    })
}

impl Declared {
    fn keys(&self) -> impl Iterator<Item = &'static Key> + Clone {
        self.keys.into_iter().flatten()
    }

    /// The settings of a table in the order of their declaration, each with a value that it takes.
    pub(super) fn chosen<'a>(
        &self,
        source: &Source,
        name: &Spanned<String>,
        table: &'a BenchTable,
    ) -> Result<Vec<Chosen<'a>>, StudyError> {
        let mut chosen = Vec::new();
        for (key, value) in table {
            let wrong = key.get_ref();
            let Some(known) = self.keys().find(|known| known.name == wrong) else {
                let words = format!(
                    "`{}` has no setting `{wrong}`; {}",
                    self.name,
                    hint(wrong, self.keys().map(|known| known.name))
                );
                return Err(source.at(key.span(), &words));
            };
            let text = option_text(value.get_ref())
                .and_then(|text| known.takes.read(&text))
                .map_err(|words| source.at(value.span(), &format!("{wrong}: {words}")))?;
            chosen.push((*known, text, value));
        }
        let stack = text_of(&chosen, STACK).unwrap_or(KERNEL).to_owned();
        let alien = if stack == DPDK { Of::Kernel } else { Of::Dpdk };
        if let Some((key, ..)) = chosen.iter().find(|(key, ..)| key.of == alien) {
            let place = table.keys().find(|known| known.get_ref() == key.name);
            let words = match alien {
                Of::Kernel => "this is a setting of the kernel's stack, and `stack` is \"dpdk\"",
                _ => "this is a setting of DPDK; say `stack = \"dpdk\"`, or leave it out",
            };
            return Err(source.at(place.map_or(name.span(), Spanned::span), words));
        }
        if let Some(needed) = self.needs.iter().find(|needed| text_of(&chosen, needed).is_none()) {
            let words = format!(
                "`{needed}` is missing: a run is of one; give it here, or let a factor set \
                 `micro.{}.{needed}`",
                self.name
            );
            return Err(source.at(name.span(), &words));
        }
        chosen.sort_by_key(|(key, ..)| self.keys().position(|known| known.name == key.name));
        Ok(chosen)
    }
}

/// The text of a setting, if the table has it.
pub(super) fn text_of<'a>(chosen: &'a [Chosen<'_>], name: &str) -> Option<&'a str> {
    chosen.iter().find(|(key, ..)| key.name == name).map(|(_, text, _)| text.as_str())
}

impl Key {
    /// The flag of the command with this text.
    pub(super) fn flag(self, text: &str) -> Option<String> {
        let flag = |word: &str| format!("--{word}");
        match self.takes {
            Takes::Switch(on, off) => if text == "on" { on } else { off }.map(flag),
            _ => Some(format!("--{}={text}", self.name.replace('_', "-"))),
        }
    }
}

impl Takes {
    /// The value as it is written everywhere.
    fn read(self, text: &str) -> Result<String, String> {
        fn through<T: std::str::FromStr<Err: std::fmt::Display> + std::fmt::Display>(
            text: &str,
        ) -> Result<String, String> {
            text.parse::<T>().map(|value| value.to_string()).map_err(|error| error.to_string())
        }
        match self {
            Takes::Size => through::<Bytes>(text),
            Takes::Count => through::<Count>(text),
            Takes::Rate => through::<Rate>(text),
            Takes::Span => through::<Span>(text),
            Takes::Number => through::<u32>(text),
            Takes::Cpus => match host::cpu_list(text).filter(|cpus| !cpus.is_empty()) {
                Some(_) => Ok(text.to_owned()),
                None => Err("this is not a list of CPUs; write `1` or `2-5,8`".to_owned()),
            },
            Takes::Word(words) if words.contains(&text) => Ok(text.to_owned()),
            Takes::Word(words) => Err(format!("`{text}`: {}", hint(text, words.iter().copied()))),
            Takes::Switch(..) if ["on", "off"].contains(&text) => Ok(text.to_owned()),
            Takes::Switch(..) => Err("this is true or false".to_owned()),
            Takes::Text => Ok(text.to_owned()),
        }
    }
}

/// Why a level cannot be had with this build.
pub(crate) fn absent(key: &str, value: &toml::Value) -> Option<String> {
    let stack = key.strip_prefix("micro.").and_then(|rest| rest.split_once('.'));
    let asks = stack.is_some_and(|(_, key)| key == STACK) && value.as_str() == Some(DPDK);
    (asks && !micro::net::DPDK).then(|| {
        "this kvmeter was built without DPDK; install libdpdk-dev (Debian, Ubuntu) and build it \
         with `--features dpdk`"
            .to_owned()
    })
}
