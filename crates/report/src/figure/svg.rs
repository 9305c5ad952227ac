//! Writing SVG elements. Every text is escaped here.

use std::fmt::Write;

pub const SMALL: f64 = 12.0;
/// From one line of a small text to the next.
pub const LINE_OF_LABEL: f64 = 15.0;

pub struct Svg {
    body: String,
}

/// Coordinates to a tenth of a unit: finer is not seen and makes the page longer.
fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in model::text::lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// About how wide a text is in a proportional font of `size`; errs on the wide side.
pub fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.32,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        'A'..='Z' | '×' | '–' => 0.70,
        c if c.is_ascii() => 0.585,
        _ => 0.75,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The text, cut with an ellipsis where it would be wider than `width`.
pub fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if text_width(&out, size) + size > width {
            break;
        }
    }
    out.pop();
    out + "…"
}

/// The text in lines no wider than `width`, broken between words, and within a word that is wider.
/// For names, which [`fitted`] could make indistinguishable.
pub fn lines(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut()
            && text_width(&format!("{line} {word}"), size) <= width
        {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        lines.push(String::new());
        for c in word.chars() {
            let full =
                |line: &String| !line.is_empty() && text_width(&format!("{line}{c}"), size) > width;
            if lines.last().is_some_and(full) {
                lines.push(String::new());
            }
            lines.last_mut().into_iter().for_each(|line| line.push(c));
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// The middle of a text, as near to `x` as the figure's edges allow.
pub fn within(x: f64, text: &str, width: f64) -> f64 {
    let half = text_width(text, SMALL) / 2.0;
    x.clamp(half, (width - half).max(half))
}

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub fn new() -> Self {
        Svg { body: String::new() }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (n(from.0), n(from.1), n(to.0), n(to.1));
        let _ =
            write!(self.body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    pub fn text(&mut self, class: &str, anchor: Anchor, x: f64, y: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            r#"<text class="{class}" text-anchor="{anchor}" x="{}" y="{}">{}</text>"#,
            n(x),
            n(y),
            escaped(text)
        );
    }

    pub fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.body, r#"<path class="{class}" d="{d}"/>"#);
    }

    /// A line through points; nothing for none.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, n(*x), n(*y));
        }
        if !d.is_empty() {
            self.path(class, &d);
        }
    }

    /// A shape that has a value: `tip` says it.
    pub fn mark(&mut self, class: &str, d: &str, tip: &str) {
        let _ = write!(
            self.body,
            r#"<path class="m {class}" d="{d}"><title>{}</title></path>"#,
            escaped(tip)
        );
    }

    pub fn finish(self, width: f64, height: f64, alt: &str) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{}">{}</svg>"#,
            escaped(alt),
            self.body,
            w = n(width),
            h = n(height),
        )
    }
}

/// A rectangle as path data.
pub fn rectangle(x: f64, y: f64, width: f64, height: f64) -> String {
    format!("M{} {}h{}v{}h{}z", n(x), n(y), n(width), n(height), n(-width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_everywhere() {
        let mut svg = Svg::new();
        svg.text("t", Anchor::Start, 0.0, 1.25, "<b>&\"\u{1b}");
        svg.mark("c0", "M0 0", "<i>");
        let out = svg.finish(10.0, 5.5, "a<b");
        assert!(out.contains("&lt;b&gt;&amp;&quot;\u{fffd}</text>"), "{out}");
        assert!(out.contains("<title>&lt;i&gt;</title>"), "{out}");
        assert!(out.contains(r#"aria-label="a&lt;b""#), "{out}");
        assert!(out.contains(r#"viewBox="0 0 10 5.5""#), "{out}");
    }

    #[test]
    fn names_wrap_to_another_line() {
        let name = "read, rocksdb, open 2k/s, time 2s, warm-up 500ms, from";
        let names = ["due", "sent"].map(|end| lines(&format!("{name} {end}"), 12.0, 200.0));
        assert!(names[0].len() > 1 && names[0] != names[1]);
        for (lines_of, end) in names.iter().zip(["due", "sent"]) {
            assert_eq!(lines_of.join(" "), format!("{name} {end}"));
            assert!(lines_of.iter().all(|line| text_width(line, 12.0) <= 200.0));
        }
        assert_eq!(lines("short", 12.0, 200.0), ["short"]);
        assert_eq!(lines("", 12.0, 200.0), [""]);
        assert_eq!(lines("an aaaaaaaa", 12.0, 36.0), ["an", "aaaaa", "aaa"]);
    }

    #[test]
    fn long_text_is_cut() {
        let cut = fitted("a very long name of a run", 12.0, 60.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 60.0, "{cut}");
        assert_eq!(fitted("short", 12.0, 60.0), "short");
    }
}
