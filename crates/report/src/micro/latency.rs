//! The latency of loads by size, and the caches found in it.

use super::costs::{NsSpread, ns};
use super::{huge_words, size};
use crate::format::NONE;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// A measured curve.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyCurve<'a> {
    pub cpu: u32,
    pub stride_bytes: usize,
    pub pages: String,
    /// Bytes of the largest ring on huge pages, or why that is not known.
    pub huge_bytes: &'a Result<u64, String>,
    /// Sizes in bytes, in order, with the cost of a load.
    pub points: Vec<(u64, NsSpread)>,
}

/// A level of the memory hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryLevel<'a> {
    pub load_ns: f64,
    /// None for the last.
    pub bytes: Option<u64>,
    /// Name and bytes of the cache as the kernel states it.
    pub stated: Option<(&'a str, u64)>,
}

/// A row for each size.
pub fn latency(curve: &LatencyCurve<'_>) -> Table {
    let mut table = Table::new("Latency of a dependent load, ns")
        .column("size", Align::Right, ALWAYS)
        .column("min", Align::Decimal, ALWAYS)
        .column("median", Align::Decimal, 20)
        .column("mean", Align::Decimal, 19)
        .column("max", Align::Decimal, 18);
    for (bytes, load) in &curve.points {
        table.row(vec![
            size(*bytes).into(),
            Cell::new(ns(load.min), Tone::Strong),
            ns(load.median).into(),
            ns(load.mean).into(),
            ns(load.max).into(),
        ]);
    }
    let largest = curve.points.last().map_or(0, |(bytes, _)| *bytes);
    table.note(format!(
        "CPU {}; a random ring with a slot every {} B; {} pages: {}.",
        curve.cpu,
        curve.stride_bytes,
        curve.pages,
        huge_words(curve.huge_bytes, largest)
    ));
    table
}

/// A row for each level, the fastest first.
pub fn levels(levels: &[MemoryLevel<'_>]) -> Table {
    let mut table = Table::new("Levels found in the curve")
        .column("level", Align::Left, ALWAYS)
        .column("load ns", Align::Decimal, ALWAYS)
        .column("up to", Align::Right, ALWAYS)
        .column("the kernel says", Align::Left, ALWAYS);
    for (i, level) in levels.iter().enumerate() {
        let says = level.stated.map(|(name, bytes)| format!("{name} {}", size(bytes)));
        let number = i + 1;
        table.row(vec![
            match level.bytes {
                Some(_) => number.to_string(),
                None => format!("{number}, the last"),
            }
            .into(),
            Cell::new(ns(level.load_ns), Tone::Strong),
            level.bytes.map_or(NONE.to_owned(), size).into(),
            says.unwrap_or_else(|| NONE.to_owned()).into(),
        ]);
    }
    table
}
