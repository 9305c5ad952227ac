//! Flags that verbs have in common: workload and load.

pub mod agents;
pub mod live;
pub mod load;
pub mod machine;
pub mod platform;
pub mod server_hosts;
pub mod trace;

use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::{Count, Rate};
use store::StoreUrl;
use study::{
    InvalidOption, LoadOptions, Plan, RateSpec, RunPlace, ServerSpec, StudyError, unplaced,
};
use study::{is_workload_file, open_workload};
use workload::{FetchLatency, LengthSpec, Mix, Popularity, Preset, WorkloadSpec};

use self::agents::AgentFlags;
use self::load::{Load, OptionFlags};
use self::server_hosts::{SERVER_ON, ServerHostFlags};
use crate::exit::request;
use crate::output::Output;

/// The workload.
#[derive(Debug, Args)]
pub struct WorkloadFlags {
    /// A preset, a file as `workload describe --out` writes it, or a property file of YCSB
    #[arg(long = "workload", short = 'w', value_name = "NAME|FILE", default_value = "ycsb-c",
        value_parser = WorkloadName)]
    pub preset: String,
    /// Number of records
    #[arg(long, short = 'n', value_name = "N", allow_hyphen_values = true)]
    pub records: Option<Count>,
    /// Multiply the preset's records, as CloudSuite scales its data
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, conflicts_with = "records")]
    pub scale: Option<f64>,
    /// Size of a key: 30, uniform:10..40, ...
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub key_size: Option<String>,
    /// Size of a value: 1KiB, uniform:100..2KiB, normal:1000,200, pareto:15,214.5,0.35, ...
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub value_size: Option<String>,
    /// Share of a value that a compressor can remove, 0 to 1
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub compressibility: Option<f64>,
    /// Weights of operations instead of the preset's: read=0.9,update=0.1
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true)]
    pub mix: Option<String>,
    /// Popularity of keys: uniform, sequential, zipfian[:0.99], scrambled_zipfian[:0.99],
    /// latest[:0.99], ...
    #[arg(long, value_name = "NAME")]
    pub popularity: Option<String>,
    /// Number of keys of a read
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub multi_get: Option<u32>,
    /// Share of reads of loaded keys; the others miss
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub hit_ratio: Option<f64>,
    /// Set missed keys, as an application with a cache does
    #[arg(long)]
    pub refill: bool,
    /// Latency of a modelled database that answers misses before they are set: 5ms,
    /// exponential:5ms, lognormal:MEDIAN,P99, ..., or none; sets --refill
    #[arg(long, value_name = "LATENCY", allow_hyphen_values = true)]
    pub miss_latency: Option<String>,
    /// Seed of data, operations and arrivals
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1)]
    pub seed: u64,
}

/// The load.
#[derive(Debug, Args)]
pub struct LoadFlags {
    #[command(flatten)]
    pub options: OptionFlags<Load>,
    /// Start a local server for this measurement: memory=1GiB,cpus=0,1,... as in a study's
    /// `[server.NAME]`, or `default`. The store is then only a name: memcached, redis, valkey
    #[arg(long, value_name = "SETTINGS", help_heading = SERVERS)]
    pub server: Option<String>,
    #[command(flatten)]
    pub server_hosts: ServerHostFlags,
    #[command(flatten)]
    pub agents: AgentFlags,
}

/// Heading of flags for networked stores.
pub const SERVERS: &str = "Servers";

/// How the URL of each store is written.
pub fn store_forms() -> String {
    let forms: Vec<String> = store::ADAPTERS.iter().map(store::Adapter::url_form).collect();
    format!("{}; options of a store as ?option=value&...", forms.join(", "))
}

/// The name of a preset or of a workload file.
#[derive(Debug, Clone, Copy)]
struct WorkloadName;

impl WorkloadName {
    fn presets() -> PossibleValuesParser {
        PossibleValuesParser::new(WorkloadSpec::presets().iter().map(possible_preset))
    }
}

impl TypedValueParser for WorkloadName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        match value.to_str() {
            Some(name) if is_workload_file(name) => Ok(name.to_owned()),
            _ => WorkloadName::presets().parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(WorkloadSpec::presets().iter().map(possible_preset)))
    }
}

/// A preset in help and completion.
fn possible_preset(preset: &Preset) -> PossibleValue {
    PossibleValue::new(preset.name).help(preset.description)
}

/// `2%` or `0.02`.
pub fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits.trim_end(), 0.01),
        None => (text.trim(), 1.0),
    };
    let value = digits.parse::<f64>().ok().filter(|value| value.is_finite());
    value.map(|value| value * unit).ok_or_else(|| "write a share as `2%` or `0.02`".to_owned())
}

impl WorkloadFlags {
    /// The workload's name: the preset's or the file's, marked if flags changed it.
    pub fn name(&self) -> String {
        let path = Path::new(&self.preset);
        let name = match path.file_name().and_then(|name| name.to_str()) {
            Some(file) if is_workload_file(&self.preset) => file,
            _ => &self.preset,
        };
        match (&self.mix, &self.popularity) {
            (None, None) => name.to_owned(),
            _ => format!("{name}*"),
        }
    }

    /// Says what a property file of YCSB has beside the workload.
    pub fn note_run_properties(&self, place: RunPlace, show: &Output) -> anyhow::Result<()> {
        if let Some(words) = study::note_run_properties(&self.preset, place)? {
            show.note(&words);
        }
        Ok(())
    }

