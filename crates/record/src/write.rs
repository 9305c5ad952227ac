//! Writing executions and runs to the tables. Every function expects a transaction around it.
//! Results files are shared, so passwords in addresses are masked.

mod profile;
mod top_down;

use std::borrow::Cow;
use std::path::Path;

use model::figures::figures_us;
use model::{Execution, LoopKind, Reading, ReadingValue, Run, RunLatency, RunSettings, masked};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use self::profile::insert_profile;
use crate::error::RecordError;
use crate::names::name;

pub(crate) fn execution(
    sql: &Connection,
    path: &Path,
    execution: &Execution,
) -> Result<(), RecordError> {
    if key_of(sql, path, &execution.id)?.is_some() {
        return Err(RecordError::ExecutionExists {
            path: path.to_owned(),
            id: execution.id.clone(),
        });
    }
    let design = serde_json::to_string(&execution.design).map_err(|error| {
        RecordError::InvalidRecord { id: execution.id.clone(), what: error.to_string() }
    })?;
    let key =
        insert_execution(sql, execution).map_err(|error| refused(path, &execution.id, error))?;
    if !execution.design.is_empty() {
        sql.execute("INSERT INTO design VALUES (?1, ?2)", params![key, design])
            .map_err(|error| refused(path, &execution.id, error))?;
    }
    execution.notes.iter().try_for_each(|text| note(sql, path, &execution.id, text))
}

/// Appends a note to an execution.
pub(crate) fn note(sql: &Connection, path: &Path, id: &str, text: &str) -> Result<(), RecordError> {
    let key = key_of(sql, path, id)?.ok_or_else(|| unknown_execution(path, id))?;
    sql.execute(
        "INSERT INTO note SELECT ?1, (SELECT count(*) FROM note WHERE execution_key = ?1), ?2",
        params![key, masked(text)],
    )
    .map(|_| ())
    .map_err(|error| refused(path, id, error))
}

fn insert_execution(sql: &Connection, execution: &Execution) -> rusqlite::Result<i64> {
    sql.execute(
        "INSERT INTO execution (id, study, question, spec, seed, command, version, started_at,
         finished_at, machine) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            execution.id,
            execution.study,
            execution.question.as_deref().map(masked),
            masked(&execution.spec),
            // Text: a seed may be larger than SQLite's signed integers.
            execution.seed.to_string(),
            serde_json::Value::from(execution.command.clone()).to_string(),
            execution.version,
            execution.started_at,
            execution.finished_at,
            execution.machine.id,
        ],
    )?;
    let key = sql.last_insert_rowid();
    let mut fact = sql.prepare("INSERT INTO fact VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (position, known) in execution.machine.facts.iter().enumerate() {
        let (value, unavailable) = (known.value.as_deref().ok(), known.value.as_deref().err());
        let (value, unavailable) = (value.map(masked), unavailable.map(|why| masked(why)));
        fact.execute(params![key, position, known.name, value, unavailable, known.source])?;
    }
    let mut planned = sql.prepare("INSERT INTO planned VALUES (?1, ?2, ?3, ?4)")?;
    let mut setting = sql.prepare("INSERT INTO planned_setting VALUES (?1, ?2, ?3, ?4)")?;
    for (position, run) in execution.plan.iter().enumerate() {
        planned.execute(params![key, position, run.ordinal, run.label])?;
        for (name, value) in &run.settings {
            setting.execute(params![key, run.ordinal, name, value])?;
        }
    }
    Ok(key)
}

pub(crate) fn finish(sql: &Connection, path: &Path, id: &str, at: &str) -> Result<(), RecordError> {
    let changed = sql
        .execute("UPDATE execution SET finished_at = ?2 WHERE id = ?1", [id, at])
        .map_err(|error| RecordError::sqlite(path, error))?;
    if changed == 0 { Err(unknown_execution(path, id)) } else { Ok(()) }
}

/// Deletes an execution's end and its notes.
pub(crate) fn reopen(sql: &Connection, path: &Path, id: &str) -> Result<(), RecordError> {
    let key = key_of(sql, path, id)?.ok_or_else(|| unknown_execution(path, id))?;
    let change =
        |text: &str| sql.execute(text, [key]).map_err(|error| RecordError::sqlite(path, error));
    change("UPDATE execution SET finished_at = NULL WHERE key = ?1")?;
    change("DELETE FROM note WHERE execution_key = ?1")?;
    Ok(())
}

