//! Descriptions as TOML, and errors that point into them.

use std::ops::Range;
use std::path::Path;

use model::suggest::nearest;
use serde::de::DeserializeOwned;

use crate::error::SimError;

/// A text and the name by which messages call it.
#[derive(Debug, Clone)]
pub struct Source {
    pub origin: String,
    pub text: String,
}

impl Source {
    pub fn read(path: &Path) -> Result<Source, SimError> {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Source { origin, text }),
            Err(error) => Err(SimError::File { path: origin, why: error.to_string() }),
        }
    }

    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, SimError> {
        toml::from_str(&self.text).map_err(|error| {
            let words = with_suggestion(error.message());
            match error.span() {
                Some(span) => self.at(span, &words),
                None => SimError::Place(format!("{}: {words}", self.origin)),
            }
        })
    }

    /// An error that shows the place in the text.
    pub fn at(&self, span: Range<usize>, words: &str) -> SimError {
        let start = span.start.min(self.text.len());
        let before = &self.text[..start];
        let number = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let column = self.text[line_start..start].chars().count();
        SimError::Place(format!(
            "{}:{number}:{}: {words}\n{number} | {line}",
            self.origin,
            column + 1
        ))
    }
}

/// serde lists the names that it expected; the nearest of them is what was meant.
fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown ");
    match (unknown, quoted.next()) {
        (true, Some(wrong)) => match nearest(wrong, quoted) {
            Some(meant) => format!("{message}; did you mean `{meant}`?"),
            None => message.to_owned(),
        },
        _ => message.to_owned(),
    }
}
