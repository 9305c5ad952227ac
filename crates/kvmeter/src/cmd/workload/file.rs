//! The workload file of a trace.

use std::path::Path;

use report::format;
use study::{is_workload_file, is_ycsb_file, workload_text};
use workload::describe::TraceDescription;
use workload::fit::{FittedWorkload, fit};
use workload::trace::TraceTiming;

use crate::exit::request;
use crate::output::Output;
use crate::output_files;

/// A miss ratio that differs by more is a warning.
const NEAR: f64 = 0.02;

/// Begins the first line of every file.
const MADE_BY: &str = "Made by `kvmeter workload describe`";

/// Refuses a path that `--workload` does not take, and one of a file that was not made here.
pub fn check_path(path: &Path, trace: &Path) -> anyhow::Result<()> {
    let no = |why: &str| Err(request(format!("--out {}: {why}", path.display())));
    if !path.to_str().is_some_and(|name| is_workload_file(name) && !is_ycsb_file(name)) {
        return no("--workload takes a file by its ending; name one that ends in .toml");
    }
    output_files::check_output("--out", path, &[trace])?;
    match std::fs::read(path) {
        Ok(text) if !text.is_empty() && !text.starts_with(format!("# {MADE_BY}").as_bytes()) => {
            no("exists, and is no file that this command wrote; name another one, or remove it")
        }
        _ => Ok(()),
    }
}

/// Fits a workload to the trace, with progress.
pub fn fitted(
    description: &TraceDescription,
    timing: TraceTiming,
    show: &Output,
) -> FittedWorkload {
    let bar = show.parts(1);
    bar.set_prefix("fitting a workload");
    let fitted = fit(description, timing, |progress| {
        bar.set_message(format!("{} of {} tried", progress.done, progress.of));
    });
    bar.finish_and_clear();
    fitted
}

/// Writes the file that `--out` names.
pub fn write(
    path: &Path,
    trace: &str,
    description: &TraceDescription,
    fitted: &FittedWorkload,
    show: &Output,
) -> anyhow::Result<()> {
    let requests = format::count_short(description.requests as f64);
    let mut comments = vec![
        format!("{MADE_BY} of {requests} requests of {trace}."),
        format!("Use it as --workload {}; docs/workloads.md explains its keys.", path.display()),
    ];
    if let Some(difference) = fitted.miss_ratio_difference {
        let points = format!("{:.1} points", difference * 100.0);
        comments.push(format!("Its LRU miss ratio differs by at most {points} from the trace's."));
        if difference > NEAR {
            show.warn(&format!(
                "the workload's miss ratio differs from the trace's by up to {points}: its keys come \
                 back in a way that the model does not have, such as loops or a popularity that \
                 changes"
            ));
        }
    }
    let text = workload_text(&fitted.file, &comments)?;
    output_files::write_named("--out", path, text.as_bytes())?;
    show.note(&format!("stored in {}", path.display()));
    Ok(())
}
