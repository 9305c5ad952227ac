//! Tables of runs and rows, and their order.

use std::collections::BTreeSet;

use model::{Execution, Run};

use crate::curves::run_ids;
use crate::overview::is_many;
use crate::table::Table;

mod answer;
mod cells;
mod comparison;
mod design;
mod doctor;
mod durability;
mod grouped_notes;
mod knobs;
mod machine;
mod machine_side;
mod mbwu;
mod method;
mod misses;
mod notes;
mod plan;
mod profiled;
mod rates;
mod readings;
mod runs;
mod servers;
mod sides;
mod simulations;
mod trials;

pub use answer::answer;
pub use cells::cells;
pub use comparison::{DifferenceRow, RowVerdict, comparison};
pub use design::{PlanSize, design, skipped_lines};
pub use doctor::{CheckRow, CheckState, doctor};
pub use knobs::{KnobRow, knobs};
pub use machine::machine;
pub use machine_side::{HEADLINE_SIGNALS, machine_side, simulated};
pub use mbwu::{
    growth as mbwu_growth, mbwu, mbwu_line, published as mbwu_published, rounds as mbwu_rounds,
};
pub use method::{how_issued, method};
pub use misses::misses;
pub use notes::{Note, NoteWeight, notes};
pub use plan::{PlanRow, plan};
pub use profiled::{profiled, where_time_goes};
pub use rates::rates;
pub use readings::{named, readings};
pub use runs::{errors, latency, throughput};
pub use servers::servers;
pub use sides::{side_checks, sides};
pub use simulations::{measured_runs, simulations};
pub use trials::{trial_line, trials};

/// The tables of runs in their order; of many runs by configuration. Runs that are points of a
/// curve have their latencies in its table.
pub fn of_runs(all: &[(&Execution, &Run)]) -> Vec<Table> {
    let runs = &measured_runs(all);
    if runs.is_empty() {
        return simulations(all).into_iter().collect();
    }
    let simulations = simulations(all);
    let mut all = mbwu(runs);
    if is_many(runs) {
        all.extend([answer(runs), cells(runs)]);
        all.extend(rates(runs));
        all.extend(side_checks(runs));
        all.extend(simulations);
        return all;
    }
    let swept = run_ids(runs);
    all.push(throughput(runs));
    all.extend(rates(runs));
    if runs.iter().any(|(_, run)| !swept.contains(run.id.as_str())) {
        all.extend(Some(latency(runs, &swept)).filter(|table| !table.rows.is_empty()));
    }
    all.extend(misses(runs, &BTreeSet::new()));
    all.extend(servers(runs, &swept));
    all.extend(sides(runs, &swept));
    all.extend(side_checks(runs));
    all.extend(machine_side(runs));
    all.extend(simulated(runs));
    all.extend(simulations);
    all
}

/// Marks the name of an invalid run.
pub const INVALID_MARK: &str = "✗ ";

pub(crate) use grouped_notes::shape;
pub(crate) use rates::by_workload;
pub(crate) use readings::origin;
pub use readings::origin_name;
pub(crate) use runs::op_name;
