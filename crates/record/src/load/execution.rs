//! Executions with their machines, plans and designs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use model::design::Design;
use model::{Execution, Fact, Machine, PlannedRun, RunSettings};
use rusqlite::{Connection, Row};

use super::{damaged, rows};
use crate::error::RecordError;

/// Every execution, in the order in which they began. In an overview only the first execution on a
/// machine has its facts, and planned runs have no settings.
pub(crate) fn executions(
    sql: &Connection,
    path: &Path,
    overview: bool,
) -> Result<Vec<Execution>, RecordError> {
    let query = "SELECT * FROM execution ORDER BY key";
    let rows = rows(sql, path, "execution", query, |row| {
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
    let mut load = ExecutionLoader { sql, path, executions: Vec::new(), positions: HashMap::new() };
    for (key, seed, command, mut execution) in rows {
        let (seed, command): (String, String) = (seed, command);
        let wrong = |what: String| damaged(path, format!("execution {}: {what}", execution.id));
        execution.seed = seed.parse().map_err(|_| wrong(format!("a seed of `{seed}`")))?;
        execution.command = serde_json::from_str(&command)
            .map_err(|error| wrong(format!("a command line: {error}")))?;
        load.positions.insert(key, load.executions.len());
        load.executions.push(execution);
    }
    load.designs()?;
    load.facts(overview)?;
    load.plans(overview)?;
    load.notes()?;
    Ok(load.executions)
}

struct ExecutionLoader<'a> {
    sql: &'a Connection,
    path: &'a Path,
    executions: Vec<Execution>,
    /// The position in `executions` of each key.
    positions: HashMap<i64, usize>,
}

impl ExecutionLoader<'_> {
    /// Reads each row of a table whose first column is the key of an execution.
    fn for_each_row(
        &mut self,
        table: &str,
        query: &str,
        mut read: impl FnMut(&Row<'_>, &mut Execution) -> rusqlite::Result<()>,
    ) -> Result<(), RecordError> {
        let (at, executions) = (&self.positions, &mut self.executions);
        rows(self.sql, self.path, table, query, |row| match at.get(&row.get::<_, i64>(0)?) {
            Some(position) => read(row, &mut executions[*position]),
            None => Ok(()),
        })
        .map(|_: Vec<()>| ())
    }

    fn facts(&mut self, overview: bool) -> Result<(), RecordError> {
        let mut machines = HashSet::new();
        let has = |execution: &Execution| !overview || !execution.design.is_empty();
        let with_facts: HashSet<String> = self
            .executions
            .iter()
            .filter(|execution| machines.insert(&execution.machine.id) || has(execution))
            .map(|execution| execution.id.clone())
            .collect();
        let query = "SELECT * FROM fact ORDER BY execution_key, position";
        self.for_each_row("fact", query, |row, execution| {
            if with_facts.contains(&execution.id) {
                let value = match row.get("value")? {
                    Some(value) => Ok(value),
                    None => Err(row.get("unavailable")?),
                };
                let fact = Fact { name: row.get("name")?, value, source: row.get("source")? };
                execution.machine.facts.push(fact);
            }
            Ok(())
        })
    }

    fn plans(&mut self, overview: bool) -> Result<(), RecordError> {
        let mut settings: BTreeMap<(i64, u32), RunSettings> = BTreeMap::new();
        if !overview {
            let query = "SELECT execution_key, ordinal, key, value FROM planned_setting";
            rows(self.sql, self.path, "planned_setting", query, |row| {
                let run = (row.get(0)?, row.get(1)?);
                settings.entry(run).or_default().insert(row.get(2)?, row.get(3)?);
                Ok(())
            })?;
        }
        let query = "SELECT execution_key, ordinal, label FROM planned
                     ORDER BY execution_key, position";
        self.for_each_row("planned", query, |row, execution| {
            let ordinal = row.get(1)?;
            let settings = settings.remove(&(row.get(0)?, ordinal)).unwrap_or_default();
            execution.plan.push(PlannedRun { ordinal, label: row.get(2)?, settings });
            Ok(())
        })
    }

    fn designs(&mut self) -> Result<(), RecordError> {
        let mut texts: Vec<(i64, String)> = Vec::new();
        self.for_each_row("design", "SELECT execution_key, design FROM design", |row, _| {
            texts.push((row.get(0)?, row.get(1)?));
            Ok(())
        })?;
        for (key, text) in texts {
            let Some(place) = self.positions.get(&key) else { continue };
            let execution = &mut self.executions[*place];
            execution.design = serde_json::from_str(&text).map_err(|error| {
                let place = format!("execution {}, table `design`", execution.id);
                damaged(self.path, format!("{place}: {error}"))
            })?;
        }
        Ok(())
    }

    fn notes(&mut self) -> Result<(), RecordError> {
        let query = "SELECT execution_key, text FROM note ORDER BY execution_key, position";
        self.for_each_row("note", query, |row, execution| {
            execution.notes.push(row.get(1)?);
            Ok(())
        })
    }
}
