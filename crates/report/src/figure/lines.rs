//! Lines in panels above each other that share the horizontal axis.

use super::legend::{self, Entry};
use super::marker::Shape;
use super::scale::Axis;
use super::svg::{Anchor, LINE_OF_LABEL, SMALL, Svg, fitted, text_width};
use super::ticks;

#[derive(Debug, Clone, PartialEq)]
pub struct LinePoint {
    pub x: f64,
    pub y: f64,
    pub tip: String,
    /// Visible before it is hovered.
    pub shown: bool,
    /// The ends of its interval.
    pub whisker: Option<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub color: usize,
    pub dashed: bool,
    /// Its points are drawn hollow: secondary ones, or of an invalid run.
    pub hollow: bool,
    pub shape: Shape,
    /// Its points are joined.
    pub joined: bool,
    pub points: Vec<LinePoint>,
}

/// A value across the whole panel: a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitLine {
    pub y: f64,
    pub label: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub axis: Axis,
    pub height: f64,
    pub lines: Vec<Line>,
    pub levels: Vec<LimitLine>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    pub axis: Axis,
    pub panels: Vec<Panel>,
    pub legend: Vec<Entry>,
}

const HEAD: f64 = 22.0;
const RIGHT: f64 = 18.0;
/// How far a mark reaches from its centre.
const MARK: f64 = 4.0;
/// Places along a level at which its name is tried.
const PLACES: f64 = 24.0;

impl LineChart {
    pub fn draw(&self, width: f64, alt: &str) -> String {
        let mut svg = Svg::new();
        let mut top = legend::draw(&mut svg, &self.legend, width, 2.0);
        let ticks = self.panels.iter().flat_map(|panel| &panel.axis.ticks);
        let left = ticks.map(|(_, text)| text_width(text, SMALL)).fold(20.0, f64::max) + 10.0;
        let right = width - RIGHT;
        for panel in &self.panels {
            let label = fitted(&panel.axis.label, SMALL, width);
            svg.text("panel", Anchor::Start, 0.0, top + 13.0, &label);
            top += HEAD;
            self.panel(&mut svg, panel, (left, right), top);
            top += panel.height + 12.0;
        }
        let bottom = top - 12.0;
        let at = |value: f64| left + self.axis.scale.at(value) * (right - left);
        let texts = self.axis.ticks.iter().map(|(value, text)| (at(*value), text.as_str()));
        ticks::below(&mut svg, texts, bottom + 16.0, width);
        let middle = (left + right) / 2.0;
        svg.text("axis-label", Anchor::Middle, middle, bottom + 34.0, &self.axis.label);
        svg.finish(width, bottom + 42.0, alt)
    }

