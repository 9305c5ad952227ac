//! A study as it is written: tables, not tags, and no key that is not known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::design::{CheckSpec, FigureSpec, Question};
use model::{Count, Rate};
use serde::Deserialize;
use toml::Spanned;
use workload::{
    InsertOrder, KeySpec, LengthSpec, Mix, Popularity, ValueSpec, WorkloadSpec as Workload,
};

use super::calibrate::CalibrateTable;
use super::co_runner::CoRunnerTable;
use super::factors::{DesignTable, FactorTable, ScaleTable};
use super::mbwu::MbwuTable;
use super::probes::ProbesTable;
use super::why::WhyTable;
use crate::load::LoadOptions;
use crate::replay_speed::ReplaySpeed;
use crate::trace_reading::TraceReading;

/// The whole file. Everything but the name has a default, but something must be measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudySpec {
    /// Of the results file and the report.
    pub name: Spanned<String>,
    /// What the study answers, as a person would ask it.
    #[serde(default)]
    pub question: Option<String>,
    /// Decides the data, the streams and the order of the repeats.
    #[serde(default = "one")]
    pub seed: u64,
    /// How often the whole sequence runs for each store.
    #[serde(default = "one_repeat")]
    pub repeats: u32,
    /// `load`, `clear`, and names of workloads: presets, or tables of `[workloads]`.
    #[serde(default)]
    pub sequence: Vec<Spanned<String>>,
    /// One table a store; its keys are the options of the store's URL, and `path`.
    #[serde(default)]
    pub store: BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, Spanned<toml::Value>>>,
    /// One table a server that kvmeter starts for the store of the same name.
    #[serde(default)]
    pub server:
        BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, Spanned<server::launch::Value>>>,
    #[serde(default)]
    pub data: DataTable,
    #[serde(default)]
    pub load: LoadOptions,
    #[serde(default)]
    pub measure: LoadOptions,
    #[serde(default)]
    pub workloads: BTreeMap<Spanned<String>, WorkloadTable>,
    /// One table a microbenchmark of this machine; its keys are the flags of `kvmeter micro`.
    #[serde(default)]
    pub micro: BenchTables,
    /// One table a simulation: `dca`, the last-level cache with direct cache access.
    #[serde(default)]
    pub simulate: BenchTables,
    /// How the maximum is found of which `measure.rate` may be a share.
    #[serde(default)]
    pub calibrate: Option<CalibrateTable>,
    #[serde(default)]
    pub agents: Option<Spanned<AgentsTable>>,
    /// Work units are found with the store and the workload, on devices that the command names.
    #[serde(default)]
    pub mbwu: Option<Spanned<MbwuTable>>,
    /// The probes of the runs.
    #[serde(default)]
    pub probes: Option<ProbesTable>,
    /// After the measured runs of a cell, where its time goes.
    #[serde(default)]
    pub why: Option<Spanned<WhyTable>>,
    /// The levels of the machine's knobs, under which everything runs.
    #[serde(default)]
    pub knobs: Option<BTreeMap<Spanned<String>, Spanned<toml::Value>>>,
    /// The co-runner.
    #[serde(default, rename = "beside")]
    pub co_runner: CoRunnerTable,
    /// What varies from cell to cell.
    #[serde(default)]
    pub factors: BTreeMap<Spanned<String>, FactorTable>,
    /// Which cells there are, and how often each is run.
    #[serde(default)]
    pub design: DesignTable,
    /// What must hold in every run.
    #[serde(default)]
    pub checks: Vec<Spanned<CheckSpec>>,
    /// What is answered from the results.
    #[serde(default)]
    pub questions: Vec<Spanned<Question>>,
    /// The study's own layout.
    #[serde(default)]
    pub figures: Vec<Spanned<FigureSpec>>,
    /// Other sizes of the same study, for `--scale`.
    #[serde(default)]
    pub scale: BTreeMap<Spanned<String>, ScaleTable>,
    /// What this machine costs: a name of `platforms/`.
    #[serde(default)]
    pub platform: Option<Spanned<String>>,
}

/// One table: settings by their name.
pub type BenchTable = BTreeMap<Spanned<String>, Spanned<toml::Value>>;

/// Tables by the name of what they run.
pub type BenchTables = BTreeMap<Spanned<String>, BenchTable>;

fn one() -> u64 {
    1
}

fn one_repeat() -> u32 {
    1
}

/// `[data]`: what is loaded, instead of what the presets say.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataTable {
    pub records: Option<Spanned<Count>>,
    pub key: Option<Spanned<KeySpec>>,
    pub value: Option<Spanned<ValueSpec>>,
    pub order: Option<InsertOrder>,
}

