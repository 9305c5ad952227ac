//! Runs. Each table is read once for all runs: a query for each run would dominate the time of
//! large files.

mod kernel_counts;
mod top_down;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::vec::Drain;

use model::{
    Distribution, Failures, HarnessTax, KernelCounts, LatencyScope, LoopKind, Reading, Run,
    RunLatencies, RunLatency, RunProfile, Series, SeriesPoint, Stack, TopDownPass,
};
use rusqlite::{Connection, Row};

use super::repeats::RepeatedLatencies;
use super::{damaged, names, reading_value, real, row_error, text};
use crate::error::RecordError;
use crate::names::from_name;
use crate::read_extent::{ReadExtent, examples};
use crate::write::finite_or_unavailable;

/// An error in a row.
enum RowError {
    Sqlite(rusqlite::Error),
    Record(RecordError),
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> RowError {
        RowError::Sqlite(error)
    }
}

impl From<RecordError> for RowError {
    fn from(error: RecordError) -> RowError {
        RowError::Record(error)
    }
}

/// The runs of these keys, or all, by execution and ordinal. `designed`: the executions of
/// studies with a design.
pub(crate) fn runs(
    sql: &Connection,
    path: &Path,
    keys: Option<&BTreeSet<i64>>,
    extent: &ReadExtent,
    designed: &HashSet<String>,
) -> Result<Vec<Run>, RecordError> {
    let keys = keys.map(|keys| serde_json::json!(keys).to_string());
    let mut load = RunLoader {
        sql,
        path,
        extent,
        designed,
        keys,
        runs: Vec::new(),
        positions: HashMap::new(),
        examples: BTreeSet::new(),
    };
    load.runs()?;
    if extent.is_overview() {
        load.examples = examples(load.runs.iter().map(|run| run.label.as_str()));
    }
    load.pairs()?;
    load.remarks()?;
    load.failures()?;
    load.tax()?;
    load.latencies()?;
    load.series()?;
    load.readings()?;
    load.samples()?;
    load.profiles()?;
    Ok(load.runs)
}

struct RunLoader<'a> {
    sql: &'a Connection,
    path: &'a Path,
    extent: &'a ReadExtent,
    /// The executions of studies with a design.
    designed: &'a HashSet<String>,
    /// The selected keys as JSON; none: all.
    keys: Option<String>,
    runs: Vec<Run>,
    /// The position in `runs` of each key.
    positions: HashMap<i64, usize>,
    /// The positions of runs that an overview reads whole.
    examples: BTreeSet<usize>,
}