/// A run; of one that is stored already, the profile that was made since.
pub(crate) fn run(sql: &Connection, path: &Path, run: &Run) -> Result<(), RecordError> {
    let execution = key_of(sql, path, &run.execution)?
        .ok_or_else(|| unknown_execution(path, &run.execution))?;
    let taken = sql
        .prepare_cached(
            "SELECT key, id FROM run WHERE id = ?1 OR (execution_key = ?2 AND ordinal = ?3)",
        )
        .and_then(|mut statement| {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            statement.query_row(params![run.id, execution, run.ordinal], read).optional()
        })
        .map_err(|error| RecordError::sqlite(path, error))?;
    let taken: Option<(i64, String)> = taken;
    if let Some((key, id)) = taken {
        if let Some(profile) = run.profile.as_ref().filter(|_| id == run.id) {
            return insert_profile(sql, key, profile).map_err(|error| refused(path, &id, error));
        }
        return Err(RecordError::RunExists {
            path: path.to_owned(),
            execution: run.execution.clone(),
            ordinal: run.ordinal,
            id: run.id.clone(),
        });
    }
    let key = insert_run(sql, execution, run).map_err(|error| refused(path, &run.id, error))?;
    insert_rows(sql, key, run).map_err(|error| refused(path, &run.id, error))?;
    for (position, latency) in run.latencies.iter().enumerate() {
        let bytes = latency
            .histogram
            .encode()
            .map_err(|what| RecordError::InvalidRecord { id: run.id.clone(), what })?;
        insert_latency(sql, key, position, latency, &bytes)
            .map_err(|error| refused(path, &run.id, error))?;
    }
    Ok(())
}

fn insert_run(sql: &Connection, execution: i64, run: &Run) -> rusqlite::Result<i64> {
    let (kind, think, rate, arrivals) = match &run.pacing {
        LoopKind::Closed { think_s } => ("closed", Some(*think_s), None, None),
        LoopKind::Open { rate_ops_s, arrivals } => {
            ("open", None, Some(*rate_ops_s), Some(arrivals))
        }
    };
    sql.prepare_cached(
        "INSERT INTO run (id, execution_key, ordinal, label, phase, store_version, threads, loop,
         think_s, rate_ops_s, arrivals, started_at, seconds, operations, verified, misses)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?
    .execute(params![
        run.id,
        execution,
        run.ordinal,
        run.label,
        name(&run.phase),
        run.store_version,
        run.threads,
        kind,
        think,
        rate,
        arrivals,
        run.started_at,
        run.seconds,
        run.operations,
        run.verified,
        run.misses,
    ])?;
    Ok(sql.last_insert_rowid())
}

fn insert_rows(sql: &Connection, key: i64, run: &Run) -> rusqlite::Result<()> {
    insert_pairs(sql, "INSERT INTO setting VALUES (?1, ?2, ?3)", key, &run.settings)?;
    insert_pairs(sql, "INSERT INTO stream VALUES (?1, ?2, ?3)", key, &run.stream)?;

    let mut remark = sql.prepare_cached("INSERT INTO remark VALUES (?1, ?2, ?3, ?4)")?;
    for (kind, texts) in [("invalid", &run.invalid_because), ("warning", &run.warnings)] {
        for (position, text) in texts.iter().enumerate() {
            remark.execute(params![key, kind, position, masked(text)])?;
        }
    }
    let mut failure = sql.prepare_cached("INSERT INTO failure VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, failed) in run.failures.iter().enumerate() {
        failure.execute(params![
            key,
            position,
            failed.kind,
            failed.count,
            masked(&failed.first)
        ])?;
    }
    if let Some(tax) = &run.tax {
        sql.execute(
            "INSERT INTO harness (run_key, ns_per_op, clock_ns, verify_ns, busy,
             measured_before_run) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                key,
                tax.ns_per_op,
                tax.clock_ns,
                tax.verify_ns,
                tax.busy,
                tax.measured_before_run,
            ],
        )?;
    }
    let mut series =
        sql.prepare_cached("INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    for (position, p) in run.series.iter().enumerate() {
        let op = p.op.name();
        series.execute(params![
            key,
            position,
            p.at_s,
            p.seconds,
            op,
            p.operations,
            p.p50_ns,
            p.p99_ns,
            p.p999_ns,
            p.max_ns,
        ])?;
    }
    let mut reading = sql.prepare_cached(
        "INSERT INTO reading VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for (position, read) in run.readings.iter().enumerate() {
        let read = finite_or_unavailable(read);
        let (value, unavailable, remedy) = columns(&read.answer);
        reading.execute(params![
            key,
            position,
            read.signal,
            value,
            unavailable,
            remedy,
            name(&read.unit),
            name(&read.scope),
            masked(&read.source),
            read.window_s,
            name(&read.origin),
        ])?;
    }
    insert_samples(sql, key, run)?;
    run.profile.as_ref().map_or(Ok(()), |profile| insert_profile(sql, key, profile))
}

