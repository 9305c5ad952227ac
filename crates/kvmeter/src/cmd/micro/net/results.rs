//! Results of cells as a table and as JSON.

use micro::net::{EndOutcome, Kind, MeasuredCell, Stack};
use model::figures::{FIGURES, figures_us};
use model::{Reading, ReadingValue};
use report::format::{count, micros, percent, significant};
use report::table::{ALWAYS, Align, Cell, Table, Tone};
use serde_json::{Map, Value, json};

use super::super::session::size;
use super::cells::NetCells;

const MISSES: &str = "llc.miss_ratio";

/// The results of all cells.
pub struct CellResults {
    /// For JSON, by name.
    pub results: Map<String, Value>,
    pub table: Table,
    pub warnings: Vec<String>,
}

pub fn all(cells: &NetCells, measured: &[MeasuredCell]) -> CellResults {
    let objects: Vec<Value> = measured.iter().map(object).collect();
    let mut warnings = Vec::new();
    for cell in measured {
        for why in cell.invalid_because() {
            warnings.push(format!("{}: invalid: {why}", title(cell)));
        }
        for note in &cell.notes {
            if !warnings.contains(note) {
                warnings.push(note.clone());
            }
        }
    }
    let table = table(cells.kind, measured);
    let results = Map::from_iter([("cells".to_owned(), objects.into())]);
    CellResults { results, table, warnings }
}

fn title(cell: &MeasuredCell) -> String {
    let job = &cell.job;
    format!("{} {}, {}", job.transport.stack(), job.transport, size(job.size))
}

fn table(kind: Kind, measured: &[MeasuredCell]) -> Table {
    let (title, latency, ops) = match kind {
        Kind::Pingpong => ("Round trips, µs", "p50", "kops/s"),
        Kind::Flow => ("Flow; one-way delays, µs", "p50", "kmsg/s"),
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
    for cell in measured {
        let job = &cell.job;
        let touch = |bytes: u64| match kind {
            Kind::Pingpong => String::new(),
            Kind::Flow => size(bytes),
        };
        let number = |value: Option<f64>, digits: i32| {
            value.map_or_else(|| "-".to_owned(), |value| significant(value, digits))
        };
        let at = |percentile: f64| match &cell.latency().0 {
            Ok(histogram) if !histogram.is_empty() => {
                micros(histogram.value_at_percentile(percentile) as f64)
            }
            _ => "-".to_owned(),
        };
        let lost = match (job.transport.is_lossy(), cell.lost()) {
            (false, _) => Cell::from(""),
            (true, 0) => Cell::from("0"),
            (true, lost) => {
                let share = lost as f64 / (lost + cell.messages()) as f64;
                Cell::new(format!("{} ({})", count(lost), percent(share)), Tone::Warning)
            }
        };
        let misses = arriving(cell).and_then(Reading::value);
        let row = vec![
            size(job.size).into(),
            job.transport.stack().to_string().into(),
            job.transport.to_string().into(),
            job.connections.to_string().into(),
            touch(job.stride).into(),
            touch(job.reuse).into(),
            number(cell.messages_s().map(|rate| rate / 1e3), 4).into(),
            number(cell.bytes_s().map(|rate| rate / 1e6), 4).into(),
            at(50.0).into(),
            at(99.0).into(),
            at(99.9).into(),
            lost,
            number(cell.cpu_ns_per_byte(&cell.client), 3).into(),
            number(cell.cpu_ns_per_byte(&cell.server), 3).into(),
            misses.map_or_else(|| "-".to_owned(), percent).into(),
        ];
        table.row_of(row, cell.invalid_because().is_empty());
    }
    notes(kind, measured, &mut table);
    table.without_empty_columns()
}

/// The LLC miss ratio of the end at which data arrives.
fn arriving(cell: &MeasuredCell) -> Option<&Reading> {
    let end = match cell.job.kind {
        Kind::Pingpong => &cell.client,
        Kind::Flow => &cell.server,
    };
    reading(end, MISSES)
}

fn reading<'a>(end: &'a EndOutcome, signal: &str) -> Option<&'a Reading> {
    end.readings.iter().find(|reading| reading.signal == signal)
}

