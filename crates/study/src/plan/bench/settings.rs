//! The settings of microbenchmarks, as the flags of `kvmeter micro` have them.

use model::suggest::hint;
use model::{Bytes, Count, Rate, Span};
use toml::Spanned;

use crate::error::StudyError;
use crate::text::{BenchTable, StudyText, option_text};

/// The type of a setting's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum SettingType {
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

/// The network stacks that have a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StackScope {
    Any,
    Kernel,
    Dpdk,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchSetting {
    pub(super) name: &'static str,
    takes: SettingType,
    of: StackScope,
}

const fn any(name: &'static str, takes: SettingType) -> BenchSetting {
    BenchSetting { name, takes, of: StackScope::Any }
}

const fn kernel(name: &'static str, takes: SettingType) -> BenchSetting {
    BenchSetting { name, takes, of: StackScope::Kernel }
}

const fn dpdk(name: &'static str, takes: SettingType) -> BenchSetting {
    BenchSetting { name, takes, of: StackScope::Dpdk }
}

const STACK: &str = "stack";
const KERNEL: &str = "kernel";
const DPDK: &str = "dpdk";

const NET: &[BenchSetting] = &[
    any(STACK, SettingType::Word(&[KERNEL, DPDK])),
    any("size", SettingType::Size),
    any("connections", SettingType::Number),
    any("threads", SettingType::Number),
    any("time", SettingType::Span),
    any("messages", SettingType::Count),
    any("warm_up", SettingType::Span),
    any("timeout", SettingType::Span),
    any("cpus", SettingType::Cpus),
    any("server_cpus", SettingType::Cpus),
    any("connect", SettingType::Text),
    any("pin", SettingType::Switch(None, Some("no-pin"))),
    kernel("transport", SettingType::Word(&["tcp", "unix", "udp"])),
    kernel("busy_poll", SettingType::Switch(Some("busy-poll"), None)),
    kernel("socket_buffer", SettingType::Size),
    dpdk("port", SettingType::Text),
    dpdk("server_port", SettingType::Text),
    dpdk("eal", SettingType::Text),
    dpdk("server_eal", SettingType::Text),
    dpdk("frames", SettingType::Count),
    dpdk("mtu", SettingType::Number),
];

const FLOW: &[BenchSetting] = &[
    any("stride", SettingType::Size),
    any("reuse", SettingType::Size),
    any("rate", SettingType::Rate),
];

const MEMORY: &[BenchSetting] = &[
    any("size", SettingType::Size),
    any("time", SettingType::Span),
    any("cpus", SettingType::Cpus),
    any("pages", SettingType::Word(&["system", "huge", "small", "reserved"])),
    any("place", SettingType::Text),
];

const STREAM: &[BenchSetting] = &[
    any("threads", SettingType::Number),
    any("rounds", SettingType::Number),
    any("stores", SettingType::Word(&["plain", "streaming"])),
];

const LATENCY: &[BenchSetting] = &[any("stride", SettingType::Size)];

/// A microbenchmark that a study can run.
#[derive(Debug)]
pub(super) struct BenchDeclaration {
    pub(super) name: &'static str,
    keys: [&'static [BenchSetting]; 2],
    /// Required settings: without them a run would have several cells, or none.
    needs: &'static [&'static str],
    /// Default seconds of its window and of the warm-up.
    pub(super) usual_s: (f64, f64),
}

const DECLARED: [BenchDeclaration; 4] = [
    BenchDeclaration { name: "pingpong", keys: [NET, &[]], needs: &["size"], usual_s: (1.0, 0.1) },
    BenchDeclaration { name: "flow", keys: [NET, FLOW], needs: &["size"], usual_s: (1.0, 0.1) },
    BenchDeclaration { name: "stream", keys: [MEMORY, STREAM], needs: &[], usual_s: (1.0, 0.0) },
    BenchDeclaration {
        name: "latency",
        keys: [MEMORY, LATENCY],
        needs: &["size"],
        usual_s: (0.05, 0.0),
    },
];

/// A setting of a table: its declaration, text and place.
pub(super) type ChosenSettings<'a> = (BenchSetting, String, &'a Spanned<toml::Value>);