/// The value, or the reason and the remedy.
fn columns(value: &ReadingValue) -> (Option<f64>, Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    match value {
        ReadingValue::Value(value) => (Some(*value), None, None),
        ReadingValue::Unavailable { reason, remedy } => {
            (None, Some(masked(reason)), remedy.as_deref().map(masked))
        }
    }
}

fn insert_samples(sql: &Connection, key: i64, run: &Run) -> rusqlite::Result<()> {
    if run.samples.is_empty() {
        return Ok(());
    }
    let mut sampled =
        sql.prepare_cached("INSERT INTO sampled VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let mut sample = sql.prepare_cached("INSERT INTO sample VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, series) in run.samples.iter().enumerate() {
        sampled.execute(params![
            key,
            position,
            series.signal,
            name(&series.unit),
            name(&series.scope),
            masked(&series.source),
            name(&series.origin),
        ])?;
        for (at, (at_s, value)) in series.at_s.iter().zip(&series.values).enumerate() {
            sample.execute(params![key, position, at, at_s, value])?;
        }
    }
    Ok(())
}

fn insert_pairs(
    sql: &Connection,
    insert: &str,
    key: i64,
    pairs: &RunSettings,
) -> rusqlite::Result<()> {
    let mut statement = sql.prepare_cached(insert)?;
    for (name, value) in pairs {
        statement.execute(params![key, name, value])?;
    }
    Ok(())
}

fn insert_latency(
    sql: &Connection,
    key: i64,
    position: usize,
    latency: &RunLatency,
    bytes: &[u8],
) -> rusqlite::Result<()> {
    let [mean, min, p50, p90, p95, p99, p99_9, p99_99, max] = figures_us(&latency.histogram);
    let (operation, clock, count) =
        (latency.op.name(), name(&latency.clock), latency.histogram.len());
    sql.prepare_cached(
        "INSERT INTO latency VALUES
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        key, position, operation, clock, count, mean, min, p50, p90, p95, p99, p99_9, p99_99, max,
        bytes,
    ])?;
    Ok(())
}

/// The reading; a value that is not finite becomes unavailable.
pub(crate) fn finite_or_unavailable(reading: &Reading) -> Reading {
    let mut stored = reading.clone();
    if let ReadingValue::Value(value) = stored.answer
        && !value.is_finite()
    {
        let reason = format!("its value was not a number ({value})");
        stored.answer = ReadingValue::Unavailable { reason, remedy: None };
    }
    stored
}

fn key_of(sql: &Connection, path: &Path, execution: &str) -> Result<Option<i64>, RecordError> {
    sql.prepare_cached("SELECT key FROM execution WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([execution], |row| row.get(0)).optional())
        .map_err(|error| RecordError::sqlite(path, error))
}

fn unknown_execution(path: &Path, id: &str) -> RecordError {
    RecordError::UnknownExecution { path: path.to_owned(), id: id.to_owned() }
}

/// Distinguishes a record that violates the schema from a failing file.
fn refused(path: &Path, id: &str, error: rusqlite::Error) -> RecordError {
    let broken_rule = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
        || matches!(error, rusqlite::Error::ToSqlConversionFailure(_));
    if broken_rule {
        RecordError::InvalidRecord { id: id.to_owned(), what: error.to_string() }
    } else {
        RecordError::sqlite(path, error)
    }
}
