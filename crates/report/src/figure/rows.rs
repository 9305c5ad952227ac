//! Horizontal rows in groups: bars from zero, or points on a line. Names stay readable
//! however many rows there are, and on a narrow page they stand above their row.

use super::legend::{self, Entry};
use super::marker::Shape;
use super::scale::Axis;
use super::svg::{Anchor, LINE_OF_LABEL, SMALL, Svg, fitted, lines, rectangle, text_width};
use super::ticks;

/// A part of a bar, from `from` to `to` in values.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub from: f64,
    pub to: f64,
    pub color: usize,
    pub tip: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    pub at: f64,
    pub color: usize,
    pub shape: Shape,
    pub tip: String,
    /// The run is invalid.
    pub hollow: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    pub label: String,
    pub bars: Vec<Bar>,
    pub dots: Vec<Dot>,
    /// The ends of a thin line through the points.
    pub span: Option<(f64, f64)>,
    /// After the end of the row: the value in words.
    pub note: String,
    pub invalid: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    /// Empty: the rows' own labels suffice.
    pub label: String,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RowChart {
    pub groups: Vec<Group>,
    pub axis: Axis,
    pub legend: Vec<Entry>,
}

/// From this width on, names stand left of the rows.
const ROOMY: f64 = 600.0;
const BAR: f64 = 14.0;
const RIGHT: f64 = 16.0;

struct RowPosition {
    x: f64,
    width: f64,
    roomy: bool,
}

impl RowChart {
    pub fn draw(&self, width: f64, alt: &str) -> String {
        let mut svg = Svg::new();
        let top = legend::draw(&mut svg, &self.legend, width, 2.0) + 4.0;
        let place = self.place(width);
        let bottom =
            top + self.groups.iter().map(|g| self.height(g, &place, width)).sum::<f64>() + 4.0;
        self.axis(&mut svg, &place, (top, bottom), width);
        let mut y = top;
        for group in &self.groups {
            if !group.label.is_empty() {
                svg.text("group", Anchor::Start, 0.0, y + 15.0, &fitted(&group.label, 13.0, width));
                y += 22.0;
            }
            for row in &group.rows {
                self.row(&mut svg, row, &place, y, width);
                y += Self::row_height(row, &place, width);
            }
            y += self.after(group);
        }
        let label_y = bottom + 34.0;
        svg.text(
            "axis-label",
            Anchor::Middle,
            place.x + place.width / 2.0,
            label_y,
            &self.axis.label,
        );
        svg.finish(width, bottom + 42.0, alt)
    }

    fn place(&self, width: f64) -> RowPosition {
        let roomy = width >= ROOMY;
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        let note = rows().map(|row| text_width(&row.note, SMALL) + 10.0).fold(RIGHT, f64::max);
        let x = if roomy {
            let longest = rows().map(|row| text_width(&row.label, SMALL)).fold(0.0, f64::max);
            (longest + 22.0).clamp(70.0, width * 0.34)
        } else {
            6.0
        };
        RowPosition { x, width: width - x - note, roomy }
    }

    fn height(&self, group: &Group, place: &RowPosition, width: f64) -> f64 {
        let head = if group.label.is_empty() { 0.0 } else { 22.0 };
        let rows = group.rows.iter().map(|row| Self::row_height(row, place, width));
        head + rows.sum::<f64>() + self.after(group)
    }

    fn after(&self, group: &Group) -> f64 {
        if group.label.is_empty() { 2.0 } else { 10.0 }
    }

    /// A name has as many lines as it needs.
    fn name(row: &Row, place: &RowPosition, width: f64) -> Vec<String> {
        lines(&row.label, SMALL, if place.roomy { place.x - 18.0 } else { width - place.x })
    }

    fn row_height(row: &Row, place: &RowPosition, width: f64) -> f64 {
        let more = (Self::name(row, place, width).len() - 1) as f64 * LINE_OF_LABEL;
        more + if place.roomy { 24.0 } else { 39.0 }
    }

