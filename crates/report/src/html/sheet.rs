//! A page of figures and tables without runs: simulations, costs of machines.

use super::markup::Markup;
use super::{figures, foot, head, table};
use crate::charts::ShownFigure;
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

/// Figures with a title and an introduction, as one HTML document.
pub fn sheet(title: &str, intro: &[String], drawings: Vec<Drawing>) -> String {
    let shown = drawings.into_iter().map(|drawing| {
        let Drawing { id, title, chart, alt, captions, data } = drawing;
        ShownFigure { id, title, chart, alt, captions, data, small: false, cautions: Vec::new() }
    });
    plain_page(title, intro, &shown.collect::<Vec<_>>(), &[])
}

pub(crate) fn plain_page(
    title: &str,
    intro: &[String],
    figures: &[ShownFigure],
    tables: &[Table],
) -> String {
    let mut out = Markup::default();
    head(&mut out, title);
    out.raw("<body><main><h1>").text(title).raw("</h1>");
    for sentence in intro {
        out.raw("<p>").text(sentence).raw("</p>");
    }
    for shown in figures {
        figures::figure(&mut out, shown);
    }
    for own in tables {
        out.raw("<h2>").text(&own.title).raw("</h2>");
        table::table(&mut out, own);
    }
    foot(&mut out);
    out.into_string()
}
