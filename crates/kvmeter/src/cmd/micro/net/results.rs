//! Results of cells as a table and as JSON.

use micro::net::{Kind, MeasuredCell, Stack};
use report::micro::{NetBench, NetCell, net};
use report::table::Table;
use serde_json::{Map, Value};

/// The results of all cells.
pub struct CellResults {
    /// For JSON, by name.
    pub results: Map<String, Value>,
    pub table: Table,
    pub warnings: Vec<String>,
}

pub fn all(kind: Kind, measured: &[MeasuredCell]) -> CellResults {
    let objects: Vec<Value> = measured.iter().map(MeasuredCell::summary).collect();
    let cells: Vec<NetCell<'_>> = measured.iter().map(shown).collect();
    let mut warnings = Vec::new();
    for (cell, measured) in cells.iter().zip(measured) {
        for why in measured.invalid_because() {
            warnings.push(format!("{}: invalid: {why}", cell.title()));
        }
        for note in &measured.notes {
            if !warnings.contains(note) {
                warnings.push(note.clone());
            }
        }
    }
    let bench = match kind {
        Kind::Pingpong => NetBench::Pingpong,
        Kind::Flow => NetBench::Flow,
    };
    let results = Map::from_iter([("cells".to_owned(), objects.into())]);
    CellResults { results, table: net(bench, &cells), warnings }
}

fn shown(cell: &MeasuredCell) -> NetCell<'_> {
    let job = &cell.job;
    NetCell {
        message_bytes: job.size,
        stack: job.transport.stack().to_string(),
        transport: job.transport.to_string(),
        connections: job.connections,
        stride_bytes: job.stride,
        reuse_bytes: job.reuse,
        messages: cell.messages(),
        messages_s: cell.messages_s(),
        bytes_s: cell.bytes_s(),
        latency: cell.latency().0.as_ref().map(Into::into).map_err(String::as_str),
        lost: job.transport.is_lossy().then(|| cell.lost()),
        late: cell.late(),
        client_ns_per_byte: cell.cpu_ns_per_byte(&cell.client),
        server_ns_per_byte: cell.cpu_ns_per_byte(&cell.server),
        misses: cell.arrival_misses(),
        polls: job.transport.stack() == Stack::Dpdk,
        valid: cell.invalid_because().is_empty(),
    }
}