/// `[workloads.NAME]`: a preset with changes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// The preset that the rest changes; YCSB's C if not given.
    pub from: Option<Spanned<String>>,
    pub mix: Option<Spanned<Mix>>,
    pub popularity: Option<Spanned<Popularity>>,
    pub scan: Option<Spanned<LengthSpec>>,
    pub multi_get: Option<Spanned<u32>>,
    pub hit_ratio: Option<Spanned<f64>>,
    pub refill: Option<bool>,
    /// How long the modelled database takes that answers misses, or "none".
    pub miss_latency: Option<Spanned<String>>,
    /// A recorded trace instead of all that; `-` is standard input.
    pub trace: Option<Spanned<PathBuf>>,
    /// How many times as fast as it was recorded, or "max".
    pub speed: Option<Spanned<ReplaySpeed>>,
    /// "auto" or the name of a format.
    pub trace_format: Option<Spanned<String>>,
    /// How many times the key space.
    pub trace_copies: Option<Spanned<u32>>,
    /// The share of the keys.
    pub trace_sample: Option<Spanned<f64>>,
    /// Malformed records that are left out.
    pub trace_skip_bad: Option<Spanned<Count>>,
}

/// `[agents]`: the machines that generate the load instead of this one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsTable {
    /// `HOST` or `HOST:PORT` of each.
    pub hosts: Spanned<Vec<String>>,
    /// File with the shared token; without one the environment variable `token_env` holds it.
    pub token_file: Option<PathBuf>,
    pub token_env: Option<String>,
    /// For mutual TLS: the authorities, one's own certificate and its key, PEM.
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// This machine measures at this rate over one connection, while the agents generate load.
    pub measure_rate: Option<Spanned<Rate>>,
    /// The agent, beside `hosts`, whose machine measures instead of this one.
    pub measure_host: Option<Spanned<String>>,
    /// The knobs that the agents' machines turn, too, to the levels of this one.
    pub knobs: Option<Spanned<Vec<String>>>,
    /// The probes that are read on the agents' machines.
    pub probes: Option<Spanned<Vec<String>>>,
}

impl WorkloadTable {
    /// The first given key that only workloads have, and its place.
    pub(crate) fn of_a_workload(&self) -> Option<(&'static str, std::ops::Range<usize>)> {
        let keys = [
            ("from", span(&self.from)),
            ("mix", span(&self.mix)),
            ("popularity", span(&self.popularity)),
            ("scan", span(&self.scan)),
            ("multi_get", span(&self.multi_get)),
            ("hit_ratio", span(&self.hit_ratio)),
            ("miss_latency", span(&self.miss_latency)),
        ];
        keys.into_iter().find_map(|(key, span)| Some((key, span?)))
    }
}

impl WorkloadTable {
    /// How its trace is read.
    pub(crate) fn trace_reading(&self) -> TraceReading {
        fn value<T: Clone>(key: &Option<Spanned<T>>) -> Option<T> {
            key.as_ref().map(|value| value.get_ref().clone())
        }
        TraceReading {
            format: value(&self.trace_format),
            copies: value(&self.trace_copies),
            sample: value(&self.trace_sample),
            skip_bad: value(&self.trace_skip_bad),
        }
    }

    /// The given keys that only traces have, and their places.
    pub(crate) fn of_a_trace(
        &self,
    ) -> impl Iterator<Item = (&'static str, std::ops::Range<usize>)> {
        let keys = [
            ("speed", span(&self.speed)),
            ("trace_format", span(&self.trace_format)),
            ("trace_copies", span(&self.trace_copies)),
            ("trace_sample", span(&self.trace_sample)),
            ("trace_skip_bad", span(&self.trace_skip_bad)),
        ];
        keys.into_iter().filter_map(|(key, span)| Some((key, span?)))
    }
}

fn span<T>(value: &Option<Spanned<T>>) -> Option<std::ops::Range<usize>> {
    value.as_ref().map(Spanned::span)
}

impl DataTable {
    /// The preset's workload with this data under it.
    pub(crate) fn over(&self, mut spec: Workload, seed: u64) -> Workload {
        spec.seed = seed;
        if let Some(records) = &self.records {
            spec = spec.with_records(*records.get_ref());
        }
        if let Some(key) = &self.key {
            spec.key = key.get_ref().clone();
        }
        if let Some(value) = &self.value {
            spec.value = value.get_ref().clone();
        }
        if let Some(order) = self.order {
            spec.order = order;
        }
        spec
    }
}

/// An option's value as it would stand in a store's URL.
pub(crate) fn option_text(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(yes) => Ok((if *yes { "on" } else { "off" }).to_owned()),
        other => {
            Err(format!("an option takes text, a number or a boolean, not {}", other.type_str()))
        }
    }
}