impl RunLoader<'_> {
    /// The condition on the column that holds the key of a run. It uses the column's index, so that
    /// a few runs are read without scanning the file.
    fn key_condition(&self, column: &str) -> String {
        match self.keys {
            None => "?1 IS NULL".to_owned(),
            Some(_) => format!("{column} IN (SELECT value FROM json_each(?1))"),
        }
    }

    fn runs(&mut self) -> Result<(), RecordError> {
        let failed = |error| RecordError::sqlite(self.path, error);
        let query = format!(
            "SELECT run.*, execution.id AS execution FROM run
             JOIN execution ON execution.key = execution_key
             WHERE {} ORDER BY execution_key, ordinal",
            self.key_condition("run.key")
        );
        let mut statement = self.sql.prepare(&query).map_err(failed)?;
        let names = names(&statement);
        let mut rows = statement.query([&self.keys]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let wrong = |error| {
                let id: Result<String, _> = row.get("id");
                let place = format!("run {}, table `run`", id.unwrap_or_default());
                row_error(self.path, &place, &names, error)
            };
            let key: i64 = row.get("key").map_err(wrong)?;
            let (phase, kind, run) = head(row).map_err(wrong)?;
            if !matches!(kind.as_str(), "open" | "closed") {
                let path = self.path.to_owned();
                return Err(RecordError::UnknownName { path, what: "loop", found: kind });
            }
            self.positions.insert(key, self.runs.len());
            self.runs.push(Run { phase: from_name(self.path, "phase", &phase)?, ..run });
        }
        Ok(())
    }

    /// Reads the columns of a table, after the key of the run, of each row of the runs, and stores
    /// what the rows of one run gave, with the position of the run.
    fn read_rows<T>(
        &mut self,
        table: &str,
        columns: &str,
        order: &str,
        mut read: impl FnMut(&Row<'_>, &Run, bool) -> Result<Option<T>, RowError>,
        mut store: impl FnMut(usize, &mut Run, Drain<'_, T>),
    ) -> Result<(), RecordError> {
        let failed = |error| RecordError::sqlite(self.path, error);
        let query = format!(
            "SELECT run_key, {columns} FROM {table} WHERE {} ORDER BY run_key{order}",
            self.key_condition("run_key")
        );
        let mut statement = self.sql.prepare(&query).map_err(failed)?;
        let names = names(&statement);
        let mut rows = statement.query([&self.keys]).map_err(failed)?;
        let whole = !self.extent.is_overview();
        // Of one run. Collected first, so that no run holds spare room: there may be very many.
        let (mut current, mut values) = (None, Vec::new());
        while let Some(row) = rows.next().map_err(failed)? {
            let key = row.get::<_, i64>(0).map_err(failed)?;
            let Some(place) = self.positions.get(&key).copied() else { continue };
            if let Some(last) = current.replace(place).filter(|last| *last != place) {
                store(last, &mut self.runs[last], values.drain(..));
            }
            let run = &self.runs[place];
            let value = read(row, run, whole || self.examples.contains(&place)).map_err(
                |wrong| match wrong {
                    RowError::Sqlite(error) => {
                        let place = format!("run {}, table `{table}`", run.id);
                        row_error(self.path, &place, &names, error)
                    }
                    RowError::Record(error) => error,
                },
            )?;
            values.extend(value);
        }
        if let Some(last) = current {
            store(last, &mut self.runs[last], values.drain(..));
        }
        Ok(())
    }

    fn pairs(&mut self) -> Result<(), RecordError> {
        let pair = |row: &Row<'_>| Ok(Some((row.get(1)?, row.get(2)?)));
        self.read_rows(
            "setting",
            "key, value",
            "",
            |row, _, _| pair(row),
            |_, run, pairs| run.settings.extend(pairs),
        )?;
        let all = self.extent.includes_stream();
        self.read_rows(
            "stream",
            "name, value",
            "",
            |row, _, whole| if whole || all { pair(row) } else { Ok(None) },
            |_, run, pairs| run.stream.extend(pairs),
        )
    }

    fn remarks(&mut self) -> Result<(), RecordError> {
        self.read_rows(
            "remark",
            "kind, text",
            ", position",
            |row, _, _| Ok(Some((text(row, 1)? == "invalid", row.get(2)?))),
            |_, run, remarks| {
                for (invalid, remark) in remarks {
                    if invalid { &mut run.invalid_because } else { &mut run.warnings }.push(remark);
                }
            },
        )
    }

    fn failures(&mut self) -> Result<(), RecordError> {
        self.read_rows(
            "failure",
            "kind, count, first",
            ", position",
            |row, _, _| {
                let (kind, count, first) = (row.get(1)?, row.get(2)?, row.get(3)?);
                Ok(Some(Failures { kind, count, first }))
            },
            |_, run, failures| run.failures = failures.collect(),
        )
    }

    fn tax(&mut self) -> Result<(), RecordError> {
        self.read_rows(
            "harness",
            "ns_per_op, clock_ns, verify_ns, busy, measured_before_run",
            "",
            |row, _, _| {
                Ok(Some(HarnessTax {
                    ns_per_op: real(row, 1)?,
                    clock_ns: real(row, 2)?,
                    verify_ns: row.get(3)?,
                    busy: real(row, 4)?,
                    measured_before_run: row.get(5)?,
                }))
            },
            |_, run, mut tax| run.tax = tax.next(),
        )
    }

    fn latencies(&mut self) -> Result<(), RecordError> {
        let path = self.path;
        let (extent, examples) = (self.extent, self.examples.clone());
        let mut repeats = RepeatedLatencies::default();
        self.read_rows(
            "latency",
            "operation, clock, histogram",
            ", position",
            |row, run, _| {
                let name = text(row, 1)?;
                let Some(op) = LatencyScope::from_name(name) else {
                    let (path, found) = (path.to_owned(), name.to_owned());
                    return Err(RecordError::UnknownName { path, what: "operation", found }.into());
                };
                let bytes = row.get_ref(3)?.as_blob().map_err(|_| {
                    let found = rusqlite::types::Type::Text;
                    rusqlite::Error::InvalidColumnType(3, String::new(), found)
                })?;
                let histogram = Distribution::decode(bytes).map_err(|why| {
                    damaged(path, format!("run {}, table `latency`: {why}", run.id))
                })?;
                let clock = from_name(path, "clock", text(row, 2)?)?;
                Ok(Some(RunLatency { op, clock, histogram }))
            },
            |position, run, latencies| {
                run.latencies = latencies.collect();
                if extent.adds_up_repeats() && !examples.contains(&position) {
                    repeats.take(position, run);
                }
            },
        )?;
        repeats.give(&mut self.runs);
        Ok(())
    }

    fn series(&mut self) -> Result<(), RecordError> {
        let (path, designed) = (self.path, self.designed);
        self.read_rows(
            "series",
            "at_s, seconds, operation, operations, p50_ns, p99_ns, p99_9_ns, max_ns",
            ", position",
            |row, run, whole| {
                if !whole && !designed.contains(&run.execution) {
                    return Ok(None);
                }
                Ok(Some(SeriesPoint {
                    at_s: real(row, 1)?,
                    seconds: real(row, 2)?,
                    op: from_name(path, "operation", text(row, 3)?)?,
                    operations: row.get(4)?,
                    p50_ns: row.get(5)?,
                    p99_ns: row.get(6)?,
                    p999_ns: row.get(7)?,
                    max_ns: row.get(8)?,
                }))
            },
            |_, run, series| run.series = series.collect(),
        )
    }

    fn readings(&mut self) -> Result<(), RecordError> {
        let (path, extent) = (self.path, self.extent);
        self.read_rows(
            "reading",
            "signal, value, unavailable, remedy, unit, scope, source, window_s, origin",
            ", position",
            |row, _, whole| {
                if !whole && !is_included(row, extent)? {
                    return Ok(None);
                }
                let reading = Reading {
                    signal: row.get(1)?,
                    answer: reading_value(row, 2)?,
                    unit: from_name(path, "unit", text(row, 5)?)?,
                    scope: from_name(path, "scope", text(row, 6)?)?,
                    source: if whole { row.get(7)? } else { String::new() },
                    window_s: real(row, 8)?,
                    origin: from_name(path, "origin", text(row, 9)?)?,
                };
                // Other programs may have written infinity.
                Ok(Some(finite_or_unavailable(&reading)))
            },
            |_, run, readings| run.readings = readings.collect(),
        )
    }

    fn samples(&mut self) -> Result<(), RecordError> {
        let path = self.path;
        // The position in `samples` of each series of a run.
        let mut places: BTreeMap<(String, i64), usize> = BTreeMap::new();
        self.read_rows(
            "sampled",
            "position, signal, source, unit, scope, origin",
            ", position",
            |row, _, whole| {
                if !whole {
                    return Ok(None);
                }
                let series = Series {
                    signal: row.get(2)?,
                    source: row.get(3)?,
                    unit: from_name(path, "unit", text(row, 4)?)?,
                    scope: from_name(path, "scope", text(row, 5)?)?,
                    origin: from_name(path, "origin", text(row, 6)?)?,
                    at_s: Vec::new(),
                    values: Vec::new(),
                };
                Ok(Some((row.get(1)?, series)))
            },
            |_, run, all| {
                for (position, series) in all {
                    places.insert((run.id.clone(), position), run.samples.len());
                    run.samples.push(series);
                }
            },
        )?;
        if places.is_empty() {
            return Ok(());
        }
        self.read_rows(
            "sample",
            "sampled, at_s, value",
            ", sampled, position",
            |row, run, _| {
                let place = places.get(&(run.id.clone(), row.get(1)?));
                place.map(|place| Ok((*place, real(row, 2)?, real(row, 3)?))).transpose()
            },
            |_, run, samples| {
                for (place, at_s, value) in samples {
                    run.samples[place].at_s.push(at_s);
                    run.samples[place].values.push(value);
                }
            },
        )
    }

    fn profiles(&mut self) -> Result<(), RecordError> {
        let path = self.path;
        self.read_rows(
            "profile",
            "clock, frequency_hz, kernel, seconds, operations, lost, events_lost, top_down_seconds, \
             top_down_operations, top_down_missing",
            "",
            |row, _, _| {
                Ok(Some(RunProfile {
                    clock: from_name(path, "clock", text(row, 1)?)?,
                    frequency: row.get(2)?,
                    kernel: row.get(3)?,
                    seconds: real(row, 4)?,
                    operations: row.get(5)?,
                    lost: row.get(6)?,
                    stacks: Vec::new(),
                    counts: row
                        .get::<_, Option<u64>>(7)?
                        .map(|lost| KernelCounts { lost, ..KernelCounts::default() }),
                    top_down: row
                        .get::<_, Option<f64>>(8)?
                        .map(|seconds| -> rusqlite::Result<TopDownPass> {
                            let operations = row.get::<_, Option<u64>>(9)?.unwrap_or_default();
                            let missing = row.get(10)?;
                            Ok(TopDownPass { seconds, operations, missing, ..Default::default() })
                        })
                        .transpose()?,
                }))
            },
            |_, run, mut profiles| run.profile = profiles.next().map(Box::new),
        )?;
        if self.runs.iter().all(|run| run.profile.is_none()) {
            return Ok(());
        }
        self.read_rows(
            "stack",
            "side, process, state, frames, samples, seconds",
            ", position",
            |row, _, _| {
                let frames = text(row, 4)?.split_terminator(';').map(str::to_owned).collect();
                Ok(Some(Stack {
                    side: from_name(path, "side", text(row, 1)?)?,
                    process: row.get(2)?,
                    state: from_name(path, "state", text(row, 3)?)?,
                    frames,
                    samples: row.get(5)?,
                    seconds: real(row, 6)?,
                }))
            },
            |_, run, stacks| {
                if let Some(profile) = &mut run.profile {
                    profile.stacks = stacks.collect();
                }
            },
        )?;
        self.kernel_counts()?;
        self.top_downs()
    }
}

/// The run's own row, and the names of its phase and loop.
fn head(row: &Row<'_>) -> rusqlite::Result<(String, String, Run)> {
    let kind: String = row.get("loop")?;
    let run = Run {
        id: row.get("id")?,
        execution: row.get("execution")?,
        ordinal: row.get("ordinal")?,
        label: row.get("label")?,
        phase: model::Phase::Measure,
        settings: BTreeMap::new(),
        store_version: row.get("store_version")?,
        threads: row.get("threads")?,
        pacing: match kind.as_str() {
            "open" => LoopKind::Open {
                rate_ops_s: real(row, "rate_ops_s")?,
                arrivals: row.get("arrivals")?,
            },
            _ => LoopKind::Closed { think_s: real(row, "think_s")? },
        },
        started_at: row.get("started_at")?,
        seconds: real(row, "seconds")?,
        operations: row.get("operations")?,
        verified: row.get("verified")?,
        misses: row.get("misses")?,
        failures: Vec::new(),
        invalid_because: Vec::new(),
        warnings: Vec::new(),
        latencies: RunLatencies::default(),
        series: Vec::new(),
        readings: Vec::new(),
        samples: Vec::new(),
        profile: None,
        tax: None,
        stream: BTreeMap::new(),
    };
    Ok((row.get("phase")?, kind, run))
}

fn is_included(row: &Row<'_>, extent: &ReadExtent) -> rusqlite::Result<bool> {
    let valued = row.get_ref(2)? != rusqlite::types::ValueRef::Null;
    // A signal that is no text is included, so that reading it reports the place.
    Ok(row.get_ref(1)?.as_str().is_ok_and(|signal| extent.includes(signal, valued))
        || row.get_ref(1)?.as_str().is_err())
}
