//! One page in one file: it makes no network requests, and its figures are drawn before any script
//! runs. The script adds values under the pointer, keys, and saving.

mod figures;
mod markup;
mod sections;
mod sheet;
mod singles;
mod study;
mod table;

use std::collections::BTreeSet;

use model::{Execution, Run};

use crate::cells;
use crate::charts::{self, CellSeries, ShownFigure};
use crate::curves::{self, RateCurve};
use crate::overview::{DETAILED, DRAWN, MAX_FIGURES, is_many};
use crate::run_names;
use crate::study::{StudyReport, studies};
use crate::tables;
use markup::Markup;
pub(crate) use sheet::plain_page;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be fetched; the page is self-contained.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">";

/// Shown if runs make a curve.
const RATES: &str = "rates-section";
/// Shown if runs are too many for a row each.
const ALL_RUNS: &str = "runs";
/// Shown instead of a figure that would repeat the curves.
const SWEPT: &str = "Every run is a point of a curve: see \
    <a href=\"#rates-section\">latency against rate</a>.";
/// The method of a study's answers, and its limits.
const METHOD_OF_STUDIES: &str = "<div><dt>Effects</dt><dd>Cells that differ in one factor alone are compared, and the \
     differences averaged over the combinations of the others: contrasts of 20 % trimmed means \
     of logarithms (plain means below 5 repeats), Welch's t without pooling the cells' \
     variances. So neither one disturbed repeat nor a setting that varies more than another \
     decides.</dd></div>\
     <div><dt>Verdicts</dt><dd>A difference is called where p is below 0.05 after Holm's \
     correction for all comparisons of the study. “Not shown” is not “equal”: the interval says \
     how large a difference could hide.</dd></div>\
     <div><dt>Outliers</dt><dd>Repeats with a modified z-score above 3.5 are pointed at and \
     left in.</dd></div>\
     <div><dt>Limits</dt><dd>An effect is of these levels, on this machine, with these \
     versions. Averages over combinations weigh each the same, however often it occurs in \
     practice.</dd></div>";
/// A section of the page: its anchor and its title.
type Section = (&'static str, &'static str);

const SECTIONS: [Section; 12] = [
    ("glance", "At a glance"),
    ("throughput-section", "Throughput"),
    (RATES, "Latency against rate"),
    ("latency-section", "Latency"),
    ("percentiles", "Percentiles"),
    ("series", "Over time"),
    ("cost", "Cost"),
    ("validity", "Validity"),
    (ALL_RUNS, "Every run"),
    ("method", "Method"),
    ("machine", "Machine"),
    ("provenance", "Readings and provenance"),
];

/// The report of these executions and their runs as one HTML document.
pub fn page(executions: &[(Execution, Vec<Run>)]) -> String {
    let runs: Vec<(&Execution, &Run)> = executions
        .iter()
        .flat_map(|(execution, runs)| runs.iter().map(move |run| (execution, run)))
        .collect();
    let mut out = Markup::default();
    head(&mut out, &sections::studies(executions).join(", "));
    out.raw("<body><a class=\"skip\" href=\"#glance\">To the answer</a>");
    let runs = curves::curves_together(&runs);
    let curves = curves::curves(&runs);
    let studies = studies(executions.iter().map(|(execution, _)| execution), &runs);
    let sections = sections(&runs, &studies, &curves);
    contents(&mut out, &sections);
    out.raw("<main>");
    sections::headline(&mut out, executions, &runs);
    body(&mut out, executions, &runs, (&studies, &curves), &sections);
    foot(&mut out);
    out.into_string()
}

