//! The parts of the page that are not figures.

use std::collections::BTreeSet;

use model::text::shell_word;
use model::{Execution, Run};

use super::markup::Markup;
use super::table::table;
use crate::overview::DETAILED;
use crate::run_names;
use crate::tables::{self, INVALID_MARK};

pub type Runs<'a> = [(&'a Execution, &'a Run)];

/// The most executions that are listed.
const MAX_EXECUTIONS: usize = 100;

pub fn headline(out: &mut Markup, executions: &[(Execution, Vec<Run>)], runs: &Runs) {
    let invalid = runs.iter().filter(|(_, run)| !run.valid()).count();
    let warned = runs.iter().filter(|(_, run)| !run.warnings.is_empty()).count();
    out.raw("<header><p class=\"brand\">kvmeter</p>");
    match executions {
        [(execution, own)] => one_execution(out, execution, own),
        _ => many_executions(out, executions),
    }
    out.raw("<dl class=\"tiles\">");
    tile(out, "runs", runs.len(), "");
    tile(out, "invalid", invalid, if invalid > 0 { "bad" } else { "good" });
    tile(out, "with warnings", warned, if warned > 0 { "warn" } else { "good" });
    let errors = model::total(runs.iter().map(|(_, run)| run.errors()));
    tile(
        out,
        "wrong answers",
        crate::format::count(errors),
        if errors > 0 { "bad" } else { "good" },
    );
    tile(out, "stores", versions(runs.iter().map(|(_, run)| *run)).join(", "), "words");
    out.raw("</dl>");
    if invalid > 0 {
        out.raw("<p class=\"banner\"><b>").text(invalid).raw(if invalid == 1 {
            " run is invalid"
        } else {
            " runs are invalid"
        });
        out.raw("</b>: in no median, marked ✗ and drawn hollow. ");
        out.raw("<a href=\"#validity\">Why</a></p>");
    }
    out.raw("</header>");
}

fn one_execution(out: &mut Markup, execution: &Execution, runs: &[Run]) {
    out.raw("<h1>");
    match &execution.question {
        Some(question) => out.text(question),
        None => out.text(&execution.study).raw(": ").text(versions(runs.iter()).join(", ")),
    };
    out.raw("</h1><p class=\"lede\">");
    if execution.question.is_some() {
        out.raw("Study <b>").text(&execution.study).raw("</b>, begun ");
    } else {
        out.raw("Begun ");
    }
    out.text(minute(&execution.started_at)).raw(" on ");
    out.text(execution.machine.fact("cpu.model").unwrap_or(&execution.machine.id));
    if execution.finished_at.is_none() {
        out.raw("; ");
        unfinished(out, execution, runs);
    }
    out.raw(".</p>");
}

/// One heading and a folded list of the executions.
fn many_executions(out: &mut Markup, executions: &[(Execution, Vec<Run>)]) {
    if executions.is_empty() {
        return;
    }
    let heading = executions.iter().find_map(|(execution, _)| execution.question.as_ref());
    out.raw("<h1>");
    match heading {
        Some(question) => out.text(question),
        None => {
            let all = executions.iter().flat_map(|(_, runs)| runs);
            out.text(studies(executions).join(", ")).raw(": ").text(versions(all).join(", "))
        }
    };
    out.raw("</h1>");
    let unfinished_ones = executions.iter().filter(|(e, _)| e.finished_at.is_none()).count();
    out.raw("<details class=\"executions\"><summary>").text(executions.len());
    out.raw(" executions of ").text(studies(executions).join(", "));
    if unfinished_ones > 0 {
        out.raw(", <b class=\"warn\">").text(unfinished_ones).raw(" not finished</b>");
    }
    out.raw("</summary><ol>");
    for (execution, runs) in executions.iter().take(MAX_EXECUTIONS) {
        out.raw("<li><b>").text(&execution.study).raw("</b>, begun ");
        out.text(minute(&execution.started_at)).raw(", ");
        match &execution.finished_at {
            Some(finished) => {
                out.raw("finished ").text(minute(finished));
            }
            None => unfinished(out, execution, runs),
        }
        if let Some(question) = execution.question.as_ref().filter(|own| Some(*own) != heading) {
            out.raw("<br>").text(question);
        }
        out.raw("<br><code>").text(command(execution)).raw("</code></li>");
    }
    out.raw("</ol>");
    more(out, executions.len());
    out.raw("</details>");
}

fn unfinished(out: &mut Markup, execution: &Execution, runs: &[Run]) {
    let made = runs.iter().filter(|run| !run.is_trial()).count();
    let planned = execution.plan.len().max(made);
    out.raw("<b class=\"warn\">not finished</b>: ").text(made).raw(" of ");
    out.text(planned).raw(" runs are here");
}

/// The names of the studies, each once.
pub fn studies(executions: &[(Execution, Vec<Run>)]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = executions.iter().map(|(execution, _)| execution.study.as_str());
    names.filter(|name| seen.insert(*name)).collect()
}

/// The versions of the stores that ran, each once.
fn versions<'r>(runs: impl Iterator<Item = &'r Run>) -> Vec<&'r str> {
    let versions: BTreeSet<&str> = runs.map(|run| run.store_version.as_str()).collect();
    versions.into_iter().collect()
}

fn tile(out: &mut Markup, name: &'static str, value: impl std::fmt::Display, tone: &'static str) {
    out.raw("<div><dt>").raw(name).raw("</dt><dd class=\"").raw(tone).raw("\">");
    out.text(value).raw("</dd></div>");
}

