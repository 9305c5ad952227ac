//! The result of a preconditioning.

use std::path::Path;

use micro::precondition::{JobEnd, JobReport};
use serde_json::json;

use super::PreconditionArgs;
use crate::output::Output;

pub fn print_report(
    args: &PreconditionArgs,
    report: &JobReport,
    state: &Path,
    show: &Output,
) -> anyhow::Result<()> {
    let ended = match report.ended {
        JobEnd::Done => "done",
        JobEnd::NotSteady => "not_steady",
        JobEnd::TimeLimit => "time_limit",
        JobEnd::Stopped => "stopped",
    };
    if args.json {
        let object = json!({
            "path": args.path,
            "ended": ended,
            "purge": report.purged,
            "range_bytes": report.range_bytes,
            "written_bytes": report.written_bytes,
            "total_bytes": report.total_bytes,
            "seconds": report.seconds,
            "steady": report.random.as_ref().map(|random| random.steady),
            "random_rounds_iops": report.random.as_ref().map(|random| &random.rounds),
        });
        return show.json(&object);
    }
    show.print(&format!(
        "{}: {}; {} of {} B written within the first {} B, in {:.1} s",
        args.path.display(),
        report.purged,
        report.written_bytes,
        report.total_bytes,
        report.range_bytes,
        report.seconds
    ))?;
    if let Some(random) = &report.random {
        let last = random.rounds.last().copied().unwrap_or(0.0);
        show.print(&format!(
            "random writes: {} after {} rounds, {last:.0} a second in the last",
            if random.steady { "steady" } else { "not steady" },
            random.rounds.len(),
        ))?;
    }
    if matches!(report.ended, JobEnd::TimeLimit | JobEnd::Stopped) {
        show.note(&format!(
            "Ended early; the progress is in {}. Continue with the same command and --resume",
            state.display()
        ));
    }
    Ok(())
}
