//! Writes what became of the pipeline's slots in the further pass after a run.

use model::{TopDown, masked};
use rusqlite::{Connection, params};

use super::columns;
use crate::names::name;

pub(super) fn insert_top_down(
    sql: &Connection,
    key: i64,
    position: usize,
    known: &TopDown,
) -> rusqlite::Result<()> {
    let mut row = sql.prepare_cached("INSERT INTO top_down VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    row.execute(params![
        key,
        position,
        name(&known.side),
        masked(&known.process),
        known.cpu,
        known.source,
        known.user_only,
    ])?;
    let mut share = sql.prepare_cached("INSERT INTO slot_share VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for known in &known.shares {
        let (value, reason, remedy) = columns(&known.share);
        share.execute(params![key, position, name(&known.category), value, reason, remedy])?;
    }
    let mut event =
        sql.prepare_cached("INSERT INTO slot_event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for (nth, known) in known.events.iter().enumerate() {
        let (count, reason, remedy) = columns(&known.count);
        event.execute(params![
            key,
            position,
            nth,
            known.event,
            count,
            reason,
            remedy,
            known.running
        ])?;
    }
    Ok(())
}
