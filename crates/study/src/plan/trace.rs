//! Traces that are replayed instead of a workload's own operations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Count, Pacing, RunSettings};
use store::StoreUrl;
use workload::trace::{
    LONGEST_KEY, TraceError, TraceFormat, TraceOptions, TraceReader, TraceRecords,
};
use workload::{SizedValues, WorkloadSpec};

use super::load_tables::trace_config;
use crate::error::StudyError;
use crate::load::LoadConfig;
use crate::replay_speed::ReplaySpeed;
use crate::text::{StudySpec, StudyText};

/// Requests that are looked at to see whether a store can serve a trace.
const BEGINNING: u32 = 100_000;

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
    pub options: TraceOptions,
    /// Unknown for standard input, unless it was given.
    pub format: Option<TraceFormat>,
}

impl TraceSource {
    /// Checks that a trace can be read and begins with a request. Standard input is not read.
    ///
    /// # Errors
    /// A file that is no trace, a compressibility outside 0 to 1.
    pub fn open(
        file: &Path,
        options: TraceOptions,
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
            options,
            format: options.format,
        };
        if recording.is_stdin() {
            return Ok(recording);
        }
        let reader = TraceReader::with(file, &options)?;
        recording.header = reader.header().cloned();
        recording.format = Some(reader.format());
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

    /// Refuses recorded pacing for a trace without times. Standard input is not read.
    ///
    /// # Errors
    /// [`TraceError::Untimed`].
    pub fn check_pacing(&self, load_config: &LoadConfig) -> Result<(), StudyError> {
        if matches!(load_config.shape.pacing, Pacing::Recorded { .. }) && !self.is_stdin() {
            TraceReader::with(&self.file, &self.options)?.require_times()?;
        }
        Ok(())
    }

    /// The same for a store: its keys are those that the store takes, and scans are malformed
    /// where it cannot scan.
    ///
    /// # Errors
    /// A trace that begins with a scan, for a store that cannot.
    pub fn for_store(&self, store: &StoreUrl) -> Result<TraceSource, StudyError> {
        let mut own = self.clone();
        let remote = store.remote().map_err(|error| StudyError::Request(error.to_string()))?;
        let longest = [0; LONGEST_KEY];
        own.options.text_keys =
            remote.is_some_and(|remote| remote.protocol.check_key(&longest).is_err());
        own.options.scans = !store.multiplexes();
        if !own.options.scans && self.format.is_some_and(TraceFormat::may_scan) && !self.is_stdin()
        {
            own.read_beginning().map_err(|error| {
                StudyError::Request(format!("for the store `{}`: {error}", store.scheme))
            })?;
        }
        Ok(own)
    }

    fn read_beginning(&self) -> Result<(), TraceError> {
        let mut records = TraceRecords::open(&self.file, &self.options)?;
        let mut left = BEGINNING;
        while left > 0 && records.next()?.is_some() {
            left -= 1;
        }
        Ok(())
    }

    /// Adds the settings of a run.
    pub fn settings(&self, load_config: &LoadConfig, settings: &mut RunSettings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        put("trace", self.file.display().to_string());
        let speed = match load_config.shape.pacing {
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
        if let Some(format) = self.format {
            put("trace.format", format.to_string());
        }
        put("trace.copies", self.options.copies.to_string());
        put("trace.sample", self.options.sample.to_string());
        put("trace.skip_bad", self.options.skip_bad.to_string());
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
            if let Some((key, span)) = variant.of_a_trace().next() {
                let words = format!("{key}: is for a trace; give one, or leave it out");
                return Err(source.at(span, &words));
            }
            continue;
        };
        if let Some((key, span)) = variant.of_a_workload() {
            let words = format!("{key}: belongs to a workload, and `trace` replaces that");
            return Err(source.at(span, &words));
        }
        let value = spec.data.value.as_ref();
        let compressibility = value.map_or(0.0, |value| value.get_ref().compressibility);
        let options = variant.trace_reading().options().map_err(|invalid| {
            let place = variant.of_a_trace().find(|(key, _)| *key == invalid.key);
            let span = place.map_or(file.span(), |(_, span)| span);
            source.at(span, &format!("{}: {}", invalid.key, invalid.why))
        })?;
        let refill = variant.refill.unwrap_or(false);
        let wrong = |error: StudyError| source.at(file.span(), &error.to_string());
        let recording =
            TraceSource::open(file.get_ref(), options, compressibility, refill).map_err(wrong)?;
        let load_config = trace_config(source, &spec.measure, variant.speed.as_ref(), cpus)?;
        recording.check_pacing(&load_config).map_err(wrong)?;
        traces.insert(name.get_ref().clone(), TraceTable { recording, load_config });
    }
    Ok(traces)
}
