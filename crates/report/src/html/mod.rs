//! One page in one file: it makes no network requests, and its figures are drawn before any script
//! runs. The script adds values under the pointer, keys, and saving.

mod body;
mod figures;
mod markup;
mod sections;
mod sheet;
mod singles;
mod study;
mod table;
mod why;

use model::{Execution, Run};

use crate::cells;
use crate::curves::{self, RateCurve};
use crate::overview::DETAILED;
use crate::study::{StudyReport, studies};
use crate::tables;
use body::Body;
use markup::Markup;
pub(crate) use sheet::{SheetPart, plain_page, sheet};

/// The style of every page of kvmeter, light and dark.
pub const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be fetched; the page is self-contained.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:\">";

/// Shown if runs make a curve.
const RATES: &str = "rates-section";
/// Shown if runs are too many for a row each.
const ALL_RUNS: &str = "runs";
/// Shown if a run was profiled.
const WHY: &str = "why";
/// A section of the page: its anchor and its title.
type Section = (&'static str, &'static str);

const SECTIONS: [Section; 13] = [
    ("glance", "At a glance"),
    ("throughput-section", "Throughput"),
    (RATES, "Latency against rate"),
    ("latency-section", "Latency"),
    ("percentiles", "Percentiles"),
    ("series", "Over time"),
    (WHY, "Where the time goes"),
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
    out.raw("<body class=\"with-contents\"><a class=\"skip\" href=\"#glance\">To the answer</a>");
    let runs = curves::curves_together(&runs);
    let curves = curves::curves(&runs);
    let studies = studies(executions.iter().map(|(execution, _)| execution), &runs);
    let sections = sections(&runs, &studies, &curves);
    contents(&mut out, &sections);
    out.raw("<main>");
    sections::headline(&mut out, executions, &runs);
    let measured = tables::measured_runs(&runs);
    let cells = cells::cells(&measured);
    let body = Body::new(executions, &runs, &measured, &cells, &studies, &curves);
    body.write(&mut out, &sections);
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
        .filter(|(id, _)| *id != WHY || tables::profiled(runs).next().is_some())
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
