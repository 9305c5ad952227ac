//! Runs. Each table is walked once for all of them: a query a run and table would be most of
//! the time that a large file takes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use model::{Distribution, Reading, ReadingValue, Series};
use rusqlite::{Connection, Row};

use super::{at, damaged, names, real, text};
use crate::asked::LatencyScope;
use crate::error::Error;
use crate::extent::{ReadExtent, examples};
use crate::keep::truthful;
use crate::names::named;
use crate::run::{Failures, HarnessTax, LoopKind, Run, RunLatency, SeriesPoint};

/// What can be wrong with a row.
enum RowError {
    Sqlite(rusqlite::Error),
    Known(Error),
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> RowError {
        RowError::Sqlite(error)
    }
}

impl From<Error> for RowError {
    fn from(error: Error) -> RowError {
        RowError::Known(error)
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
) -> Result<Vec<Run>, Error> {
    let keys = keys.map(|keys| serde_json::json!(keys).to_string());
    let mut load = RunLoader {
        sql,
        path,
        extent,
        designed,
        keys,
        runs: Vec::new(),
        at: HashMap::new(),
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
    Ok(load.runs)
}

struct RunLoader<'a> {
    sql: &'a Connection,
    path: &'a Path,
    extent: &'a ReadExtent,
    /// The executions of studies with a design.
    designed: &'a HashSet<String>,
    /// The keys that are asked for, as JSON; none: all.
    keys: Option<String>,
    runs: Vec<Run>,
    /// The place in `runs` of each key.
    at: HashMap<i64, usize>,
    /// The places of runs that are read whole in an overview.
    examples: BTreeSet<usize>,
}

impl RunLoader<'_> {
    /// Which rows are asked for by the column that holds the key of a run. Through its index: of
    /// a few runs the rest of the file is not looked at.
    fn chosen(&self, column: &str) -> String {
        match self.keys {
            None => "?1 IS NULL".to_owned(),
            Some(_) => format!("{column} IN (SELECT value FROM json_each(?1))"),
        }
    }

    fn runs(&mut self) -> Result<(), Error> {
        let failed = |error| Error::sqlite(self.path, error);
        let query = format!(
            "SELECT run.*, execution.id AS execution FROM run
             JOIN execution ON execution.key = execution_key
             WHERE {} ORDER BY execution_key, ordinal",
            self.chosen("run.key")
        );
        let mut statement = self.sql.prepare(&query).map_err(failed)?;
        let names = names(&statement);
        let mut rows = statement.query([&self.keys]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let wrong = |error| {
                let id: Result<String, _> = row.get("id");
                let place = format!("run {}, table `run`", id.unwrap_or_default());
                at(self.path, &place, &names, error)
            };
            let key: i64 = row.get("key").map_err(wrong)?;
            let (phase, kind, run) = head(row).map_err(wrong)?;
            if !matches!(kind.as_str(), "open" | "closed") {
                let path = self.path.to_owned();
                return Err(Error::UnknownName { path, what: "loop", found: kind });
            }
            self.at.insert(key, self.runs.len());
            self.runs.push(Run { phase: named(self.path, "phase", &phase)?, ..run });
        }
        Ok(())
    }

