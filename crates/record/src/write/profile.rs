//! Writes the pass after a run: stacks, what was counted inside the kernel, and slots.

use model::{KernelCounts, KernelHistogram, RunProfile, masked};
use rusqlite::{Connection, params};

use super::top_down::insert_top_down;
use crate::names::name;

pub(super) fn insert_profile(
    sql: &Connection,
    key: i64,
    profile: &RunProfile,
) -> rusqlite::Result<()> {
    let top_down = profile.top_down.as_ref();
    sql.execute(
        "INSERT INTO profile VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            key,
            name(&profile.clock),
            profile.frequency,
            profile.kernel,
            profile.seconds,
            profile.operations,
            profile.lost,
            profile.counts.as_ref().map(|counts| counts.lost),
            top_down.map(|pass| pass.seconds),
            top_down.map(|pass| pass.operations),
            top_down.and_then(|pass| pass.missing.as_deref().map(masked)),
        ],
    )?;
    let mut stack =
        sql.prepare_cached("INSERT INTO stack VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for (position, known) in profile.stacks.iter().enumerate() {
        stack.execute(params![
            key,
            position,
            name(&known.side),
            masked(&known.process),
            name(&known.state),
            known.folded_frames(),
            known.samples,
            known.seconds,
        ])?;
    }
    for (position, known) in top_down.iter().flat_map(|pass| pass.processes.iter().enumerate()) {
        insert_top_down(sql, key, position, known)?;
    }
    profile.counts.as_ref().map_or(Ok(()), |counts| insert_counts(sql, key, counts))
}

fn insert_counts(sql: &Connection, key: i64, counts: &KernelCounts) -> rusqlite::Result<()> {
    for (position, histogram) in counts.histograms.iter().enumerate() {
        insert_histogram(sql, key, position, histogram)?;
    }
    let mut missing = sql.prepare_cached("INSERT INTO kernel_missing VALUES (?1, ?2, ?3, ?4)")?;
    for (position, what) in counts.missing.iter().enumerate() {
        missing.execute(params![key, position, what.what, masked(&what.reason)])?;
    }
    let mut tcp = sql.prepare_cached(
        "INSERT INTO tcp VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for (position, figures) in counts.connections.iter().enumerate() {
        tcp.execute(params![
            key,
            position,
            name(&figures.side),
            masked(&figures.process),
            figures.connections,
            figures.retransmitted,
            figures.median_rtt_us,
            figures.max_rtt_us,
            figures.mean_send_queue,
            figures.max_send_queue,
            figures.mean_receive_queue,
            figures.max_receive_queue,
        ])?;
    }
    Ok(())
}

fn insert_histogram(
    sql: &Connection,
    key: i64,
    position: usize,
    histogram: &KernelHistogram,
) -> rusqlite::Result<()> {
    let mut row =
        sql.prepare_cached("INSERT INTO kernel_histogram VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    row.execute(params![
        key,
        position,
        name(&histogram.quantity),
        name(&histogram.quantity.unit()),
        masked(&histogram.subject),
        histogram.side.as_ref().map(name),
        histogram.operation.as_ref().map(name),
    ])?;
    let mut bucket =
        sql.prepare_cached("INSERT INTO kernel_bucket VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for known in &histogram.buckets {
        // SQLite's whole numbers have a sign; such a sum is 292 years.
        let sum = i64::try_from(known.sum).unwrap_or(i64::MAX);
        bucket.execute(params![key, position, known.low, known.width, known.count, sum])?;
    }
    Ok(())
}
