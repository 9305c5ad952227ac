//! The buckets of repeats, added up while they are read: reports of many runs show a distribution
//! for each cell, and whole ones of 100,000 runs do not fit into memory.

use std::collections::HashMap;

use model::{BucketSum, LatencyClock, LatencyScope, Run};

/// A distribution: its run, and its position among those of the run.
type Place = (usize, usize);

/// The sums of one cell, and the places that they are given to.
type CellSums = HashMap<(LatencyScope, LatencyClock), (Place, BucketSum)>;

/// The sums of buckets of each kind of operation and clock of repeats.
#[derive(Default)]
pub(super) struct RepeatedLatencies {
    cells: HashMap<String, CellSums>,
}

impl RepeatedLatencies {
    /// Takes the buckets of the run at this position.
    pub(super) fn take(&mut self, position: usize, run: &mut Run) {
        let cell = self.cells.entry(cell_of(run)).or_default();
        for (nth, latency) in run.latencies.each_mut().iter_mut().enumerate() {
            let of = (latency.op, latency.clock);
            let (_, sum) = cell.entry(of).or_insert_with(|| ((position, nth), Default::default()));
            sum.take(&mut latency.histogram);
        }
    }

    /// Gives the sums to the first run of each.
    pub(super) fn give(self, runs: &mut [Run]) {
        for ((position, nth), sum) in self.cells.into_values().flat_map(HashMap::into_values) {
            sum.give(&mut runs[position].latencies.each_mut()[nth].histogram);
        }
    }
}

/// What repeats have in common. Valid runs and others are shown apart.
fn cell_of(run: &Run) -> String {
    let of_repeat = |key: &str| Run::REPEAT_SETTINGS.contains(&key);
    let settings: Vec<_> = run.settings.iter().filter(|(key, _)| !of_repeat(key)).collect();
    let Run { execution, phase, store_version, threads, pacing, .. } = run;
    let valid = run.valid();
    format!("{execution}\n{phase:?} {threads} {pacing:?} {valid} {store_version:?} {settings:?}")
}