    /// Reads the columns of a table, after the key of the run, of each row of the runs.
    fn each(
        &mut self,
        table: &str,
        columns: &str,
        order: &str,
        mut read: impl FnMut(&Row<'_>, &mut Run, bool) -> Result<(), RowError>,
    ) -> Result<(), Error> {
        let failed = |error| Error::sqlite(self.path, error);
        let query = format!(
            "SELECT run_key, {columns} FROM {table} WHERE {} ORDER BY run_key{order}",
            self.chosen("run_key")
        );
        let mut statement = self.sql.prepare(&query).map_err(failed)?;
        let names = names(&statement);
        let mut rows = statement.query([&self.keys]).map_err(failed)?;
        let whole = !self.extent.is_overview();
        while let Some(row) = rows.next().map_err(failed)? {
            let key = row.get::<_, i64>(0).map_err(failed)?;
            let Some(place) = self.at.get(&key) else { continue };
            let run = &mut self.runs[*place];
            read(row, run, whole || self.examples.contains(place)).map_err(
                |wrong| match wrong {
                    RowError::Sqlite(error) => {
                        let place = format!("run {}, table `{table}`", run.id);
                        at(self.path, &place, &names, error)
                    }
                    RowError::Known(error) => error,
                },
            )?;
        }
        Ok(())
    }

    fn pairs(&mut self) -> Result<(), Error> {
        self.each("setting", "key, value", "", |row, run, _| {
            run.settings.insert(row.get(1)?, row.get(2)?);
            Ok(())
        })?;
        let all = self.extent.wants_stream();
        self.each("stream", "name, value", "", |row, run, whole| {
            if whole || all {
                run.stream.insert(row.get(1)?, row.get(2)?);
            }
            Ok(())
        })
    }

    fn remarks(&mut self) -> Result<(), Error> {
        self.each("remark", "kind, text", ", position", |row, run, _| {
            match text(row, 1)? {
                "invalid" => run.invalid_because.push(row.get(2)?),
                _ => run.warnings.push(row.get(2)?),
            }
            Ok(())
        })
    }

    fn failures(&mut self) -> Result<(), Error> {
        self.each("failure", "kind, count, first", ", position", |row, run, _| {
            let (kind, count, first) = (row.get(1)?, row.get(2)?, row.get(3)?);
            run.failures.push(Failures { kind, count, first });
            Ok(())
        })
    }

    fn tax(&mut self) -> Result<(), Error> {
        let columns = "ns_per_op, clock_ns, verify_ns, busy, measured_before_run";
        self.each("harness", columns, "", |row, run, _| {
            run.tax = Some(HarnessTax {
                ns_per_op: real(row, 1)?,
                clock_ns: real(row, 2)?,
                verify_ns: row.get(3)?,
                busy: real(row, 4)?,
                measured_before_run: row.get(5)?,
            });
            Ok(())
        })
    }

    fn latencies(&mut self) -> Result<(), Error> {
        let path = self.path;
        self.each("latency", "operation, clock, histogram", ", position", |row, run, _| {
            let name = text(row, 1)?;
            let Some(op) = LatencyScope::from_name(name) else {
                let (path, name) = (path.to_owned(), name.to_owned());
                return Err(Error::UnknownName { path, what: "operation", found: name }.into());
            };
            let bytes = row.get_ref(3)?.as_blob().map_err(|_| {
                rusqlite::Error::InvalidColumnType(3, String::new(), rusqlite::types::Type::Text)
            })?;
            let histogram = Distribution::decode(bytes)
                .map_err(|why| damaged(path, format!("run {}, table `latency`: {why}", run.id)))?;
            run.latencies.push(RunLatency {
                op,
                clock: named(path, "clock", text(row, 2)?)?,
                histogram,
            });
            Ok(())
        })
    }

    fn series(&mut self) -> Result<(), Error> {
        let (path, designed) = (self.path, self.designed);
        let columns = "at_s, seconds, operation, operations, p50_ns, p99_ns, p99_9_ns, max_ns";
        self.each("series", columns, ", position", |row, run, whole| {
            if !whole && !designed.contains(&run.execution) {
                return Ok(());
            }
            run.series.push(SeriesPoint {
                at_s: real(row, 1)?,
                seconds: real(row, 2)?,
                op: named(path, "operation", text(row, 3)?)?,
                operations: row.get(4)?,
                p50_ns: row.get(5)?,
                p99_ns: row.get(6)?,
                p999_ns: row.get(7)?,
                max_ns: row.get(8)?,
            });
            Ok(())
        })
    }

    fn readings(&mut self) -> Result<(), Error> {
        let (path, extent) = (self.path, self.extent);
        let columns = "signal, value, unavailable, remedy, unit, scope, source, window_s, origin";
        self.each("reading", columns, ", position", |row, run, whole| {
            if !whole && !wanted(row, extent)? {
                return Ok(());
            }
            let reading = Reading {
                signal: row.get(1)?,
                answer: match row.get(2)? {
                    Some(value) => ReadingValue::Value(value),
                    None => ReadingValue::Unavailable { reason: row.get(3)?, remedy: row.get(4)? },
                },
                unit: named(path, "unit", text(row, 5)?)?,
                scope: named(path, "scope", text(row, 6)?)?,
                source: if whole { row.get(7)? } else { String::new() },
                window_s: real(row, 8)?,
                origin: named(path, "origin", text(row, 9)?)?,
            };
            // Others write what this program does not: infinity.
            run.readings.push(truthful(&reading));
            Ok(())
        })
    }

    fn samples(&mut self) -> Result<(), Error> {
        let path = self.path;
        // Where in `samples` each series stands that a run has.
        let mut places: BTreeMap<(String, i64), usize> = BTreeMap::new();
        let columns = "position, signal, source, unit, scope, origin";
        self.each("sampled", columns, ", position", |row, run, whole| {
            if !whole {
                return Ok(());
            }
            places.insert((run.id.clone(), row.get(1)?), run.samples.len());
            run.samples.push(Series {
                signal: row.get(2)?,
                source: row.get(3)?,
                unit: named(path, "unit", text(row, 4)?)?,
                scope: named(path, "scope", text(row, 5)?)?,
                origin: named(path, "origin", text(row, 6)?)?,
                at_s: Vec::new(),
                values: Vec::new(),
            });
            Ok(())
        })?;
        if places.is_empty() {
            return Ok(());
        }
        self.each("sample", "sampled, at_s, value", ", sampled, position", |row, run, _| {
            let Some(place) = places.get(&(run.id.clone(), row.get(1)?)) else { return Ok(()) };
            let (at_s, value) = (real(row, 2)?, real(row, 3)?);
            run.samples[*place].at_s.push(at_s);
            run.samples[*place].values.push(value);
            Ok(())
        })
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
        phase: crate::run::Phase::Measure,
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
        latencies: Vec::new(),
        series: Vec::new(),
        readings: Vec::new(),
        samples: Vec::new(),
        tax: None,
        stream: BTreeMap::new(),
    };
    Ok((row.get("phase")?, kind, run))
}

fn wanted(row: &Row<'_>, extent: &ReadExtent) -> rusqlite::Result<bool> {
    let valued = row.get_ref(2)? != rusqlite::types::ValueRef::Null;
    // What is no text is wanted: reading it says where it stands.
    Ok(row.get_ref(1)?.as_str().is_ok_and(|signal| extent.wants(signal, valued))
        || row.get_ref(1)?.as_str().is_err())
}