    /// The preset itself; none for a file.
    pub fn preset_spec(&self) -> Option<&'static Preset> {
        WorkloadSpec::presets().iter().find(|preset| preset.name == self.preset)
    }

    /// The arrivals that belong to the preset or stand in the file.
    pub fn arrivals(&self) -> anyhow::Result<Option<String>> {
        match is_workload_file(&self.preset) {
            true => Ok(open_workload(&self.preset)?.arrivals),
            false => Ok(self.preset_spec().and_then(|preset| preset.arrivals).map(str::to_owned)),
        }
    }

    pub fn spec(&self) -> anyhow::Result<WorkloadSpec> {
        let mut spec = match is_workload_file(&self.preset) {
            true => open_workload(&self.preset)?.workload,
            false => WorkloadSpec::preset(&self.preset)?,
        };
        spec.seed = self.seed;
        if let Some(factor) = self.scale {
            spec = spec.scaled(factor).map_err(|error| request(format!("--scale: {error}")))?;
        }
        if let Some(keys) = self.multi_get {
            spec.multi_get = keys;
        }
        if let Some(share) = self.hit_ratio {
            spec.hit_ratio = share;
        }
        spec.refill |= self.refill;
        if let Some(text) = &self.miss_latency {
            let latency = FetchLatency::parse_option(text);
            spec.miss_latency =
                latency.map_err(|error| request(format!("--miss-latency {text}: {error}")))?;
            spec.refill |= spec.miss_latency.is_some();
        }
        if let Some(records) = self.records {
            spec = spec.with_records(records);
        }
        let size = |flag: &str, text: &str| {
            LengthSpec::parse(text).map_err(|error| request(format!("--{flag} {text}: {error}")))
        };
        if let Some(text) = &self.key_size {
            spec.key.size = Some(size("key-size", text)?);
        }
        if let Some(text) = &self.value_size {
            spec.value.size = size("value-size", text)?;
            spec.value.size_of_first.clear();
        }
        if let Some(share) = self.compressibility {
            spec.value.compressibility = share;
        }
        if let Some(text) = &self.mix {
            spec.mix =
                Mix::parse(text).map_err(|error| request(format!("--mix {text}: {error}")))?;
        }
        if let Some(text) = &self.popularity {
            spec.popularity = Popularity::parse(text)
                .map_err(|error| request(format!("--popularity {text}: {error}")))?;
        }
        Ok(spec)
    }
}

impl LoadFlags {
    /// The store, and the server that is started for it.
    pub fn store(
        &self,
        store: &str,
        show: &Output,
    ) -> anyhow::Result<(StoreUrl, Option<ServerSpec>)> {
        let hosts = self.server_hosts.hosts(show)?;
        let Some(settings) = &self.server else {
            if hosts.is_some() {
                return Err(request(format!(
                    "{SERVER_ON} starts servers; say which: `memcached`, `redis` or `valkey` as the \
                     store, and --server default"
                )));
            }
            return Ok((store.parse()?, None));
        };
        let (name, options) = match store.split_once('?') {
            Some((name, options)) => (name, format!("?{options}")),
            None => (store, String::new()),
        };
        if name.contains(':') {
            // An invalid URL may hold a password, which its own error hides.
            store.parse::<StoreUrl>()?;
            return Err(request(format!(
                "--server starts a server of its own, and `{name}` names one; write `memcached`, \
                 `redis` or `valkey` alone"
            )));
        }
        // A placeholder for parsing the options; the address is known when the server runs.
        let mut url: StoreUrl = format!("{name}://localhost{options}").parse()?;
        url.servers.clear();
        let order =
            ServerSpec::parse(name, settings).map_err(|why| request(format!("--server: {why}")))?;
        let url = order.store(url).map_err(request)?;
        let order = match hosts {
            Some(hosts) => order.on(hosts).map_err(|why| request(format!("--server: {why}")))?,
            None => order,
        };
        Ok((url, Some(order)))
    }

    /// At this rate, or in a closed loop; `usual` are the workload's own arrivals.
    pub fn options(&self, rate: Option<Rate>, usual: Option<&str>) -> LoadOptions {
        let usual = usual.filter(|_| rate.is_some());
        self.options.given.clone().or(LoadOptions {
            threads: Some(unplaced(self.agents.machines())),
            rate: rate.map(|rate| unplaced(RateSpec::Rate(rate))),
            arrivals: usual.map(|name| unplaced(name.to_owned())),
            ..LoadOptions::default()
        })
    }
}

/// The CPUs of so many client machines; agents are assumed to be like this one, and check again.
pub fn cpus_of(machines: u32) -> u32 {
    let cpus = host::cpus(&host::Root::live()).map_or(1, |order| order.cpus.len() as u32);
    cpus.saturating_mul(machines)
}

/// An invalid option as an error that names its flag.
pub fn name_flag(invalid: InvalidOption) -> anyhow::Error {
    request(format!("--{}: {}", invalid.flag(), invalid.why))
}

/// The plan of a run given by flags; errors of options name the flag.
pub fn check_plan(plan: Result<Plan, StudyError>) -> anyhow::Result<Plan> {
    plan.map_err(|error| match error {
        StudyError::InvalidOption(invalid) => name_flag(invalid),
        other => other.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_shares() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share(" 0.05 "), Ok(0.05));
        for text in ["", "%", "two", "2 %%", "inf"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
