//! Parses TOML, with errors that show the place.

use model::suggest::with_suggestion;
use model::text_position::shown_if;
use serde::de::DeserializeOwned;

use super::error::PlatformError;

/// Reads TOML; `origin` is what messages call it.
pub(super) fn read<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, PlatformError> {
    toml::from_str(text).map_err(|error| {
        let words = with_suggestion(error.message());
        PlatformError::Broken(shown_if(origin, text, error.span(), &words))
    })
}
