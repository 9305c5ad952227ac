//! Where the time of profiled runs went: sentences, then the pipeline's slots, histograms of what
//! was counted inside the kernel, and a flame graph of each process.

use model::{Run, RunProfile, StackSet, ThreadState};

use super::figures::grid;
use super::markup::Markup;
use super::sections::Runs;
use crate::charts;
use crate::tables::{profiled, where_time_goes};

const SCRIPT: &str = include_str!("flame.js");
/// Waits that are less of a process's time, added up over its threads, have no graph.
const LEAST_WAIT_S: f64 = 0.01;

pub(super) fn section(out: &mut Markup, runs: &Runs<'_>) {
    for (run, profile) in profiled(runs) {
        out.raw("<h3>").text(&run.label).raw("</h3>");
        words(out, run, profile);
        if let Some(figure) =
            profile.top_down.as_ref().and_then(|pass| charts::top_down(&run.label, pass))
        {
            grid(out, &[figure]);
        }
        if let Some(counts) = &profile.counts {
            grid(out, &charts::kernel_counts(&run.label, counts));
        }
        for set in profile.sets().iter().filter(|set| is_drawn(set)) {
            graph(out, run, set);
        }
    }
    out.raw("<script>").raw(SCRIPT).raw("</script>");
}

fn words(out: &mut Markup, run: &Run, profile: &RunProfile) {
    let (paragraphs, reservations) = where_time_goes(run, profile);
    for paragraph in paragraphs {
        out.raw("<p class=\"sentence\">").text(paragraph).raw("</p>");
    }
    for reservation in reservations {
        out.raw("<p class=\"note\">").text(reservation).raw("</p>");
    }
}

fn is_drawn(set: &StackSet<'_>) -> bool {
    match set.state {
        ThreadState::OnCpu => true,
        ThreadState::Blocked => set.seconds() >= LEAST_WAIT_S,
        ThreadState::Preempted => false,
    }
}

fn graph(out: &mut Markup, run: &Run, set: &StackSet<'_>) {
    let title = match set.state {
        ThreadState::OnCpu => format!("CPU time of {}", set.process),
        ThreadState::Blocked | ThreadState::Preempted => {
            format!("Where threads of {} wait", set.process)
        }
    };
    out.raw("<div class=\"flames\"><h4>").text(&title).raw("</h4>");
    out.raw(
        "<p class=\"find\"><label>Search <input type=\"search\" autocomplete=\"off\"></label> ",
    );
    out.raw("<output></output> <button type=\"button\" disabled>Whole graph</button></p>");
    let alt = format!("{title}, {}: functions by their share of the time", run.label);
    out.raw("<div class=\"graph\">").flames(set, &alt).raw("</div><p class=\"caption\">");
    out.text(format!(
        "{} stacks, {:.2} s over all threads. A function is as wide as its share, what it calls is \
         above it; those of the kernel have another colour. Click one to enlarge it.",
        set.samples(),
        set.seconds()
    ));
    out.raw("</p></div>");
}
