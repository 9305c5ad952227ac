//! Generates what `--check` compares with the trace.

use model::RateProfile;
use report::format;
use workload::Workload;
use workload::describe::TraceDescription;
use workload::fit::{Resemblance, WorkloadFile, describe_generated};
use workload::trace::TraceTiming;

use crate::exit::request;
use crate::output::Output;

/// Generates as many requests as the trace has, and compares.
pub fn check(
    description: &TraceDescription,
    timing: TraceTiming,
    file: &WorkloadFile,
    show: &Output,
) -> anyhow::Result<Resemblance> {
    let workload = Workload::new(&file.workload)?;
    let profile = file.rate_profile.as_deref().map(RateProfile::parse).transpose();
    let profile = profile.map_err(|error| request(error.to_string()))?;
    let bar = show.parts(1);
    bar.set_prefix("generating");
    let generated =
        describe_generated(&workload, description, timing, profile.as_ref(), |requests| {
            bar.set_message(format!("{} requests", format::count_short(requests as f64)));
        });
    bar.finish_and_clear();
    Ok(Resemblance::of(description, &generated))
}
