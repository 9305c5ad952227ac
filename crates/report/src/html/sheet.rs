//! A page of figures and tables without runs: simulations, costs of machines.

use super::markup::Markup;
use super::{figures, foot, head, table};
use crate::charts::ShownFigure;
use crate::table::Table;

/// Figures and tables with a title and an introduction, as one HTML document.
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