/// Why there are dashes, once each.
fn notes(kind: Kind, measured: &[MeasuredCell], table: &mut Table) {
    table.note(match kind {
        Kind::Pingpong => {
            "MB/s and ns/B (CPU time of an end) are of the payload of both ways; every byte that \
             comes back is checked"
        }
        Kind::Flow => {
            "MB/s is what the receiver got; ns/B is CPU time of an end, the server's with touching"
        }
    });
    let mut lines: Vec<String> = Vec::new();
    let mut say = |text: String| {
        if !lines.contains(&text) {
            lines.push(text);
        }
    };
    for cell in measured {
        if let Err(why) = &cell.latency().0 {
            say(format!("no latency: {why}"));
        }
        if let Some(ReadingValue::Unavailable { reason, remedy }) =
            arriving(cell).map(|r| &r.answer)
        {
            let remedy = remedy.as_ref().map(|text| format!("; {text}")).unwrap_or_default();
            say(format!("LLC misses are unavailable: {reason}{remedy}"));
        }
        if cell.late() > 0 {
            let late = cell.late();
            say(format!("{}: {late} messages came late, twice or out of order", title(cell)));
        }
    }
    if measured.iter().any(|cell| cell.job.transport.stack() == Stack::Dpdk) {
        say("DPDK polls: its threads are busy whatever the load".to_owned());
    }
    lines.into_iter().for_each(|text| table.note(text));
}

/// One cell under the names that results have everywhere.
fn object(cell: &MeasuredCell) -> Value {
    let job = &cell.job;
    let ends = |of: &dyn Fn(&EndOutcome) -> Option<f64>| json!({ "client": of(&cell.client), "server": of(&cell.server) });
    let signal = |name: &'static str| ends(&|end| reading(end, name).and_then(Reading::value));
    let way = match job.kind {
        Kind::Pingpong => "round_trip",
        Kind::Flow => "one_way",
    };
    let figures: Value = match &cell.latency().0 {
        Ok(histogram) => FIGURES
            .iter()
            .zip(figures_us(&histogram.into()))
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect::<Map<_, _>>()
            .into(),
        Err(_) => Value::Null,
    };
    let messages = cell.messages();
    let cpu_s_per_mop = |end: &EndOutcome| {
        (messages > 0).then_some(end.cpu()?.as_secs_f64() / messages as f64 * 1e6)
    };
    json!({
        "stack": job.transport.stack(),
        "transport": job.transport,
        "message_bytes": job.size,
        "connections": job.connections,
        "threads": job.threads,
        "stride_bytes": (job.kind == Kind::Flow).then_some(job.stride),
        "reuse_bytes": (job.kind == Kind::Flow).then_some(job.reuse),
        "target_rate_ops_s": job.rate,
        "busy_poll": job.busy_poll,
        "socket_buffer_bytes": job.socket_buffer,
        "timeout_s": job.timeout_s,
        "seconds": match job.kind {
            Kind::Pingpong => cell.client.seconds,
            Kind::Flow => cell.server.seconds,
        },
        "sent": match job.kind {
            Kind::Pingpong => cell.client.messages + cell.client.lost,
            Kind::Flow => cell.client.messages,
        },
        "operations": messages,
        "lost": cell.lost(),
        "late": cell.late(),
        "corrupt": cell.corrupt(),
        "touched": cell.server.touched,
        "throughput_ops_s": cell.messages_s(),
        "throughput_bytes_s": cell.bytes_s(),
        "latency_us": { way: figures },
        "latency_unavailable": cell.latency().0.as_ref().err(),
        "latency_histogram": cell.latency().encoded().ok(),
        "cpu_ns_per_byte": ends(&|end| cell.cpu_ns_per_byte(end)),
        "cpu_s_per_mop": ends(&cpu_s_per_mop),
        "ipc": signal("ipc"),
        "llc_miss_ratio": signal(MISSES),
        "readings": { "client": cell.client.readings, "server": cell.server.readings },
        "notes": cell.notes,
        "valid": cell.invalid_because().is_empty(),
        "invalid_because": cell.invalid_because(),
    })
}
