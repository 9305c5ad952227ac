//! Traces that are replayed instead of a workload's own operations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Count, Pacing, RunSettings};
use workload::trace::TraceReader;
use workload::{SizedValues, WorkloadSpec};

use super::load_tables::trace_config;
use crate::error::StudyError;
use crate::load::LoadConfig;
use crate::replay_speed::ReplaySpeed;
use crate::text::{StudySpec, StudyText};

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
            let words = format!("{key}: belongs to a workload, and `trace` replaces that");
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
