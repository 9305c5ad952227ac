//! The table of a microbenchmark.

use std::collections::BTreeMap;

use micro::job::{
    DPDK_KEYS, FlowArgs, KERNEL_KEYS, LatencyArgs, MicroBench, NetCells, NetFlags, PingpongArgs,
    StreamArgs,
};
use micro::net::{NetError, Stack};
use model::MICRO;
use model::suggest::hint;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, from_value, to_value};
use toml::Spanned;

use crate::error::StudyError;
use crate::text::{BenchTable, StudyText, option_text};

/// Seconds to start and end both sides, DPDK's environment included.
const AROUND_S: f64 = 0.5;
const NAMES: [&str; 4] = ["pingpong", "flow", "stream", "latency"];
const STACK: &str = "stack";
const DPDK: &str = "dpdk";

/// A microbenchmark with all its settings.
#[derive(Debug, Clone)]
pub struct PlannedMicro {
    pub name: &'static str,
    pub bench: MicroBench,
    /// Given settings, and defaults that determine what is measured.
    pub(super) settings: Vec<(String, String)>,
    /// About how long a run takes.
    pub seconds: f64,
}

/// Parses a table.
pub(super) fn parse(
    source: &StudyText,
    name: &Spanned<String>,
    table: &BenchTable,
) -> Result<PlannedMicro, StudyError> {
    let wrong = name.get_ref();
    let Some(name_known) = NAMES.into_iter().find(|known| known == wrong) else {
        let words = format!("there is no microbenchmark `{wrong}`; {}", hint(wrong, NAMES));
        return Err(source.at(name.span(), &words));
    };
    let table = MicroTable { source, name, table };
    let (bench, settings, seconds) = match name_known {
        "stream" => {
            let (bench, settings) = table.read::<StreamArgs>()?;
            let seconds = bench.time.0.as_secs_f64();
            (MicroBench::Stream(bench), settings, seconds)
        }
        "latency" => {
            let (bench, settings) = table.read::<LatencyArgs>()?;
            table.needs("size")?;
            let seconds = bench.time.0.as_secs_f64();
            (MicroBench::Latency(bench), settings, seconds)
        }
        "flow" => {
            let (bench, mut settings) = table.read::<FlowArgs>()?;
            let seconds = table.net(&bench.net, || bench.cells(), &mut settings)?;
            (MicroBench::Flow(Box::new(bench)), settings, seconds)
        }
        _ => {
            let (bench, mut settings) = table.read::<PingpongArgs>()?;
            let seconds = table.net(&bench.net, || bench.cells(), &mut settings)?;
            (MicroBench::Pingpong(Box::new(bench)), settings, seconds)
        }
    };
    if let Some((value, why)) = table.table.iter().find_map(|(key, value)| {
        let key = format!("{MICRO}.{wrong}.{}", key.get_ref());
        Some((value, absent(&key, value.get_ref())?))
    }) {
        return Err(source.at(value.span(), &why));
    }
    let settings = settings.into_iter().collect();
    Ok(PlannedMicro { name: name_known, bench, settings, seconds: AROUND_S + seconds })
}

type Settings = BTreeMap<String, String>;

struct MicroTable<'a> {
    source: &'a StudyText,
    name: &'a Spanned<String>,
    table: &'a BenchTable,
}

