//! A table as HTML, in a box that scrolls if the page is narrower.

use super::markup::Markup;
use crate::table::{Align, Cell, Table, Tone, number_parts};

/// About the width of a digit, bold or not, in any font: the column has one width for all rows.
const EMS_OF_DIGIT: f64 = 0.7;

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
    let widths: Vec<usize> = (0..table.columns.len()).map(|at| width_after(table, at)).collect();
    for row in &table.rows {
        out.raw(if row.invalid { "<tr class=\"invalid\">" } else { "<tr>" });
        for ((cell, column), width) in row.cells.iter().zip(&table.columns).zip(&widths) {
            let number = matches!(column.align, Align::Right | Align::Decimal);
            out.raw("<td class=\"").raw(if number { "num " } else { "" });
            out.text(cell.tone.name()).raw("\">");
            if column.align == Align::Decimal {
                decimal(out, cell, *width);
            } else {
                out.text(&cell.text);
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

/// A number with what follows its whole digits in a box as wide as in every row, so that the
/// points stand under each other.
fn decimal(out: &mut Markup, cell: &Cell, width: usize) {
    let (whole, after) = number_parts(&cell.text);
    out.text(whole);
    let is_word = !whole.ends_with(|c: char| c.is_ascii_digit());
    if width > 0 && !(is_word && cell.tone == Tone::Muted) {
        let ems = width as f64 * EMS_OF_DIGIT;
        out.raw("<span style=\"min-width:").text(format!("{ems:.1}")).raw("em\">").text(after);
        out.raw("</span>");
    }
}

/// The widest text after the whole numbers of a column, in widths of a digit.
fn width_after(table: &Table, at: usize) -> usize {
    let halves = |c: char| match c {
        '.' | ' ' => 1,
        c if c.is_ascii_digit() => 2,
        _ => 3,
    };
    let after = table.rows.iter().map(|row| number_parts(&row.cells[at].text).1);
    after.map(|text| text.chars().map(halves).sum::<usize>().div_ceil(2)).max().unwrap_or(0)
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
        assert!(html.contains(">1<span style=\"min-width:2.1em\">.25</span></td>"), "{html}");
        assert!(html.contains(">12<span style=\"min-width:2.1em\"></span></td>"), "{html}");
    }
}
