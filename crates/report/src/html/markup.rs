//! Builds HTML so that text cannot become markup: only literals of this program and drawings are
//! written unescaped.

use std::fmt::Display;

use crate::{figure, flame_graph};

#[derive(Default)]
pub struct Markup(String);

impl Markup {
    /// Markup written in this program.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Any text, escaped for elements and quoted attributes.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        self.0.push_str(&figure::escaped(&text.to_string()));
        self
    }

    /// A sentence; flags in it are set as code.
    pub fn prose(&mut self, text: &str) -> &mut Self {
        for (i, word) in text.split(' ').enumerate() {
            self.text(if i > 0 { " " } else { "" });
            if word.starts_with("--") {
                self.raw("<code>").text(word).raw("</code>");
            } else {
                self.text(word);
            }
        }
        self
    }

    /// A drawing, which has escaped its own texts.
    pub fn drawing(&mut self, chart: &figure::Chart, width: f64, alt: &str) -> &mut Self {
        self.0.push_str(&chart.draw(width, alt));
        self
    }

    /// A flame graph, which has escaped its own texts.
    pub fn flames(&mut self, set: &model::StackSet<'_>, alt: &str) -> &mut Self {
        self.0.push_str(&flame_graph::draw(set, alt));
        self
    }

    /// Base64, which holds nothing that could be markup.
    pub fn data(&mut self, bytes: &[u8]) -> &mut Self {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for three in bytes.chunks(3) {
            let at = |nth: usize| u32::from(three.get(nth).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for nth in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * nth) & 63) as usize];
                self.0.push(if nth > three.len() { '=' } else { digit.into() });
            }
        }
        self
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            let mut out = Markup::default();
            out.data(bytes.as_bytes());
            assert_eq!(out.into_string(), text);
        }
    }
}
