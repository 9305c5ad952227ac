//! Descriptions as TOML, and errors that point into them.

use std::ops::Range;
use std::path::Path;

use model::suggest::with_suggestion;
use model::text_position::{shown, shown_if};
use serde::de::DeserializeOwned;

use crate::error::SimError;

/// The longest description of a machine or of traffic.
const MAX_BYTES: u64 = 1 << 20;

/// A text, and its name in messages.
#[derive(Debug, Clone)]
pub struct DescriptionText {
    pub origin: String,
    pub text: String,
}

impl DescriptionText {
    pub fn read(path: &Path) -> Result<DescriptionText, SimError> {
        let origin = path.display().to_string();
        match safe_file::read_text(path, MAX_BYTES) {
            Ok(text) => Ok(DescriptionText { origin, text }),
            Err(error) => Err(SimError::file(origin, &error)),
        }
    }

    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, SimError> {
        toml::from_str(&self.text).map_err(|error| {
            let words = with_suggestion(error.message());
            SimError::Place(shown_if(&self.origin, &self.text, error.span(), &words))
        })
    }

    /// An error that shows the place in the text.
    pub fn at(&self, span: Range<usize>, words: &str) -> SimError {
        SimError::Place(shown(&self.origin, &self.text, span, words))
    }
}
