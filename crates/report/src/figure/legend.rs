//! The legend of colours, shapes and dashes.

use super::COLORS;
use super::marker::Shape;
use super::svg::{Anchor, LINE_OF_LABEL, SMALL, Svg, lines, text_width};

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub label: String,
    /// None: the entry explains a shape, whatever its colour.
    pub color: Option<usize>,
    pub shape: Option<Shape>,
    /// A line through the sample, dashed or not.
    pub line: Option<bool>,
    /// Drawn hollow: a run that does not count.
    pub hollow: bool,
}

const SAMPLE: f64 = 24.0;
const SWATCH: f64 = 12.0;
const SPACE: f64 = 16.0;
const LINE: f64 = 20.0;

pub fn color(i: usize) -> String {
    format!("c{}", i % COLORS)
}

/// Draws from `top` on; returns where the legend ends.
pub fn draw(svg: &mut Svg, entries: &[Entry], width: f64, top: f64) -> f64 {
    if entries.is_empty() {
        return top;
    }
    let (mut x, mut y) = (0.0, top + SWATCH);
    for entry in entries {
        let sample = if entry.line.is_some() { SAMPLE } else { SWATCH };
        let label = lines(&entry.label, SMALL, width - sample - 6.0);
        let widest = label.iter().map(|line| text_width(line, SMALL)).fold(0.0, f64::max);
        let wide = sample + 6.0 + widest;
        if x > 0.0 && x + wide > width {
            x = 0.0;
            y += LINE;
        }
        let class = entry.color.map_or("cn".to_owned(), color);
        let middle = y - 4.0;
        if let Some(dashed) = entry.line {
            let dash = if dashed { " dash" } else { "" };
            svg.line(&format!("line {class}{dash}"), (x, middle), (x + sample, middle));
        }
        let fill = if entry.hollow { "hollow" } else { "fill" };
        match entry.shape {
            Some(shape) => {
                svg.path(&format!("{fill} {class}"), &shape.path(x + sample / 2.0, middle, 4.0));
            }
            None if entry.line.is_none() => {
                let d = super::svg::rectangle(x, middle - 5.0, SWATCH, 10.0);
                svg.path(&format!("{fill} {class}"), &d);
            }
            None => {}
        }
        for (i, line) in label.iter().enumerate() {
            y += if i > 0 { LINE_OF_LABEL } else { 0.0 };
            svg.text("key", Anchor::Start, x + sample + 6.0, y, line);
        }
        // What follows a label of several lines begins below it.
        x = if label.len() > 1 { width } else { x + wide + SPACE };
    }
    y + SPACE
}
