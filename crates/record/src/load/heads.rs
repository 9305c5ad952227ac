//! What a filter needs of a run, without the distributions.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;

use super::rows;
use crate::error::RecordError;
use model::RunSettings;

#[derive(Debug, Clone)]
pub(crate) struct RunHead {
    pub key: i64,
    pub execution: String,
    pub study: String,
    pub label: String,
    pub phase: String,
    pub valid: bool,
    pub settings: RunSettings,
}

/// Every run, by execution and ordinal.
pub(crate) fn heads(sql: &Connection, path: &Path) -> Result<Vec<RunHead>, RecordError> {
    let mut settings: HashMap<i64, RunSettings> = HashMap::new();
    let query = "SELECT run_key, key, value FROM setting";
    rows(sql, path, "setting", query, |row| {
        settings.entry(row.get(0)?).or_default().insert(row.get(1)?, row.get(2)?);
        Ok(())
    })?;
    let query = "SELECT run.key AS key, execution.id AS execution, study, label, phase,
                 NOT EXISTS (SELECT 1 FROM remark WHERE run_key = run.key AND kind = 'invalid')
                   AS valid
                 FROM run JOIN execution ON execution.key = execution_key
                 ORDER BY execution_key, ordinal";
    rows(sql, path, "run", query, |row| {
        let key = row.get("key")?;
        Ok(RunHead {
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
