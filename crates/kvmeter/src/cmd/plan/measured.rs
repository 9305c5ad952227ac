//! What runs say of a machine beside its capacity.

use analyse::cost::Platform;
use analyse::fleet_plan::{DataRoom, NetworkRoom};
use model::{Bytes, Run};
use report::cells::ReportCell;

use crate::flags::platform::PlatformFlag;

pub const BYTES_PER_GIB: f64 = 1_073_741_824.0;
const BYTES_PER_GBIT: f64 = 1e9 / 8.0;

/// Bytes of a machine that may hold data.
pub fn room_bytes(
    flag: Option<&PlatformFlag>,
    platform: Option<&Platform>,
    in_memory: bool,
) -> Option<f64> {
    let own = flag.and_then(|flag| if in_memory { flag.memory } else { flag.storage });
    let gib = platform.and_then(|platform| match in_memory {
        true => platform.memory_gib.as_ref(),
        false => platform.storage_gib.as_ref(),
    });
    own.map(|Bytes(bytes)| bytes as f64).or_else(|| gib.map(|given| given.value * BYTES_PER_GIB))
}

/// Share of the operations that write: the median over the runs; 0 where nothing is known.
pub fn write_share(cell: &ReportCell<'_>) -> f64 {
    let of = |run: &Run| {
        let own = run.latencies.iter().filter(|latency| latency.clock == run.clock());
        let (mut all, mut writes) = (0.0, 0.0);
        for latency in own {
            let Some(op) = latency.op.op() else { continue };
            let count = latency.histogram.len() as f64;
            all += count;
            writes += if op.writes() { count } else { 0.0 };
        }
        (all > 0.0).then(|| writes / all)
    };
    cell.median(of).unwrap_or(0.0)
}

/// Keys and values that the runs were loaded with.
pub fn data_bytes(run: &Run) -> Option<f64> {
    run.settings.get("workload.data_bytes")?.parse().ok().filter(|bytes| *bytes > 0.0)
}

/// Where data lie and what they take there; what is assumed is added to `notes`.
pub fn data_room(
    name: &str,
    cell: &ReportCell<'_>,
    flag: Option<&PlatformFlag>,
    platform: Option<&Platform>,
    notes: &mut Vec<String>,
) -> DataRoom {
    let amplification = cell.median(|run| run.value("space_amplification"));
    let in_memory = cell.median(|run| run.value("disk.bytes")).is_none();
    let resident = cell.median(|run| Some(run.value("server.memory.resident")? / data_bytes(run)?));
    let taken = if in_memory { resident } else { amplification };
    // Much memory around few data is the server's own.
    let taken = taken.filter(|taken| taken.is_finite() && *taken > 0.0);
    if taken.is_none() {
        notes.push(format!(
            "{name}: what the store takes for a byte of data was not measured, and is taken as one."
        ));
    }
    let bytes = room_bytes(flag, platform, in_memory);
    DataRoom { in_memory, bytes, taken_per_byte: taken.unwrap_or(1.0) }
}

/// The network, where its rate and the bytes of an operation are known.
pub fn network(
    cell: &ReportCell<'_>,
    flag: Option<&PlatformFlag>,
    platform: Option<&Platform>,
) -> Option<NetworkRoom> {
    let given = platform.and_then(|platform| platform.network_gbit_s.as_ref());
    let gbit_s = flag.and_then(|flag| flag.network).or_else(|| given.map(|given| given.value))?;
    let bytes_per_op = cell.median(|run| {
        let most = run.value("workload.read")?.max(run.value("workload.written")?);
        (run.operations > 0).then(|| most / run.operations as f64)
    })?;
    Some(NetworkRoom { bytes_per_s: gbit_s * BYTES_PER_GBIT, bytes_per_op })
}