/// `2026-03-01T10:00:00Z` as `2026-03-01 10:00 UTC`.
fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(day), Some(time)) if rfc3339.ends_with('Z') => format!("{day} {time} UTC"),
        _ => rfc3339.to_owned(),
    }
}

pub fn validity(out: &mut Markup, runs: &Runs) {
    let notes = tables::notes(runs);
    if notes.is_empty() {
        out.raw("<p>Every run is valid and none has a warning.</p>");
        return;
    }
    out.raw("<ul class=\"notes\">");
    for note in &notes {
        out.raw("<li class=\"").text(note.tone().name()).raw("\"><b>").text(note.word());
        out.raw("</b> <span>").prose(&note.text).raw("</span><small>");
        out.text(note.names()).raw("</small></li>");
    }
    out.raw("</ul>");
}

/// Each machine once.
pub fn machines(out: &mut Markup, executions: &[(Execution, Vec<Run>)]) {
    let mut seen = BTreeSet::new();
    for (execution, _) in executions {
        if !seen.insert(&execution.machine.id) {
            continue;
        }
        out.raw("<p class=\"note\">Machine ").text(&execution.machine.id).raw("</p>");
        out.raw("<div class=\"facts\">");
        for group in tables::machine(&execution.machine) {
            out.raw("<section><h3>").text(&group.title).raw("</h3>");
            table(out, &group);
            out.raw("</section>");
        }
        out.raw("</div>");
    }
}

/// The positions of the runs that are shown in detail: all, or of many the first of each label.
pub fn detailed(runs: &Runs) -> BTreeSet<usize> {
    match runs.len() > DETAILED {
        true => record::examples(runs.iter().map(|(_, run)| run.label.as_str())),
        false => (0..runs.len()).collect(),
    }
}

/// Every reading of these runs, the unavailable ones with their reason.
pub fn readings(out: &mut Markup, runs: &Runs) {
    let detailed = detailed(runs);
    if detailed.len() < runs.len() {
        out.raw("<p class=\"note\">Of ").text(detailed.len()).raw(" of ").text(runs.len());
        out.raw(" runs, the first of each label; <code>kvmeter export --table readings</code> ");
        out.raw("has those of every run.</p>");
    }
    for (i, ((_, run), name)) in runs.iter().zip(run_names::names(runs)).enumerate() {
        if !detailed.contains(&i) {
            continue;
        }
        let missing = run.readings.iter().filter(|reading| reading.value().is_none()).count();
        out.raw("<details><summary>");
        if !run.valid() {
            out.raw("<span class=\"bad\">").raw(INVALID_MARK).raw("</span>");
        }
        out.text(name).raw(" <small>").text(run.readings.len()).raw(" readings");
        if missing > 0 {
            out.raw(", <span class=\"warn\">").text(missing).raw(" unavailable</span>");
        }
        out.raw("</small></summary>");
        table(out, &tables::readings(run));
        pairs(out, "Settings", &run.settings);
        let mut stream = run.stream.clone();
        // For programs: the settings say it in words.
        stream.remove(Run::WORKLOAD);
        pairs(out, "The stream of operations", &stream);
        out.raw("</details>");
    }
}

fn pairs(out: &mut Markup, title: &'static str, pairs: &model::RunSettings) {
    if pairs.is_empty() {
        return;
    }
    out.raw("<h4>").raw(title).raw("</h4><dl class=\"pairs\">");
    for (key, value) in pairs {
        out.raw("<div><dt>").text(key).raw("</dt><dd>").text(value).raw("</dd></div>");
    }
    out.raw("</dl>");
}

/// The invocations of kvmeter, so that they can be repeated.
pub fn provenance(out: &mut Markup, executions: &[(Execution, Vec<Run>)]) {
    let many = executions.len() > 1;
    for (execution, _) in executions.iter().take(MAX_EXECUTIONS) {
        if many {
            out.raw("<details><summary>").text(&execution.study).raw(", begun ");
            out.text(minute(&execution.started_at)).raw("</summary><dl class=\"pairs\">");
        } else {
            out.raw("<h3>").text(&execution.study).raw("</h3><dl class=\"pairs\">");
        }
        let finished = execution.finished_at.as_deref().unwrap_or("not finished");
        for (key, value) in [
            ("kvmeter", execution.version.as_str()),
            ("begun", execution.started_at.as_str()),
            ("finished", finished),
            ("execution", execution.id.as_str()),
        ] {
            out.raw("<div><dt>").text(key).raw("</dt><dd>").text(value).raw("</dd></div>");
        }
        out.raw("<div><dt>seed</dt><dd>").text(execution.seed).raw("</dd></div></dl>");
        out.raw("<h4>Command</h4><pre tabindex=\"0\">");
        out.text(command(execution)).raw("</pre>");
        if !execution.spec.is_empty() {
            out.raw("<details><summary>The study file as it was run</summary>");
            out.raw("<pre tabindex=\"0\">").text(&execution.spec).raw("</pre></details>");
        }
        if many {
            out.raw("</details>");
        }
    }
    more(out, executions.len());
}

/// Notes how many executions are not listed.
fn more(out: &mut Markup, executions: usize) {
    if executions > MAX_EXECUTIONS {
        out.raw("<p class=\"note\">The first ").text(MAX_EXECUTIONS).raw(" of ");
        out.text(executions).raw(" executions.</p>");
    }
}

/// The command line, quoted for a shell.
fn command(execution: &Execution) -> String {
    execution.command.iter().map(|part| shell_word(part)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_to_the_minute() {
        assert_eq!(minute("2026-03-01T10:00:00Z"), "2026-03-01 10:00 UTC");
        assert_eq!(minute("yesterday"), "yesterday");
    }
}
