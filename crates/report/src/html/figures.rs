//! A figure on the page: drawn for a wide and for a narrow window, with its captions and
//! its values as a table.

use super::markup::Markup;
use super::table::table;
use crate::charts::ShownFigure;
use crate::figure::{NARROW, WIDE};

pub fn figure(out: &mut Markup, shown: &ShownFigure) {
    drawn(out, shown, shown.small);
}

/// `small`: for one of several columns, at any width of the window.
fn drawn(out: &mut Markup, shown: &ShownFigure, small: bool) {
    out.raw("<figure class=\"").raw(if small { "small" } else { "large" });
    out.raw("\" id=\"").text(&shown.id).raw("\"><figcaption><h3>").text(&shown.title);
    out.raw("</h3></figcaption>");
    if small {
        out.raw("<div class=\"drawing\">").drawing(&shown.chart, NARROW, &shown.alt).raw("</div>");
    } else {
        out.raw("<div class=\"drawing wide\">").drawing(&shown.chart, WIDE, &shown.alt);
        out.raw("</div><div class=\"drawing narrow\">").drawing(&shown.chart, NARROW, &shown.alt);
        out.raw("</div>");
    }
    for caution in &shown.cautions {
        out.raw(if caution.invalid {
            "<p class=\"caution bad\">✗ "
        } else {
            "<p class=\"caution warn\">! "
        });
        out.prose(&caution.text).raw("</p>");
    }
    for caption in &shown.captions {
        out.raw("<p class=\"caption\">").text(caption).raw("</p>");
    }
    out.raw("<details><summary>Values as a table</summary>");
    table(out, &shown.data);
    out.raw("</details></figure>");
}

/// Several beside each other where there is room; a single one has all of it.
pub fn grid(out: &mut Markup, figures: &[ShownFigure]) {
    if let [only] = figures {
        drawn(out, only, false);
        return;
    }
    out.raw("<div class=\"grid\">");
    for shown in figures {
        figure(out, shown);
    }
    out.raw("</div>");
}
