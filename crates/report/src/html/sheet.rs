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
    let figures = figures.iter().map(SheetPart::Figure);
    let parts: Vec<SheetPart<'_>> = figures.chain(tables.iter().map(SheetPart::Table)).collect();
    sheet(title, intro, &parts)
}

/// A figure or a table.
pub(crate) enum SheetPart<'a> {
    Figure(&'a ShownFigure),
    Table(&'a Table),
}

/// The same, with figures and tables in any order.
pub(crate) fn sheet(title: &str, intro: &[String], parts: &[SheetPart<'_>]) -> String {
    let mut out = Markup::default();
    head(&mut out, title);
    out.raw("<body><main><h1>").text(title).raw("</h1>");
    for sentence in intro {
        out.raw("<p>").text(sentence).raw("</p>");
    }
    for part in parts {
        match part {
            SheetPart::Figure(shown) => figures::figure(&mut out, shown),
            SheetPart::Table(own) => {
                out.raw("<h2>").text(&own.title).raw("</h2>");
                table::table(&mut out, own);
            }
        }
    }
    foot(&mut out);
    out.into_string()
}
