//! Columns from zero in groups along the horizontal axis, with whiskers: how papers draw a
//! factor's levels. Panels stand above each other and share both axes.

use super::legend::{self, Entry};
use super::marker::Shape;
use super::scale::Axis;
use super::svg::{Anchor, LINE_OF_LABEL, SMALL, Svg, fitted, lines, rectangle, text_width};

/// A point at a column: a single run, or a published value.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnPoint {
    pub y: f64,
    pub shape: Shape,
    pub hollow: bool,
    pub tip: String,
}

/// A column; it may have points only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Column {
    /// The height and the value in words.
    pub bar: Option<(f64, String)>,
    pub whisker: Option<(f64, f64)>,
    pub color: usize,
    pub points: Vec<ColumnPoint>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnGroup {
    pub label: String,
    /// The same number in every group, one for each series.
    pub columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnPanel {
    /// Empty: there is only one.
    pub label: String,
    pub groups: Vec<ColumnGroup>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnChart {
    pub panels: Vec<ColumnPanel>,
    /// The vertical axis, from zero.
    pub axis: Axis,
    /// The label of the groups' axis.
    pub group_label: String,
    pub legend: Vec<Entry>,
}

const HEIGHT: f64 = 170.0;
const HEAD: f64 = 20.0;
const WIDEST: f64 = 42.0;
const RIGHT: f64 = 6.0;
/// Share of a group's room that its columns take.
const FILLED: f64 = 0.82;

impl ColumnChart {
    pub fn draw(&self, width: f64, alt: &str) -> String {
        let mut svg = Svg::new();
        let mut top = legend::draw(&mut svg, &self.legend, width, 2.0) + 2.0;
        svg.text("panel", Anchor::Start, 0.0, top + 12.0, &fitted(&self.axis.label, SMALL, width));
        top += HEAD + 4.0;
        let ticks = self.axis.ticks.iter().map(|(_, text)| text_width(text, SMALL));
        let left = ticks.fold(20.0, f64::max) + 10.0;
        for panel in &self.panels {
            if !panel.label.is_empty() {
                svg.text("group", Anchor::Start, left, top + 12.0, &panel.label);
                top += HEAD;
            }
            top += HEIGHT + self.panel(&mut svg, panel, (left, width - RIGHT), top) + 14.0;
        }
        let bottom = top - 14.0;
        let middle = (left + width - RIGHT) / 2.0;
        svg.text("axis-label", Anchor::Middle, middle, bottom + 18.0, &self.group_label);
        svg.finish(width, bottom + 26.0, alt)
    }

    /// Returns how far the names of the groups reach below the panel.
    fn panel(
        &self,
        svg: &mut Svg,
        panel: &ColumnPanel,
        (left, right): (f64, f64),
        top: f64,
    ) -> f64 {
        let bottom = top + HEIGHT;
        let at = |value: f64| bottom - self.axis.scale.at(value) * HEIGHT;
        for (value, text) in &self.axis.ticks {
            svg.line("grid", (left, at(*value)), (right, at(*value)));
            svg.text("tick", Anchor::End, left - 6.0, at(*value) + 4.0, text);
        }
        let room = (right - left) / panel.groups.len().max(1) as f64;
        let mut most_lines = 0;
        for (nth, group) in panel.groups.iter().enumerate() {
            let middle = left + (nth as f64 + 0.5) * room;
            let each = (room * FILLED / group.columns.len().max(1) as f64).min(WIDEST);
            let first = middle - each * group.columns.len() as f64 / 2.0;
            for (place, column) in group.columns.iter().enumerate() {
                self.column(svg, column, (first + (place as f64 + 0.5) * each, each), &at);
            }
            let label = lines(&group.label, SMALL, (room - 4.0).max(SMALL));
            most_lines = most_lines.max(label.len());
            for (i, line) in label.iter().enumerate() {
                let y = bottom + 16.0 + i as f64 * LINE_OF_LABEL;
                svg.text("tick", Anchor::Middle, middle, y, line);
            }
        }
        svg.line("axis", (left, bottom), (right, bottom));
        6.0 + most_lines as f64 * LINE_OF_LABEL
    }

    fn column(
        &self,
        svg: &mut Svg,
        column: &Column,
        (middle, each): (f64, f64),
        at: &impl Fn(f64) -> f64,
    ) {
        let color = legend::color(column.color);
        let wide = (each - 2.0).max(1.5);
        if let Some((value, tip)) = &column.bar {
            // A value is visible, however small.
            let height = (at(0.0) - at(*value)).max(1.0);
            let d = rectangle(middle - wide / 2.0, at(0.0) - height, wide, height);
            svg.mark(&format!("bar {color}"), &d, tip);
        }
        if let Some((low, high)) = column.whisker {
            let cap = (wide / 4.0).clamp(1.5, 5.0);
            svg.line("whisker", (middle, at(low)), (middle, at(high)));
            for end in [low, high] {
                svg.line("whisker", (middle - cap, at(end)), (middle + cap, at(end)));
            }
        }
        for spot in &column.points {
            let fill = if spot.hollow { "hollow spot" } else { "dot" };
            let radius = (wide / 3.0).clamp(2.0, if spot.hollow { 5.0 } else { 4.0 });
            let d = spot.shape.path(middle, at(spot.y), radius);
            svg.mark(&format!("{fill} {color}"), &d, &spot.tip);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::scale::Scale;
    use crate::format;

    fn column(value: f64, color: usize) -> Column {
        Column {
            bar: Some((value, format!("{value} of series {color}"))),
            whisker: Some((value * 0.9, value * 1.1)),
            color,
            points: vec![ColumnPoint {
                y: value * 1.3,
                shape: Shape::Diamond,
                hollow: true,
                tip: "published".to_owned(),
            }],
        }
    }

    fn chart() -> ColumnChart {
        let group = |label: &str| ColumnGroup {
            label: label.to_owned(),
            columns: vec![column(4.0, 0), column(6.0, 1), Column { color: 2, ..Column::default() }],
        };
        let panel = |label: &str| ColumnPanel {
            label: label.to_owned(),
            groups: vec![group("10k"), group("100k")],
        };
        ColumnChart {
            panels: vec![panel("smt = on"), panel("smt = off")],
            axis: Axis::new(Scale::from_zero([8.0]), 4, "latency", format::plain),
            group_label: "rate".to_owned(),
            legend: Vec::new(),
        }
    }

    #[test]
    fn each_column_has_its_value_its_whisker_and_its_spots() {
        for width in [880.0, 420.0] {
            let text = chart().draw(width, "columns");
            assert_eq!(text.matches("m bar c").count(), 8);
            assert_eq!(text.matches("class=\"whisker\"").count(), 24, "a line and two caps each");
            assert_eq!(text.matches("m hollow spot c").count(), 8);
            assert!(text.contains("<title>6 of series 1</title>") && text.contains(">smt = off<"));
            assert!(!text.contains("NaN"), "{text}");
        }
    }

    #[test]
    fn nothing_still_draws() {
        let empty = ColumnChart { panels: Vec::new(), ..chart() };
        assert!(empty.draw(420.0, "").starts_with("<svg"));
    }
}