    fn panel(&self, svg: &mut Svg, panel: &Panel, (left, right): (f64, f64), top: f64) {
        let bottom = top + panel.height;
        for (value, text) in &panel.axis.ticks {
            let y = bottom - panel.axis.scale.at(*value) * panel.height;
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", Anchor::End, left - 6.0, y + 4.0, text);
        }
        for (value, _) in &self.axis.ticks {
            let x = left + self.axis.scale.at(*value) * (right - left);
            svg.line("grid", (x, top), (x, bottom));
        }
        svg.line("axis", (left, bottom), (right, bottom));
        let place = |point: &LinePoint| {
            (
                left + self.axis.scale.at(point.x) * (right - left),
                bottom - panel.axis.scale.at(point.y) * panel.height,
            )
        };
        for level in &panel.levels {
            let y = bottom - panel.axis.scale.at(level.y) * panel.height;
            svg.line("line cn dash", (left, y), (right, y));
        }
        // All lines first: no line runs over a point of another.
        for line in panel.lines.iter().filter(|line| line.joined) {
            let dash = if line.dashed { " dash" } else { "" };
            let points: Vec<(f64, f64)> = line.points.iter().map(place).collect();
            svg.polyline(&format!("line {}{dash}", legend::color(line.color)), &points);
        }
        let mut drawn: Vec<Vec<(f64, f64)>> = Vec::new();
        for line in &panel.lines {
            let points = || line.points.iter();
            drawn.extend(line.joined.then(|| points().map(place).collect()));
            // A mark is as wide as its shape.
            let shown = points().filter(|point| point.shown).map(place);
            drawn.extend(shown.map(|(x, y)| vec![(x - MARK, y - MARK), (x + MARK, y + MARK)]));
        }
        panel.labels(svg, (left, right), top, &drawn);
        for line in &panel.lines {
            for point in &line.points {
                let (x, y) = place(point);
                if let Some((low, high)) = point.whisker {
                    let at = |y: f64| place(&LinePoint { y, ..point.clone() }).1;
                    svg.line("whisker", (x, at(low)), (x, at(high)));
                    for end in [low, high] {
                        svg.line("whisker", (x - 3.0, at(end)), (x + 3.0, at(end)));
                    }
                }
                let hidden = if point.shown { "" } else { " q" };
                let fill = if line.hollow { "hollow" } else { "dot" };
                let class = format!("{fill} {}{hidden}", legend::color(line.color));
                svg.mark(&class, &line.shape.path(x, y, 3.5), &point.tip);
            }
        }
    }
}

impl Panel {
    /// The names of its levels: each above its line or below it, where no other one is and where
    /// it hides least of what is `drawn`.
    fn labels(
        &self,
        svg: &mut Svg,
        (left, right): (f64, f64),
        top: f64,
        drawn: &[Vec<(f64, f64)>],
    ) {
        let bottom = top + self.height;
        let room = right - left - 8.0;
        let at = |level: &LimitLine| bottom - self.axis.scale.at(level.y) * self.height;
        let levels = self.levels.iter().map(|level| vec![(left, at(level)), (right, at(level))]);
        let drawn: Vec<Vec<(f64, f64)>> = drawn.iter().cloned().chain(levels).collect();
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        for level in &self.levels {
            let line = at(level);
            let text = fitted(&level.label, SMALL, room);
            let width = text_width(&text, SMALL);
            let (above, below) = (line - 4.0, line + SMALL + 2.0);
            let (start, end) = (left + 4.0, right - 4.0 - width);
            let free = |place: &(f64, f64)| {
                let within = place.1 - SMALL > top && place.1 < bottom;
                let meets = |(x, y, wide): &(f64, f64, f64)| {
                    (y - place.1).abs() < LINE_OF_LABEL
                        && *x < place.0 + width
                        && place.0 < x + wide
                };
                within && !taken.iter().any(meets)
            };
            let hidden = |(x, y): &(f64, f64)| {
                let label = ((*x, x + width), (y - SMALL, *y));
                drawn.iter().filter(|path| path.windows(2).any(|part| meets(part, label))).count()
            };
            let step = (end - start).max(0.0) / PLACES;
            let along = (0..=PLACES as u32).map(|nth| start + step * f64::from(nth));
            let near = along.flat_map(|x| [(x, above), (x, below)]).filter(free);
            // Beyond the nearest places, line by line through the panel.
            let lines = (1..).map(|nth| top + LINE_OF_LABEL * f64::from(nth));
            let mut others = lines.take_while(|y| *y < bottom).map(|y| (start, y)).filter(free);
            let place = near.min_by_key(hidden).or_else(|| others.next());
            let (x, y) = place.unwrap_or((start, above));
            svg.text("tick level", Anchor::Start, x, y, &text);
            taken.push((x, y, width));
        }
    }
}

