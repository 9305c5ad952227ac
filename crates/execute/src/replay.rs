//! A trace as the load generator replays it.

use std::sync::Arc;

use drive::Replay;
use study::{LoadConfig, TraceSource};
use workload::SizedValues;
use workload::trace::ArrivalSpread;

use crate::error::ExecuteError;

/// The replay for the load generator.
pub(crate) fn replay(
    trace: &TraceSource,
    load_config: &LoadConfig,
    seed: u64,
) -> Result<Arc<Replay>, ExecuteError> {
    let spread =
        if load_config.evenly { ArrivalSpread::Even } else { ArrivalSpread::Poisson { seed } };
    Ok(Arc::new(Replay {
        file: trace.file.clone(),
        options: trace.options,
        spread,
        most: load_config.shape.until.operations,
        values: Arc::new(SizedValues::new(seed, trace.compressibility)?),
        refill: trace.refill,
    }))
}
