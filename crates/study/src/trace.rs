//! Traces that are replayed instead of a workload's own operations.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use model::{Count, Pacing, RunSettings};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use store::StoreUrl;
use toml::Spanned;
use workload::trace::TraceReader;
use workload::{SizedValues, WorkloadSpec};

use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::{LoadConfig, trace_config};
use crate::plan::{
    Activity, Plan, Segment, Step, StoreLoad, check_needs_servers, check_runs, label,
};
use crate::server_spec::ServerSpec;
use crate::settings::settings;
use crate::spec::{StudySpec, WorkloadTable};
use crate::study_text::StudyText;

/// The speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplaySpeed {
    /// So many times as fast as it was recorded: an open loop.
    Times(f64),
    /// As fast as the store answers: a closed loop in the trace's order.
    Max,
}

/// Maximum speed: at a higher one a second of the trace is too short to count its requests.
const MAX_SPEED: f64 = 1e6;

impl FromStr for ReplaySpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<ReplaySpeed, String> {
        if text == "max" {
            return Ok(ReplaySpeed::Max);
        }
        let times = text.parse().ok().filter(|times| *times > 0.0 && *times <= MAX_SPEED);
        times.map(ReplaySpeed::Times).ok_or_else(|| {
            format!(
                "`{text}` is no speed; write how many times as fast as recorded, from above 0 to a \
                 million, or `max`"
            )
        })
    }
}

impl fmt::Display for ReplaySpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplaySpeed::Times(times) => write!(f, "{times}"),
            ReplaySpeed::Max => f.write_str("max"),
        }
    }
}

impl Serialize for ReplaySpeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReplaySpeed {
    /// A number or text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReplaySpeed, D::Error> {
        struct SpeedVisitor;
        impl Visitor<'_> for SpeedVisitor {
            type Value = ReplaySpeed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number above 0 or \"max\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ReplaySpeed, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, times: i64) -> Result<ReplaySpeed, E> {
                self.visit_str(&times.to_string())
            }
            fn visit_u64<E: Error>(self, times: u64) -> Result<ReplaySpeed, E> {
                self.visit_str(&times.to_string())
            }
            fn visit_f64<E: Error>(self, times: f64) -> Result<ReplaySpeed, E> {
                self.visit_str(&times.to_string())
            }
        }
        deserializer.deserialize_any(SpeedVisitor)
    }
}

/// A trace that can be replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSource {
    /// `-` is standard input.
    pub file: PathBuf,
    /// Size and time of modification, which identify the file; unknown for standard input.
    pub bytes: Option<u64>,
    pub modified: Option<String>,
    /// The part of a value that a compressor can remove.
    pub compressibility: f64,
    /// Misses are refilled.
    pub refill: bool,
    /// The line before the first request, where it names the fields and is skipped.
    pub header: Option<Arc<str>>,
}

impl TraceSource {
    /// Checks that a trace can be read and begins with a request. Standard input is not read.
    ///
    /// # Errors
    /// A file that is no trace, a compressibility outside 0 to 1.
    pub fn open(
        file: &Path,
        compressibility: f64,
        refill: bool,
    ) -> Result<TraceSource, StudyError> {
        SizedValues::new(0, compressibility)?;
        let mut recording = TraceSource {
            file: file.to_owned(),
            bytes: None,
            modified: None,
            compressibility,
            refill,
            header: None,
        };
        if recording.is_stdin() {
            return Ok(recording);
        }
        recording.header = TraceReader::open(file)?.header().cloned();
        if let Ok(of) = std::fs::metadata(file) {
            recording.bytes = Some(of.len());
            let modified = of.modified().ok().and_then(|at| jiff::Timestamp::try_from(at).ok());
            recording.modified = modified.map(|at| at.to_string());
        }
        Ok(recording)
    }

    pub fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    /// Adds the settings of a run.
    pub fn settings(&self, load_config: &LoadConfig, settings: &mut RunSettings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        put("trace", self.file.display().to_string());
        let speed = match load_config.pacing {
            Pacing::Recorded { speed } => ReplaySpeed::Times(speed).to_string(),
            Pacing::Closed { .. } => ReplaySpeed::Max.to_string(),
            Pacing::Open { .. } => "rate".to_owned(),
        };
        put("trace.speed", speed);
        if let Some(bytes) = self.bytes {
            put("trace.bytes", bytes.to_string());
        }
        if let Some(modified) = &self.modified {
            put("trace.modified", modified.clone());
        }
        put("trace.compressibility", self.compressibility.to_string());
        put("trace.refill", self.refill.to_string());
    }
}

/// The workload of a step that replays a trace: it is unused and loads nothing.
pub fn placeholder_workload(seed: u64) -> WorkloadSpec {
    WorkloadSpec { records: Count(1), seed, ..WorkloadSpec::default() }
}