fn head(out: &mut Markup, title: &str) {
    out.raw("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">").raw(POLICY);
    out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    out.raw(
        "<meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">",
    );
    out.raw("<title>");
    out.text(title).raw(" – kvmeter</title><style>").raw(STYLE).raw("</style></head>");
}

fn foot(out: &mut Markup) {
    out.raw("</main><div id=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div><script>");
    out.raw(SCRIPT).raw("</script></body></html>\n");
}

/// Sections about measured runs, which a page of simulations lacks.
const MEASURED_SECTIONS: [&str; 6] =
    ["throughput-section", "latency-section", "percentiles", "series", "cost", "method"];

fn sections(runs: &sections::Runs, studies: &[StudyReport], curves: &[RateCurve]) -> Vec<Section> {
    let only_simulated = !runs.is_empty() && tables::measured_runs(runs).is_empty();
    let of_study = study::SECTIONS.into_iter().filter(|(id, _)| study::has_content(id, studies));
    let none = curves.is_empty();
    let of_runs = SECTIONS
        .into_iter()
        .filter(|(id, _)| *id != RATES || !none)
        .filter(|(id, _)| *id != ALL_RUNS || runs.len() > DETAILED)
        .filter(|(id, _)| !only_simulated || !MEASURED_SECTIONS.contains(id));
    of_study.chain(of_runs).collect()
}

fn contents(out: &mut Markup, sections: &[Section]) {
    out.raw("<nav aria-label=\"Contents\"><ol>");
    for (id, title) in sections {
        out.raw("<li><a href=\"#").raw(id).raw("\">").raw(title).raw("</a></li>");
    }
    out.raw("</ol></nav>");
}

fn body(
    out: &mut Markup,
    executions: &[(Execution, Vec<Run>)],
    all: &sections::Runs,
    (studies, curves): (&[StudyReport], &[RateCurve]),
    sections: &[Section],
) {
    let runs = &tables::measured_runs(all);
    let is_many = is_many(runs);
    let cells = cells::cells(runs);
    let series = CellSeries::of(&cells);
    let cells: Vec<&cells::ReportCell> = cells.iter().collect();
    // At a target rate throughput is that rate, and latency is a point of its curve.
    let swept = curves::run_ids(runs);
    let alone: Vec<&cells::ReportCell> = cells
        .iter()
        .copied()
        .filter(|cell| !cell.runs.iter().any(|run| swept.contains(run.id.as_str())))
        .collect();
    let all_swept = alone.is_empty() && !swept.is_empty();
    let drawn = &cells[..cells.len().min(DRAWN)];
    let alone = &alone[..alone.len().min(DRAWN)];
    let left_out = cells.len() - drawn.len();
    for (id, title) in sections {
        out.raw("<section id=\"").raw(id).raw("\"><h2>").raw(title).raw("</h2>");
        match *id {
            "glance" => {
                if !runs.is_empty() {
                    table::table(out, &tables::answer(runs));
                }
                for own in tables::mbwu(runs).iter().chain(&tables::simulations(all)) {
                    out.raw("<h3>").text(&own.title).raw("</h3>");
                    table::table(out, own);
                }
            }
            "throughput-section" => {
                if all_swept {
                    out.raw("<p class=\"note\">").raw(SWEPT).raw("</p>");
                } else {
                    figure(out, charts::throughput(alone, &series), "No runs are finished yet.");
                    not_drawn(out, left_out);
                }
                table::table(
                    out,
                    &if is_many { tables::cells(runs) } else { tables::throughput(runs) },
                );
            }
            RATES => {
                let tables = tables::rates(runs);
                for (shown, own) in charts::rates(curves).iter().zip(&tables) {
                    figures::figure(out, shown);
                    table::table(out, own);
                }
            }
            "latency-section" => {
                if all_swept {
                    out.raw("<p class=\"note\">").raw(SWEPT).raw("</p>");
                } else {
                    figure(out, charts::latency(alone, &series), "No latencies were recorded.");
                    not_drawn(out, left_out);
                }
                if !is_many {
                    table::table(out, &tables::latency(runs, &BTreeSet::new()));
                }
                let sides = || tables::sides(runs, &BTreeSet::new());
                if let Some(sides) = (!is_many).then(sides).flatten() {
                    out.raw("<details open><summary>").text(&sides.title).raw("</summary>");
                    table::table(out, &sides);
                    out.raw("</details>");
                }
            }
            "percentiles" => {
                out.raw("<p>The whole distribution, logarithmic to both sides: each step to the ");
                out.raw("right is ten times rarer. The last point is the slowest answer.</p>");
                let mut shown = charts::percentiles(drawn, &series);
                let more = left_out + shown.len().saturating_sub(MAX_FIGURES);
                shown.truncate(MAX_FIGURES);
                grid(out, shown, "No latencies were recorded.");
                not_drawn(out, more);
            }
            "series" => {
                let names = run_names::names(runs);
                let detailed = sections::detailed(runs);
                let shown = runs.iter().zip(&names).enumerate();
                let shown = shown.filter(|(i, _)| detailed.contains(i));
                let shown = shown.filter_map(|(i, ((_, run), name))| charts::series(run, name, i));
                grid(out, shown.collect(), "No run has a time series.");
            }
            "cost" => {
                figure(out, charts::cpu(drawn, &series), "CPU time is unavailable in every run.");
                let amplification = charts::amplification(drawn, &series);
                figure(out, amplification, "I/O amplification is unavailable in every run.");
                if let Some(energy) = charts::energy(drawn, &series) {
                    figures::figure(out, &energy);
                }
                not_drawn(out, left_out);
                let of_runs = || [tables::machine_side(runs), tables::simulated(runs)];
                let of_runs = if is_many { [None, None] } else { of_runs() };
                for own in of_runs.iter().flatten() {
                    out.raw("<h3>").text(&own.title).raw("</h3>");
                    table::table(out, own);
                }
                out.raw(
                    "<p class=\"note\">The readings of each run say why a number is missing.</p>",
                );
            }
            "validity" => {
                sections::validity(out, all);
                if let Some(checks) = tables::side_checks(runs) {
                    out.raw("<h3>").text(&checks.title).raw("</h3>");
                    table::table(out, &checks);
                }
            }
            ALL_RUNS => singles::section(out, all),
            "method" => method(out, runs, studies),
            "machine" => sections::machines(out, executions),
            "provenance" => {
                sections::readings(out, all);
                sections::provenance(out, executions);
            }
            of_study => study::section(out, of_study, studies),
        }
        out.raw("</section>");
    }
}

/// Notes how many configurations are not drawn.
fn not_drawn(out: &mut Markup, cells: usize) {
    if cells > 0 {
        out.raw("<p class=\"note\">").text(cells).raw(" more configurations are not drawn: ");
        out.raw("their numbers are in the tables.</p>");
    }
}

fn figure(out: &mut Markup, shown: Option<ShownFigure>, without: &'static str) {
    match shown {
        Some(shown) => figures::figure(out, &shown),
        None => {
            out.raw("<p class=\"note\">").raw(without).raw("</p>");
        }
    }
}

fn grid(out: &mut Markup, shown: Vec<ShownFigure>, without: &'static str) {
    if shown.is_empty() {
        out.raw("<p class=\"note\">").raw(without).raw("</p>");
    } else {
        figures::grid(out, &shown);
    }
}

fn method(out: &mut Markup, runs: &sections::Runs, studies: &[StudyReport]) {
    table::table(out, &tables::method(runs));
    let of_studies = if studies.is_empty() { "" } else { METHOD_OF_STUDIES };
    out.raw(
        "<dl class=\"terms\"><div><dt>Percentiles</dt><dd>From histograms that keep three \
         significant digits of every latency; repeats are added up, never averaged.</dd></div>\
         <div><dt>Harness a op</dt><dd>The same workload against a store that answers at once, \
         in the same process. It is part of the throughput, and of CPU time.</dd></div>\
         <div><dt>Harness busy</dt><dd>Share of the window in which the harness was neither \
         waiting for the store nor idle until the next request was due.</dd></div>\
         <div><dt>Answers checked</dt><dd>Answers compared with what must have been written; a \
         wrong one marks the run.</dd></div>\
         <div><dt>Unavailable</dt><dd>Could not be measured here, for the reason given; never \
         zero.</dd></div>",
    );
    out.raw(of_studies).raw("</dl>");
}