impl MicroTable<'_> {
    /// The bench, and the given settings in their normal form.
    fn read<T: Default + Serialize + DeserializeOwned>(&self) -> Result<(T, Settings), StudyError> {
        let known = texts(&T::default());
        let mut given = Map::new();
        for (key, value) in self.table {
            let name = key.get_ref();
            if !known.contains_key(name) {
                let hint = hint(name, known.keys().map(String::as_str));
                let words = format!("`{}` has no setting `{name}`; {hint}", self.name.get_ref());
                return Err(self.source.at(key.span(), &words));
            }
            // Alone, so that an error is this value's.
            option_text(value.get_ref())
                .and_then(|text| {
                    let one = Map::from_iter([(name.clone(), text.into())]);
                    given.extend(one.clone());
                    from_value::<T>(one.into()).map_err(|error| error.to_string())
                })
                .map_err(|words| self.source.at(value.span(), &format!("{name}: {words}")))?;
        }
        let keys: Vec<String> = given.keys().cloned().collect();
        let bench = from_value(given.into())
            .map_err(|error| self.source.at(self.name.span(), &error.to_string()))?;
        let mut all = texts(&bench);
        let text = |key: String| Some((key.clone(), all.remove(&key)??));
        Ok((bench, keys.into_iter().filter_map(text).collect()))
    }

    fn value(&self, name: &str) -> Option<(&Spanned<String>, &Spanned<toml::Value>)> {
        self.table.iter().find(|(key, _)| key.get_ref() == name)
    }

    /// Refuses a table without a setting: a run would have several cells, or none.
    fn needs(&self, needed: &str) -> Result<(), StudyError> {
        if self.value(needed).is_some() {
            return Ok(());
        }
        let words = format!(
            "`{needed}` is missing: a run needs one; give it here, or let a factor set \
             `micro.{}.{needed}`",
            self.name.get_ref()
        );
        Err(self.source.at(self.name.span(), &words))
    }

    /// Checks the one cell of a network benchmark, adds what determines it, and returns the seconds
    /// of its windows.
    fn net(
        &self,
        flags: &NetFlags,
        cells: impl FnOnce() -> Result<NetCells, NetError>,
        settings: &mut Settings,
    ) -> Result<f64, StudyError> {
        let (alien, words) = match flags.has(Stack::Dpdk) {
            true => (
                &KERNEL_KEYS[..],
                "this is a setting of the kernel's stack, and `stack` is \"dpdk\"",
            ),
            false => (
                &DPDK_KEYS[..],
                "this is a setting of DPDK; set `stack = \"dpdk\"`, or leave it out",
            ),
        };
        if let Some((key, _)) = alien.iter().find_map(|key| self.value(key)) {
            return Err(self.source.at(key.span(), words));
        }
        self.needs("size")?;
        let cells = cells().map_err(|error| {
            let value = match &error {
                NetError::InvalidSetting { flag, .. } => self.value(&flag.replace('-', "_")),
                _ => None,
            };
            let place = value.map_or(self.name.span(), |(_, value)| value.span());
            self.source.at(place, error.to_string().trim_start_matches("--"))
        })?;
        for job in &cells.jobs {
            for (key, usual) in [
                (STACK, job.transport.stack().to_string()),
                ("transport", job.transport.to_string()),
                ("connections", job.connections.to_string()),
            ] {
                settings.entry(key.to_owned()).or_insert(usual);
            }
        }
        Ok((flags.time() + flags.warm_up.0).as_secs_f64())
    }
}

/// The text of each key; none of what is chosen on the machine.
fn texts(bench: &impl Serialize) -> BTreeMap<String, Option<String>> {
    let text = |value: Value| value.as_str().map(str::to_owned);
    match to_value(bench) {
        Ok(Value::Object(keys)) => {
            keys.into_iter().map(|(key, value)| (key, text(value))).collect()
        }
        _ => BTreeMap::new(),
    }
}

/// Why this build does not support a level.
pub(crate) fn absent(key: &str, value: &toml::Value) -> Option<String> {
    let stack = key.strip_prefix("micro.").and_then(|rest| rest.split_once('.'));
    let selects_dpdk = stack.is_some_and(|(_, key)| key == STACK) && value.as_str() == Some(DPDK);
    (selects_dpdk && !micro::net::DPDK).then(|| {
        "this kvmeter was built without DPDK; install libdpdk-dev (Debian, Ubuntu) and \
         `cargo build --release --package kvmeter --features dpdk`"
            .to_owned()
    })
}
