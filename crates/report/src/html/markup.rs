//! Building HTML so that text cannot become markup by mistake: only literals of this
//! program and drawings are written as they are.

use std::fmt::Display;

use crate::figure;

#[derive(Default)]
pub struct Markup(String);

impl Markup {
    /// Markup written in this program.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Any text; means itself, in an element and in a quoted attribute.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        self.0.push_str(&figure::escaped(&text.to_string()));
        self
    }

    /// A sentence; the flags in it are set as what is typed.
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

    pub fn into_string(self) -> String {
        self.0
    }
}
