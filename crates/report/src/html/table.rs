//! A table as HTML, in a box that scrolls if the page is narrower.

use super::markup::Markup;
use crate::table::{Align, Table, Tone};

/// Blanks as wide as a digit and as a point: they put decimal points under each other.
const DIGIT: char = '\u{2007}';
const POINT: char = '\u{2008}';

pub fn table(out: &mut Markup, table: &Table) {
    if table.rows.is_empty() {
        out.raw("<p class=\"note\">Nothing to show.</p>");
        return;
    }
    // Focusable, so that it can be scrolled without a mouse.
    out.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    out.text(if table.title.is_empty() { "table" } else { &table.title });
    out.raw("\"><table><thead><tr>");
    for column in &table.columns {
        out.raw(match column.align {
            Align::Left | Align::Wrap => "<th scope=\"col\">",
            Align::Right | Align::Decimal => "<th scope=\"col\" class=\"num\">",
        });
        out.text(&column.head).raw("</th>");
    }
    out.raw("</tr></thead><tbody>");
    let decimals: Vec<_> = (0..table.columns.len()).map(|at| table.decimals(at)).collect();
    for (i, row) in table.rows.iter().enumerate() {
        out.raw(if row.invalid { "<tr class=\"invalid\">" } else { "<tr>" });
        for ((cell, column), (places, most)) in row.cells.iter().zip(&table.columns).zip(&decimals)
        {
            let number = matches!(column.align, Align::Right | Align::Decimal);
            out.raw("<td class=\"").raw(if number { "num " } else { "" });
            out.text(cell.tone.name()).raw("\">").text(&cell.text);
            if column.align == Align::Decimal && cell.tone != Tone::Muted {
                out.text(padding(places[i], *most));
            }
            out.raw("</td>");
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
    for note in &table.notes {
        out.raw("<p class=\"note\">").text(note).raw("</p>");
    }
}

fn padding(places: usize, most: usize) -> String {
    let mut out = String::new();
    if places == 0 && most > 0 {
        out.push(POINT);
    }
    let digits = most.saturating_sub(1) - places.saturating_sub(1);
    out.extend(std::iter::repeat_n(DIGIT, digits));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ALWAYS;

    #[test]
    fn points_line_up_and_text_is_escaped() {
        let mut source = Table::new("<t>").column("a&b", Align::Decimal, ALWAYS);
        source.row(vec!["1.25".into()]);
        source.row(vec!["12".into()]);
        let mut out = Markup::default();
        table(&mut out, &source);
        let html = out.into_string();
        assert!(html.contains("a&amp;b") && html.contains("&lt;t&gt;"), "{html}");
        assert!(html.contains(">12\u{2008}\u{2007}\u{2007}</td>"), "{html}");
    }
}
