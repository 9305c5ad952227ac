//! Memory traffic that was made on purpose.

use super::size;
use crate::format::{self, NONE, significant};
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// What was asked of the memory, and what it carried.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryTraffic<'a> {
    pub kind: String,
    pub cpus: &'a [u32],
    /// Of each CPU.
    pub buffer_bytes: u64,
    /// 10^9 bytes a second; None for all that they can move.
    pub target_gb_s: Option<f64>,
    pub gb_s: f64,
    pub reached_target: bool,
    pub bytes: u64,
    pub seconds: f64,
    /// Least, median and most of intervals.
    pub intervals_gb_s: [Option<f64>; 3],
    pub interval_ms: u128,
}

/// One row.
pub fn traffic(of: &MemoryTraffic<'_>) -> Table {
    let mut table = Table::new("Memory traffic, GB/s")
        .column("asked", Align::Decimal, ALWAYS)
        .column("achieved", Align::Decimal, ALWAYS)
        .column("least", Align::Decimal, 20)
        .column("median", Align::Decimal, 20)
        .column("most", Align::Decimal, 20)
        .column("moved", Align::Right, 10)
        .column("time", Align::Right, 10);
    let rate = |gb_s: Option<f64>| gb_s.map_or(NONE.to_owned(), |rate| significant(rate, 4));
    let tone = if of.reached_target { Tone::Strong } else { Tone::Warning };
    let [least, median, most] = of.intervals_gb_s;
    table.row(vec![
        of.target_gb_s.map_or("all".to_owned(), |target| significant(target, 4)).into(),
        Cell::new(significant(of.gb_s, 4), tone),
        rate(least).into(),
        rate(median).into(),
        rate(most).into(),
        format::bytes(of.bytes as f64).into(),
        format::seconds(of.seconds).into(),
    ]);
    table.note(format!(
        "{} traffic of CPUs {:?}, each in {} of its own; least, median and most over intervals of \
         {} ms.",
        of.kind,
        of.cpus,
        size(of.buffer_bytes),
        of.interval_ms
    ));
    table
}
