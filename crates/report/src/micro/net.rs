//! Round trips and flows between two ends.

use model::{Distribution, Reading, ReadingValue};

use super::size;
use crate::format::{count, micros, percent, significant};
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// What is measured between the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetBench {
    /// Round trips.
    Pingpong,
    /// One-way delays of a stream.
    Flow,
}

/// One measured cell.
#[derive(Debug, Clone)]
pub struct NetCell<'a> {
    pub message_bytes: u64,
    pub stack: String,
    pub transport: String,
    pub connections: u32,
    /// Of a flow.
    pub stride_bytes: u64,
    pub reuse_bytes: u64,
    pub messages: u64,
    pub messages_s: Option<f64>,
    pub bytes_s: Option<f64>,
    /// In nanoseconds, or why there is none.
    pub latency: Result<Distribution, &'a str>,
    /// None over a transport that loses nothing.
    pub lost: Option<u64>,
    /// Messages that came late, twice or out of order.
    pub late: u64,
    pub client_ns_per_byte: Option<f64>,
    pub server_ns_per_byte: Option<f64>,
    /// The LLC miss ratio of the end at which data arrives.
    pub misses: Option<&'a Reading>,
    /// Its threads poll whatever the load.
    pub polls: bool,
    pub valid: bool,
}

impl NetCell<'_> {
    /// A name for messages.
    pub fn title(&self) -> String {
        format!("{} {}, {}", self.stack, self.transport, size(self.message_bytes))
    }
}

/// A row for each cell.
pub fn net(bench: NetBench, cells: &[NetCell<'_>]) -> Table {
    let (title, latency, ops) = match bench {
        NetBench::Pingpong => ("Round trips, µs", "p50", "kops/s"),
        NetBench::Flow => ("Flow; one-way delays, µs", "p50", "kmsg/s"),
    };
    let mut table = Table::new(title)
        .column("message", Align::Right, ALWAYS)
        .column("stack", Align::Left, ALWAYS)
        .column("over", Align::Left, ALWAYS)
        .column("conns", Align::Right, 60)
        .column("stride", Align::Right, 90)
        .column("reuse", Align::Right, 90)
        .column(ops, Align::Decimal, ALWAYS)
        .column("MB/s", Align::Decimal, ALWAYS)
        .column(latency, Align::Decimal, ALWAYS)
        .column("p99", Align::Decimal, ALWAYS)
        .column("p99.9", Align::Decimal, 40)
        .column("lost", Align::Right, 80)
        .column("client ns/B", Align::Decimal, 50)
        .column("server ns/B", Align::Decimal, 50)
        .column("LLC miss", Align::Right, 30);
    for cell in cells {
        table.row_of(row(bench, cell), cell.valid);
    }
    notes(bench, cells, &mut table);
    table.without_empty_columns()
}

fn row(bench: NetBench, cell: &NetCell<'_>) -> Vec<Cell> {
    let touch = |bytes: u64| match bench {
        NetBench::Pingpong => String::new(),
        NetBench::Flow => size(bytes),
    };
    let number = |value: Option<f64>, digits: i32| {
        value.map_or_else(|| "-".to_owned(), |value| significant(value, digits))
    };
    let at = |percentile: f64| match &cell.latency {
        Ok(latency) if !latency.is_empty() => {
            micros(latency.value_at_percentile(percentile) as f64)
        }
        _ => "-".to_owned(),
    };
    let lost = match cell.lost {
        None => Cell::from(""),
        Some(0) => Cell::from("0"),
        Some(lost) => {
            let share = lost as f64 / (lost + cell.messages) as f64;
            Cell::new(format!("{} ({})", count(lost), percent(share)), Tone::Warning)
        }
    };
    let misses = cell.misses.and_then(Reading::value);
    vec![
        size(cell.message_bytes).into(),
        cell.stack.clone().into(),
        cell.transport.clone().into(),
        cell.connections.to_string().into(),
        touch(cell.stride_bytes).into(),
        touch(cell.reuse_bytes).into(),
        number(cell.messages_s.map(|rate| rate / 1e3), 4).into(),
        number(cell.bytes_s.map(|rate| rate / 1e6), 4).into(),
        at(50.0).into(),
        at(99.0).into(),
        at(99.9).into(),
        lost,
        number(cell.client_ns_per_byte, 3).into(),
        number(cell.server_ns_per_byte, 3).into(),
        misses.map_or_else(|| "-".to_owned(), percent).into(),
    ]
}

/// Why there are dashes, once each.
fn notes(bench: NetBench, cells: &[NetCell<'_>], table: &mut Table) {
    table.note(match bench {
        NetBench::Pingpong => {
            "MB/s and ns/B (CPU time of an end) are of the payload of both ways; every byte that \
             comes back is checked"
        }
        NetBench::Flow => {
            "MB/s is what the receiver got; ns/B is CPU time of an end, the server's with touching"
        }
    });
    let mut lines: Vec<String> = Vec::new();
    let mut say = |text: String| {
        if !lines.contains(&text) {
            lines.push(text);
        }
    };
    for cell in cells {
        if let Err(why) = &cell.latency {
            say(format!("no latency: {why}"));
        }
        if let Some(ReadingValue::Unavailable { reason, remedy }) = cell.misses.map(|r| &r.answer) {
            let remedy = remedy.as_ref().map(|text| format!("; {text}")).unwrap_or_default();
            say(format!("LLC misses are unavailable: {reason}{remedy}"));
        }
        if cell.late > 0 {
            let late = cell.late;
            say(format!("{}: {late} messages came late, twice or out of order", cell.title()));
        }
    }
    if cells.iter().any(|cell| cell.polls) {
        say("DPDK polls: its threads are busy whatever the load".to_owned());
    }
    lines.into_iter().for_each(|text| table.note(text));
}
