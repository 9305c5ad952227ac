//! Runs of which it is known where their time went, and what is said of it.

use analyse::why;
use model::{Execution, ProfiledSide, Run, RunProfile};

/// The profiled ones among runs.
pub fn profiled<'a>(
    runs: &'a [(&'a Execution, &'a Run)],
) -> impl Iterator<Item = (&'a Run, &'a RunProfile)> {
    runs.iter().filter_map(|(_, run)| Some((*run, run.profile.as_deref()?)))
}

/// What is said of a profiled run: a paragraph for each process and one for the machine, then what
/// to bear in mind.
pub fn where_time_goes(run: &Run, profile: &RunProfile) -> (Vec<String>, Vec<String>) {
    let answer = why::answer(run, profile);
    let side = |side| match side {
        ProfiledSide::Client => "client, with the stores that it embeds",
        ProfiledSide::Server => "server",
    };
    let paragraph = |process: &why::ProcessAnswer| {
        format!("{} ({}): {}", process.process, side(process.side), process.sentences.join(" "))
    };
    let mut paragraphs: Vec<String> = answer.processes.iter().map(paragraph).collect();
    if !answer.machine.is_empty() {
        paragraphs.push(format!("The whole machine: {}", answer.machine.join(" ")));
    }
    (paragraphs, answer.reservations)
}
