//! The average of what a machine serves.

use analyse::cost::SourcedCandidate;

use super::{CostArgs, required, wrong};

/// The mean of each machine's candidates. `machines` are their names, in the same order.
pub(super) fn averages(
    args: &CostArgs,
    machines: &[String],
    candidates: &[SourcedCandidate],
) -> anyhow::Result<Vec<SourcedCandidate>> {
    let mut averages = Vec::new();
    for (at, machine) in machines.iter().enumerate() {
        if machines[..at].contains(machine) {
            continue;
        }
        let own = machines.iter().zip(candidates).filter(|(of, _)| *of == machine);
        let own: Vec<&SourcedCandidate> = own.map(|(_, one)| one).collect();
        let average = SourcedCandidate::average(machine.clone(), &own, required(args));
        averages.extend(average.map_err(wrong)?);
    }
    Ok(averages)
}