/// Whether a straight part of a line runs through a box, given by its ends in x and in y.
fn meets(part: &[(f64, f64)], (across, down): ((f64, f64), (f64, f64))) -> bool {
    let &[from, to] = part else { return false };
    let ((x0, y0), (x1, y1)) = if from.0 <= to.0 { (from, to) } else { (to, from) };
    let (first, last) = (x0.max(across.0), x1.min(across.1));
    if first > last {
        return false;
    }
    let at = |x: f64| if x1 > x0 { y0 + (y1 - y0) * (x - x0) / (x1 - x0) } else { y0 };
    let (low, high) = (at(first).min(at(last)), at(first).max(at(last)));
    low <= down.1 && high >= down.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::scale::Scale;
    use crate::format;

    #[test]
    fn lines_are_told_apart_and_points_have_values() {
        let point = |x: f64, y: f64| LinePoint {
            x,
            y,
            tip: format!("{y} at {x}"),
            shown: x > 0.0,
            whisker: (x > 0.0).then_some((y / 2.0, y)),
        };
        let line = |color, dashed| Line {
            color,
            dashed,
            hollow: dashed,
            shape: Shape::nth(color),
            joined: true,
            points: vec![point(0.0, 1.0), point(1.0, 10.0)],
        };
        let chart = LineChart {
            axis: Axis::new(Scale::from_zero([1.0]), 4, "seconds", format::plain),
            panels: vec![Panel {
                axis: Axis::new(Scale::log([1.0, 10.0]), 4, "latency", format::latency_tick),
                height: 100.0,
                lines: vec![line(0, false), line(1, true), Line { joined: false, ..line(2, true) }],
                levels: [3.0, 3.1, 3.2, 3.3]
                    .map(|y| LimitLine { y, label: "a limit".to_owned() })
                    .into(),
            }],
            legend: Vec::new(),
        };
        let text = chart.draw(420.0, "two lines");
        assert_eq!(text.matches("class=\"line c").count(), 6, "two lines and four levels");
        assert_eq!(text.matches(" dash\"").count(), 5);
        let places = text.split("<text class=\"tick level\"").skip(1);
        let mut places: Vec<&str> = places.map(|rest| rest.split('>').next().unwrap()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 4, "no name lies on another: {places:?}");
        assert_eq!(text.matches("class=\"whisker\"").count(), 9, "a line and two caps each");
        assert_eq!(text.matches("<title>").count(), 6);
        assert_eq!(text.matches(" q\"").count(), 3);
    }

    #[test]
    fn a_name_keeps_clear_of_lines() {
        let point =
            |x: f64, y: f64| LinePoint { x, y, tip: String::new(), shown: false, whisker: None };
        let line = Line {
            color: 0,
            dashed: false,
            hollow: false,
            shape: Shape::nth(0),
            joined: true,
            points: vec![point(0.0, 5.1), point(0.3, 6.0), point(1.0, 9.5)],
        };
        let panel = Panel {
            axis: Axis::new(Scale::from_zero([10.0]), 4, "cost", format::plain),
            height: 200.0,
            lines: vec![line],
            levels: vec![LimitLine { y: 5.0, label: "a limit".to_owned() }],
        };
        let axis = Axis::new(Scale::from_zero([1.0]), 4, "price", format::plain);
        let chart = LineChart { axis, panels: vec![panel], legend: Vec::new() };
        for width in [340.0, 900.0] {
            let text = chart.draw(width, "a line");
            let name = text.split("<text class=\"tick level\"").nth(1).unwrap();
            let number = |key: &str| -> f64 {
                name.split(key).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            let path = text.split("class=\"line c0\"").nth(1).unwrap();
            let path = path.split("d=\"M").nth(1).unwrap().split('"').next().unwrap();
            let points: Vec<(f64, f64)> = path
                .split('L')
                .map(|pair| pair.split_once(' ').unwrap())
                .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
                .collect();
            let (x, y) = (number(" x=\""), number(" y=\""));
            let label = ((x, x + text_width("a limit", SMALL)), (y - SMALL, y));
            assert!(!points.windows(2).any(|part| meets(part, label)), "{width}: {text}");
        }
    }
}
