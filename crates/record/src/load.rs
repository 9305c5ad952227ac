//! Reading: the tables back into executions and runs.

use std::collections::BTreeMap;
use std::path::Path;

use model::{Answer, Fact, Machine, Op, Reading, Series};
use rusqlite::{Connection, Row};

use crate::asked::Asked;
use crate::design::Design;
use crate::error::Error;
use crate::names::named;
use crate::run::{Execution, Failures, Latency, Loop, Phase, Planned, Point, Run, Settings, Tax};
use model::histogram;

/// What a filter looks at, without the distributions.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub key: i64,
    pub execution: String,
    pub study: String,
    pub label: String,
    pub phase: String,
    pub valid: bool,
    pub settings: Settings,
}

/// Runs one query and collects its rows.
fn rows<T>(
    sql: &Connection,
    path: &Path,
    query: &str,
    key: Option<i64>,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Error> {
    let ask = || -> rusqlite::Result<Vec<T>> {
        let mut statement = sql.prepare(query)?;
        match key {
            Some(key) => statement.query_map([key], read)?.collect(),
            None => statement.query_map([], read)?.collect(),
        }
    };
    ask().map_err(|error| Error::sqlite(path, error))
}

/// SQLite has no NaN: it keeps one as NULL.
fn real(row: &Row<'_>, column: &str) -> rusqlite::Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}

fn damaged(path: &Path, detail: impl ToString) -> Error {
    Error::Damaged { path: path.to_owned(), detail: detail.to_string() }
}

pub(crate) fn executions(sql: &Connection, path: &Path) -> Result<Vec<Execution>, Error> {
    let query = "SELECT * FROM execution ORDER BY key";
    let found = rows(sql, path, query, None, |row| {
        let execution = Execution {
            id: row.get("id")?,
            study: row.get("study")?,
            question: row.get("question")?,
            spec: row.get("spec")?,
            seed: 0,
            command: Vec::new(),
            version: row.get("version")?,
            started_at: row.get("started_at")?,
            finished_at: row.get("finished_at")?,
            machine: Machine { id: row.get("machine")?, facts: Vec::new() },
            plan: Vec::new(),
            design: Design::default(),
            notes: Vec::new(),
        };
        Ok((row.get("key")?, row.get("seed")?, row.get("command")?, execution))
    })?;
    let complete = |(key, seed, command, mut execution): (i64, String, String, Execution)| {
        execution.seed = seed.parse().map_err(|_| damaged(path, format!("a seed of `{seed}`")))?;
        execution.command = serde_json::from_str(&command)
            .map_err(|error| damaged(path, format!("a command line: {error}")))?;
        execution.machine.facts = facts(sql, path, key)?;
        execution.plan = plan(sql, path, key)?;
        execution.design = design(sql, path, key)?;
        execution.notes = notes(sql, path, key)?;
        Ok(execution)
    };
    found.into_iter().map(complete).collect()
}

fn facts(sql: &Connection, path: &Path, execution: i64) -> Result<Vec<Fact>, Error> {
    let query = "SELECT * FROM fact WHERE execution_key = ?1 ORDER BY position";
    rows(sql, path, query, Some(execution), |row| {
        let value = match row.get("value")? {
            Some(value) => Ok(value),
            None => Err(row.get("unavailable")?),
        };
        Ok(Fact { name: row.get("name")?, value, source: row.get("source")? })
    })
}

fn plan(sql: &Connection, path: &Path, execution: i64) -> Result<Vec<Planned>, Error> {
    let query = "SELECT ordinal, key, value FROM planned_setting WHERE execution_key = ?1";
    let mut settings: BTreeMap<u32, Settings> = BTreeMap::new();
    for (ordinal, key, value) in
        rows(sql, path, query, Some(execution), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
    {
        settings.entry(ordinal).or_default().insert(key, value);
    }
    let query = "SELECT ordinal, label FROM planned WHERE execution_key = ?1 ORDER BY position";
    rows(sql, path, query, Some(execution), |row| {
        let ordinal = row.get("ordinal")?;
        let settings = settings.remove(&ordinal).unwrap_or_default();
        Ok(Planned { ordinal, label: row.get("label")?, settings })
    })
}

fn design(sql: &Connection, path: &Path, execution: i64) -> Result<Design, Error> {
    let query = "SELECT design FROM design WHERE execution_key = ?1";
    let mut found: Vec<String> = rows(sql, path, query, Some(execution), |row| row.get(0))?;
    match found.pop() {
        None => Ok(Design::default()),
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| damaged(path, format!("the design of a study: {error}"))),
    }
}

fn notes(sql: &Connection, path: &Path, execution: i64) -> Result<Vec<String>, Error> {
    let query = "SELECT text FROM note WHERE execution_key = ?1 ORDER BY position";
    rows(sql, path, query, Some(execution), |row| row.get(0))
}

/// Every run, by execution and ordinal.
pub(crate) fn heads(sql: &Connection, path: &Path) -> Result<Vec<Head>, Error> {
    let mut settings: BTreeMap<i64, Settings> = BTreeMap::new();
    let query = "SELECT run_key, key, value FROM setting";
    for (run, key, value) in
        rows(sql, path, query, None, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
    {
        settings.entry(run).or_default().insert(key, value);
    }
    let query = "SELECT run.key AS key, execution.id AS execution, study, label, phase,
                 NOT EXISTS (SELECT 1 FROM remark WHERE run_key = run.key AND kind = 'invalid')
                   AS valid
                 FROM run JOIN execution ON execution.key = execution_key
                 ORDER BY execution_key, ordinal";
    rows(sql, path, query, None, |row| {
        let key = row.get("key")?;
        Ok(Head {
            key,
            execution: row.get("execution")?,
            study: row.get("study")?,
            label: row.get("label")?,
            phase: row.get("phase")?,
            valid: row.get("valid")?,
            settings: settings.remove(&key).unwrap_or_default(),
        })
    })
}

/// A run, complete.
pub(crate) fn run(sql: &Connection, path: &Path, head: &Head) -> Result<Run, Error> {
    let key = head.key;
    let phase: Phase = named(path, "phase", head.phase.clone())?;
    let query = "SELECT * FROM run WHERE key = ?1";
    let mut found = rows(sql, path, query, Some(key), |row| {
        let kind: String = row.get("loop")?;
        let run = Run {
            id: row.get("id")?,
            execution: head.execution.clone(),
            ordinal: row.get("ordinal")?,
            label: head.label.clone(),
            phase,
            settings: head.settings.clone(),
            store_version: row.get("store_version")?,
            threads: row.get("threads")?,
            pacing: match kind.as_str() {
                "open" => Loop::Open {
                    rate_ops_s: real(row, "rate_ops_s")?,
                    arrivals: row.get("arrivals")?,
                },
                _ => Loop::Closed { think_s: real(row, "think_s")? },
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
        Ok((kind, run))
    })?;
    let Some((kind, mut run)) = found.pop() else {
        return Err(damaged(path, "a run is gone"));
    };
    if !matches!(kind.as_str(), "open" | "closed") {
        return Err(Error::UnknownName { path: path.to_owned(), what: "loop", found: kind });
    }
    run.failures = failures(sql, path, key)?;
    run.invalid_because = remarks(sql, path, key, "invalid")?;
    run.warnings = remarks(sql, path, key, "warning")?;
    run.latencies = latencies(sql, path, key)?;
    run.series = series(sql, path, key)?;
    run.readings = readings(sql, path, key)?;
    run.samples = samples(sql, path, key)?;
    run.tax = tax(sql, path, key)?;
    run.stream = stream(sql, path, key)?;
    Ok(run)
}

fn failures(sql: &Connection, path: &Path, run: i64) -> Result<Vec<Failures>, Error> {
    let query = "SELECT * FROM failure WHERE run_key = ?1 ORDER BY position";
    rows(sql, path, query, Some(run), |row| {
        Ok(Failures { kind: row.get("kind")?, count: row.get("count")?, first: row.get("first")? })
    })
}

fn remarks(sql: &Connection, path: &Path, run: i64, kind: &str) -> Result<Vec<String>, Error> {
    let query = "SELECT kind, text FROM remark WHERE run_key = ?1 ORDER BY position";
    let all = rows(sql, path, query, Some(run), |row| {
        Ok((row.get::<_, String>("kind")?, row.get("text")?))
    })?;
    Ok(all.into_iter().filter(|(found, _)| found == kind).map(|(_, text)| text).collect())
}

fn tax(sql: &Connection, path: &Path, run: i64) -> Result<Option<Tax>, Error> {
    let query = "SELECT * FROM harness WHERE run_key = ?1";
    let mut found = rows(sql, path, query, Some(run), |row| {
        Ok(Tax {
            ns_per_op: real(row, "ns_per_op")?,
            clock_ns: real(row, "clock_ns")?,
            verify_ns: row.get("verify_ns")?,
            busy: real(row, "busy")?,
            measured_before_run: row.get("measured_before_run")?,
        })
    })?;
    Ok(found.pop())
}

fn stream(sql: &Connection, path: &Path, run: i64) -> Result<BTreeMap<String, String>, Error> {
    let query = "SELECT name, value FROM stream WHERE run_key = ?1";
    let pairs = rows(sql, path, query, Some(run), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.into_iter().collect())
}

fn operation(path: &Path, name: String) -> Result<Op, Error> {
    named(path, "operation", name)
}

fn asked(path: &Path, name: String) -> Result<Asked, Error> {
    Asked::from_name(&name).ok_or_else(|| Error::UnknownName {
        path: path.to_owned(),
        what: "operation",
        found: name,
    })
}

fn latencies(sql: &Connection, path: &Path, run: i64) -> Result<Vec<Latency>, Error> {
    let query = "SELECT operation, clock, histogram FROM latency WHERE run_key = ?1
                 ORDER BY position";
    let found = rows(sql, path, query, Some(run), |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?))
    })?;
    found
        .into_iter()
        .map(|(op, clock, bytes)| {
            Ok(Latency {
                op: asked(path, op)?,
                clock: named(path, "clock", clock)?,
                histogram: histogram::decode(&bytes).map_err(|error| damaged(path, error))?,
            })
        })
        .collect()
}

fn series(sql: &Connection, path: &Path, run: i64) -> Result<Vec<Point>, Error> {
    let query = "SELECT * FROM series WHERE run_key = ?1 ORDER BY position";
    let found = rows(sql, path, query, Some(run), |row| {
        let point = Point {
            at_s: real(row, "at_s")?,
            op: Op::Read,
            seconds: real(row, "seconds")?,
            operations: row.get("operations")?,
            p50_ns: row.get("p50_ns")?,
            p99_ns: row.get("p99_ns")?,
            p999_ns: row.get("p99_9_ns")?,
            max_ns: row.get("max_ns")?,
        };
        Ok((row.get("operation")?, point))
    })?;
    found.into_iter().map(|(op, point)| Ok(Point { op: operation(path, op)?, ..point })).collect()
}

fn samples(sql: &Connection, path: &Path, run: i64) -> Result<Vec<Series>, Error> {
    let query = "SELECT sampled, at_s, value FROM sample WHERE run_key = ?1
                 ORDER BY sampled, position";
    let mut points: BTreeMap<i64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (sampled, at_s, value) in rows(sql, path, query, Some(run), |row| {
        Ok((row.get::<_, i64>("sampled")?, real(row, "at_s")?, real(row, "value")?))
    })? {
        let (times, values) = points.entry(sampled).or_default();
        times.push(at_s);
        values.push(value);
    }
    let query = "SELECT * FROM sampled WHERE run_key = ?1 ORDER BY position";
    let found = rows(sql, path, query, Some(run), |row| {
        let position: i64 = row.get("position")?;
        let names = ["signal", "source", "unit", "scope", "origin"].map(|column| row.get(column));
        let [signal, source, unit, scope, origin] = names;
        Ok((position, [signal?, source?, unit?, scope?, origin?]))
    })?;
    let complete = |(position, [signal, source, unit, scope, origin]): (i64, [String; 5])| {
        let (at_s, values) = points.remove(&position).unwrap_or_default();
        let unit = named(path, "unit", unit)?;
        let scope = named(path, "scope", scope)?;
        let origin = named(path, "origin", origin)?;
        Ok(Series { signal, unit, scope, source, origin, at_s, values })
    };
    found.into_iter().map(complete).collect()
}

fn readings(sql: &Connection, path: &Path, run: i64) -> Result<Vec<Reading>, Error> {
    let query = "SELECT * FROM reading WHERE run_key = ?1 ORDER BY position";
    struct Raw {
        signal: String,
        answer: Answer,
        unit: String,
        scope: String,
        source: String,
        window_s: f64,
        origin: String,
    }
    let found = rows(sql, path, query, Some(run), |row| {
        Ok(Raw {
            signal: row.get("signal")?,
            answer: match row.get("value")? {
                Some(value) => Answer::Value(value),
                None => Answer::Unavailable {
                    reason: row.get("unavailable")?,
                    remedy: row.get("remedy")?,
                },
            },
            unit: row.get("unit")?,
            scope: row.get("scope")?,
            source: row.get("source")?,
            window_s: real(row, "window_s")?,
            origin: row.get("origin")?,
        })
    })?;
    found
        .into_iter()
        .map(|raw| {
            Ok(Reading {
                signal: raw.signal,
                answer: raw.answer,
                unit: named(path, "unit", raw.unit)?,
                scope: named(path, "scope", raw.scope)?,
                source: raw.source,
                window_s: raw.window_s,
                origin: named(path, "origin", raw.origin)?,
            })
        })
        .collect()
}
