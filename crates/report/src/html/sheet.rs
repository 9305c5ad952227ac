//! A page of figures that belong to no results file: what was simulated.

use super::markup::Markup;
use super::{POLICY, SCRIPT, STYLE, figures};
use crate::charts::Shown;
use crate::figure::Chart;
use crate::table::Table;

/// One figure of a sheet.
pub struct Drawing {
    /// Its anchor.
    pub id: String,
    pub title: String,
    pub chart: Chart,
    /// What is seen, in words.
    pub alt: String,
    pub captions: Vec<String>,
    /// The values as a table.
    pub data: Table,
}

/// Figures under a title and sentences about them, as one HTML document.
pub fn sheet(title: &str, intro: &[String], drawings: Vec<Drawing>) -> String {
    let mut out = Markup::default();
    out.raw("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">").raw(POLICY);
    out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    out.raw("<meta name=\"color-scheme\" content=\"light dark\"><title>");
    out.text(title)
        .raw(" – kvmeter</title><style>")
        .raw(STYLE)
        .raw("</style></head><body><main><h1>");
    out.text(title).raw("</h1>");
    for sentence in intro {
        out.raw("<p>").text(sentence).raw("</p>");
    }
    for drawing in drawings {
        let Drawing { id, title, chart, alt, captions, data } = drawing;
        let shown =
            Shown { id, title, chart, alt, captions, data, small: false, cautions: Vec::new() };
        figures::figure(&mut out, &shown);
    }
    out.raw("</main><div id=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div><script>");
    out.raw(SCRIPT).raw("</script></body></html>\n");
    out.into_string()
}