    fn axis(&self, svg: &mut Svg, place: &RowPosition, (top, bottom): (f64, f64), width: f64) {
        let at = |value: f64| place.x + self.axis.scale.at(value) * place.width;
        for (value, _) in &self.axis.ticks {
            svg.line("grid", (at(*value), top), (at(*value), bottom));
        }
        let texts = self.axis.ticks.iter().map(|(value, text)| (at(*value), text.as_str()));
        ticks::below(svg, texts, bottom + 16.0, width);
        svg.line("axis", (place.x, bottom), (place.x + place.width, bottom));
    }

    fn row(&self, svg: &mut Svg, row: &Row, place: &RowPosition, top: f64, width: f64) {
        let at = |value: f64| place.x + self.axis.scale.at(value) * place.width;
        let name = Self::name(row, place, width);
        let more = (name.len() - 1) as f64 * LINE_OF_LABEL;
        let middle = if place.roomy { top + 12.0 + more / 2.0 } else { top + 27.0 + more };
        let class = if row.invalid { "label bad" } else { "label" };
        let (x, first) = if place.roomy { (8.0, top + 16.0) } else { (place.x, top + 14.0) };
        for (i, line) in name.iter().enumerate() {
            svg.text(class, Anchor::Start, x, first + i as f64 * LINE_OF_LABEL, line);
        }
        let mut end = place.x;
        if let Some((from, to)) = row.span {
            svg.line("span", (at(from), middle), (at(to), middle));
            end = end.max(at(to));
        }
        for bar in &row.bars {
            let (from, to) = (at(bar.from), at(bar.to));
            let fill = if row.invalid { "hollow" } else { "bar" };
            // A value is visible, however small.
            let d = rectangle(from, middle - BAR / 2.0, (to - from).max(1.0), BAR);
            svg.mark(&format!("{fill} {}", legend::color(bar.color)), &d, &bar.tip);
            end = end.max(to);
        }
        for dot in &row.dots {
            let fill = if dot.hollow { "dot hollow" } else { "dot" };
            let class = format!("{fill} {}", legend::color(dot.color));
            let radius = if row.bars.is_empty() { 5.0 } else { 3.5 };
            svg.mark(&class, &dot.shape.path(at(dot.at), middle, radius), &dot.tip);
            end = end.max(at(dot.at) + radius);
        }
        let class = if row.invalid { "value bad" } else { "value" };
        svg.text(class, Anchor::Start, end + 7.0, middle + 4.0, &row.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::scale::Scale;
    use crate::format;

    fn chart(groups: Vec<Group>) -> RowChart {
        let axis = Axis::new(Scale::from_zero([10.0]), 5, "things", format::plain);
        RowChart { groups, axis, legend: Vec::new() }
    }

    #[test]
    fn each_value_is_a_mark() {
        let bar = |from, to| Bar { from, to, color: 0, tip: format!("{from} to {to}") };
        let row =
            Row { label: "a".into(), bars: vec![bar(0.0, 4.0), bar(4.0, 6.0)], ..Row::default() };
        let text = chart(vec![Group { label: "g".into(), rows: vec![row] }]).draw(880.0, "alt");
        assert_eq!(text.matches("class=\"m bar c0\"").count(), 2);
        assert!(text.contains("<title>4 to 6</title>"), "{text}");
    }

    #[test]
    fn an_invalid_row_is_hollow_and_labelled() {
        let bars = vec![Bar { from: 0.0, to: 4.0, color: 0, tip: "t".into() }];
        let row = Row { bars, note: "INVALID".into(), invalid: true, ..Row::default() };
        let text = chart(vec![Group { label: String::new(), rows: vec![row] }]).draw(420.0, "");
        assert!(text.contains("m hollow c0") && !text.contains("m bar"), "{text}");
        assert!(text.contains("value bad"), "{text}");
    }

    #[test]
    fn no_rows_still_draw() {
        assert!(chart(Vec::new()).draw(420.0, "").starts_with("<svg"));
    }
}