impl Plan {
    /// A plan of replays without a study, one for each load configuration and repeat.
    pub fn replay(
        (store, server): (StoreUrl, Option<ServerSpec>),
        recording: &TraceSource,
        seed: u64,
        load_configs: &[LoadConfig],
        repeats: u32,
    ) -> Result<Plan, StudyError> {
        store.check()?;
        check_runs("--repeat", repeats, load_configs.len())?;
        let workload = placeholder_workload(seed);
        let mut segments = Vec::new();
        for repeat in 1..=repeats {
            for (unit, load_config) in load_configs.iter().enumerate() {
                check_needs_servers(&store, load_config)?;
                let target = (&store, server.as_ref());
                let mut settings = settings(target, NAME, &workload, load_config, repeat);
                replace_workload_settings(recording, load_config, &mut settings);
                let load = Box::new(StoreLoad::new(workload.clone(), load_config.clone()));
                let step = Step {
                    ordinal: segments.len() as u32 + 1,
                    unit: unit as u32,
                    repeat,
                    label: label(&store, NAME),
                    activity: Activity::Replay(load, recording.clone()),
                    settings,
                };
                segments.push(Segment {
                    store: store.clone(),
                    server: server.clone(),
                    temporary: false,
                    steps: vec![step],
                    preparing: load_config.preparing(),
                    knobs: KnobLevels::default(),
                    copies: false,
                });
            }
        }
        let plan = Plan { seed, repeats, ..Plan::new("bench", segments) };
        check_stdin(&plan)?;
        Ok(plan)
    }
}

/// Name of the workload of a replay without a name.
const NAME: &str = "trace";

/// Replaces the workload's settings by those of a trace.
pub(crate) fn replace_workload_settings(
    recording: &TraceSource,
    load_config: &LoadConfig,
    settings: &mut RunSettings,
) {
    settings.retain(|key, _| !key.starts_with("workload."));
    settings.insert("workload.is".to_owned(), format!("trace {}", recording.file.display()));
    recording.settings(load_config, settings);
}

/// Standard input can be read once.
pub(crate) fn check_stdin(plan: &Plan) -> Result<(), StudyError> {
    let reads = |recording: &TraceSource| recording.is_stdin();
    let readers = plan.steps().filter(|(_, step)| step.activity.trace().is_some_and(reads)).count();
    if readers > 1 {
        return Err(StudyError::Request(format!(
            "the trace comes from standard input, which can be read once, and {readers} runs are \
             to replay it; name a file"
        )));
    }
    Ok(())
}

/// A table of `[workloads]` that is a trace, with its load configuration.
#[derive(Debug, Clone)]
pub(crate) struct TraceTable {
    pub recording: TraceSource,
    pub load_config: LoadConfig,
}

/// The traces of a study by their names; errors point into it.
pub(crate) fn of_study(
    source: &StudyText,
    spec: &StudySpec,
    cpus: u32,
) -> Result<BTreeMap<String, TraceTable>, StudyError> {
    let mut traces = BTreeMap::new();
    for (name, variant) in &spec.workloads {
        let Some(file) = &variant.trace else {
            if let Some(speed) = &variant.speed {
                return Err(
                    source.at(speed.span(), "speed: is for a trace; give one, or leave it out")
                );
            }
            continue;
        };
        if let Some((key, span)) = variant.of_a_workload() {
            let words = format!("{key}: belongs to a workload, and `trace` stands instead of one");
            return Err(source.at(span, &words));
        }
        let value = spec.data.value.as_ref();
        let compressibility = value.map_or(0.0, |value| value.get_ref().compressibility);
        let recording =
            TraceSource::open(file.get_ref(), compressibility, variant.refill.unwrap_or(false))
                .map_err(|error| source.at(file.span(), &error.to_string()))?;
        let load_config = trace_config(source, &spec.measure, variant.speed.as_ref(), cpus)?;
        traces.insert(name.get_ref().clone(), TraceTable { recording, load_config });
    }
    Ok(traces)
}

impl WorkloadTable {
    /// The first given key that only workloads have, and its place.
    fn of_a_workload(&self) -> Option<(&'static str, std::ops::Range<usize>)> {
        fn span<T>(value: &Option<Spanned<T>>) -> Option<std::ops::Range<usize>> {
            value.as_ref().map(Spanned::span)
        }
        let keys = [
            ("from", span(&self.from)),
            ("mix", span(&self.mix)),
            ("popularity", span(&self.popularity)),
            ("scan", span(&self.scan)),
            ("multi_get", span(&self.multi_get)),
            ("hit_ratio", span(&self.hit_ratio)),
        ];
        keys.into_iter().find_map(|(key, span)| Some((key, span?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_parsed_and_displayed() {
        for (text, speed) in [
            ("max", ReplaySpeed::Max),
            ("1", ReplaySpeed::Times(1.0)),
            ("0.5", ReplaySpeed::Times(0.5)),
            ("1e3", ReplaySpeed::Times(1000.0)),
        ] {
            assert_eq!(text.parse(), Ok(speed), "{text}");
            assert_eq!(speed.to_string().parse(), Ok(speed));
        }
        for text in ["", "0", "-1", "2x", "inf", "nan", "1e7", "MAX"] {
            assert!(text.parse::<ReplaySpeed>().unwrap_err().contains("`max`"), "{text}");
        }
    }
}
