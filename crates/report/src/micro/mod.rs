//! Tables of microbenchmarks. They take plain rows: what measures the machine is not known here.

mod costs;
mod latency;
mod net;
mod stream;
mod traffic;

use model::Bytes;

use crate::format;

pub use costs::{CallCost, ClockCost, NsSpread, SwitchCost, calls, clocks, switches};
pub use latency::{LatencyCurve, MemoryLevel, latency, levels};
pub use net::{NetBench, NetCell, net};
pub use stream::{KernelRate, StreamCell, stream};
pub use traffic::{MemoryTraffic, traffic};

/// A size without a digit to spare where it is a short whole number of a unit.
pub fn size(bytes: u64) -> String {
    let plain = Bytes(bytes).to_string();
    match plain.find(|c: char| !c.is_ascii_digit()) {
        Some(digits) if digits <= 4 => plain,
        _ => format::bytes(bytes as f64),
    }
}

/// The huge pages that were obtained, in words.
fn huge_words(huge: &Result<u64, String>, of: u64) -> String {
    match huge {
        Ok(0) => "no huge pages".to_owned(),
        Ok(bytes) => format!("{} of {} on huge pages", size(*bytes), size(of)),
        Err(why) => format!("huge pages not known: {why}"),
    }
}