/// The bench of this name.
pub(super) fn declared(
    source: &StudyText,
    name: &Spanned<String>,
) -> Result<&'static BenchDeclaration, StudyError> {
    let known = DECLARED.iter().map(|declared| declared.name);
    DECLARED.iter().find(|declared| declared.name == name.get_ref()).ok_or_else(|| {
        let wrong = name.get_ref();
        let words = format!("there is no microbenchmark `{wrong}`; {}", hint(wrong, known));
        source.at(name.span(), &words)
    })
}

impl BenchDeclaration {
    fn keys(&self) -> impl Iterator<Item = &'static BenchSetting> + Clone {
        self.keys.into_iter().flatten()
    }

    /// The checked settings of a table, in the order of their declaration.
    pub(super) fn chosen<'a>(
        &self,
        source: &StudyText,
        name: &Spanned<String>,
        table: &'a BenchTable,
    ) -> Result<Vec<ChosenSettings<'a>>, StudyError> {
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
        let alien = if stack == DPDK { StackScope::Kernel } else { StackScope::Dpdk };
        if let Some((key, ..)) = chosen.iter().find(|(key, ..)| key.of == alien) {
            let place = table.keys().find(|known| known.get_ref() == key.name);
            let words = match alien {
                StackScope::Kernel => {
                    "this is a setting of the kernel's stack, and `stack` is \"dpdk\""
                }
                _ => "this is a setting of DPDK; set `stack = \"dpdk\"`, or leave it out",
            };
            return Err(source.at(place.map_or(name.span(), Spanned::span), words));
        }
        if let Some(needed) = self.needs.iter().find(|needed| text_of(&chosen, needed).is_none()) {
            let words = format!(
                "`{needed}` is missing: a run needs one; give it here, or let a factor set \
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
pub(super) fn text_of<'a>(chosen: &'a [ChosenSettings<'_>], name: &str) -> Option<&'a str> {
    chosen.iter().find(|(key, ..)| key.name == name).map(|(_, text, _)| text.as_str())
}

impl BenchSetting {
    /// The flag of the command with this text.
    pub(super) fn flag(self, text: &str) -> Option<String> {
        let flag = |word: &str| format!("--{word}");
        match self.takes {
            SettingType::Switch(on, off) => if text == "on" { on } else { off }.map(flag),
            _ => Some(format!("--{}={text}", self.name.replace('_', "-"))),
        }
    }
}

impl SettingType {
    /// The value in its normal form.
    fn read(self, text: &str) -> Result<String, String> {
        fn through<T: std::str::FromStr<Err: std::fmt::Display> + std::fmt::Display>(
            text: &str,
        ) -> Result<String, String> {
            text.parse::<T>().map(|value| value.to_string()).map_err(|error| error.to_string())
        }
        match self {
            SettingType::Size => through::<Bytes>(text),
            SettingType::Count => through::<Count>(text),
            SettingType::Rate => through::<Rate>(text),
            SettingType::Span => through::<Span>(text),
            SettingType::Number => through::<u32>(text),
            SettingType::Cpus => match model::cpu_list::parse(text).filter(|cpus| !cpus.is_empty())
            {
                Some(_) => Ok(text.to_owned()),
                None => Err("this is not a list of CPUs; write `1` or `2-5,8`".to_owned()),
            },
            SettingType::Word(words) if words.contains(&text) => Ok(text.to_owned()),
            SettingType::Word(words) => {
                Err(format!("`{text}`: {}", hint(text, words.iter().copied())))
            }
            SettingType::Switch(..) if ["on", "off"].contains(&text) => Ok(text.to_owned()),
            SettingType::Switch(..) => Err("write true or false".to_owned()),
            SettingType::Text => Ok(text.to_owned()),
        }
    }
}

/// Why this build does not support a level.
pub(crate) fn absent(key: &str, value: &toml::Value) -> Option<String> {
    let stack = key.strip_prefix("micro.").and_then(|rest| rest.split_once('.'));
    let selects_dpdk = stack.is_some_and(|(_, key)| key == STACK) && value.as_str() == Some(DPDK);
    (selects_dpdk && !micro::net::DPDK).then(|| {
        "this kvmeter was built without DPDK; install libdpdk-dev (Debian, Ubuntu) and build it \
         with `--features dpdk`"
            .to_owned()
    })
}
