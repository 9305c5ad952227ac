//! A machine whose numbers were measured at one load.

use analyse::RunWork;
use analyse::cost::{LoadPower, SourcedCandidate};
use report::cells::ReportCell;

use super::{COMMAND_LINE, CostArgs, Utilisation, platform_and_name, sourced, wrong};
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// A candidate from repeated runs: their median throughput and power.
pub(super) fn from_runs(
    args: &CostArgs,
    cell: &ReportCell<'_>,
    flag: Option<&PlatformFlag>,
) -> anyhow::Result<SourcedCandidate> {
    let (platform, machine) = platform_and_name(flag, cell.execution)?;
    let label = format!("{} on {machine}", cell.series);
    let (runs, valid) = cell.counted();
    if !valid {
        return Err(request(format!(
            "{} of {label}: no valid run; choose others with FILE?valid=true",
            cell.category
        )));
    }
    let mut notes = Vec::new();
    let throughput = cell
        .median(|run| Some(run.throughput()))
        .filter(|rate| *rate > 0.0)
        .ok_or_else(|| request(format!("{} of {label}: nothing was served", cell.category)))?;
    if cell.runs.iter().any(|run| run.target_rate().is_some()) {
        notes.push(format!(
            "{label}: an open loop's throughput is its target rate, not the server's \
             maximum."
        ));
    }
    let power = match flag.and_then(|flag| flag.watts) {
        Some(watts) => LoadPower::given(watts, COMMAND_LINE),
        None => {
            let what = format!("{} of {label}", cell.category);
            LoadPower::of_runs(&cell.runs, platform.as_ref(), &what).map_err(wrong)?
        }
    };
    notes.extend(power.boundary_note(&label));
    let from = format!("median of {} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" });
    let workload = cell.category.clone();
    let mut one = sourced(args, flag, platform, (label, workload), (throughput, from), power)?;
    one.notes.extend(notes);
    if args.utilisation == Utilisation::Measured {
        one.candidate.utilisation = cell.median(|run| run.value("machine.busy"));
        one.notes.push("U: how busy the machine's CPUs were (machine.busy).".to_owned());
    }
    one.work = runs.iter().map(|run| RunWork::of(run)).collect();
    Ok(one)
}
