//! `--dry-run` of a study with `[mbwu]`.

use execute::MbwuEvaluation;
use serde_json::json;
use study::StudyText;

use crate::cmd::run::args::RunArgs;
use crate::cmd::run::devices::NamedDevices;
use crate::exit::ExitOutcome;
use crate::output::Output;

/// Prints what would be done to each device, and the sequence of rounds.
pub(super) fn describe(
    devices: &NamedDevices,
    source: &StudyText,
    args: &RunArgs,
    show: &Output,
) -> anyhow::Result<ExitOutcome> {
    let spec = source.spec()?;
    let sequence: Vec<&str> = spec.sequence.iter().map(|step| step.get_ref().as_str()).collect();
    if args.json {
        let all = json!({ "devices": devices.describe(), "sequence": sequence });
        show.json(&all)?;
        return Ok(ExitOutcome::Done);
    }
    for line in devices.describe() {
        show.print(&line)?;
    }
    // Errors of the study are reported before devices are prepared.
    if let Some(folders) = devices.folders() {
        let mbwu =
            MbwuEvaluation::of(source, &folders, devices.preconditioned(), &args.host.root()?)?;
        let request = &mbwu.request;
        let loads: Vec<String> = request.loads.iter().map(ToString::to_string).collect();
        show.print(&format!(
            "then {} under loads of {} until it gains no more, up to {} rounds until it is \
             steady, and the same with 2 to {} devices",
            sequence.join(", "),
            loads.join(", "),
            request.most_rounds,
            request.devices
        ))?;
    }
    Ok(ExitOutcome::Done)
}
