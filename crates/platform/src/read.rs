//! From text to data, with errors that show the place.

use model::suggest::nearest;
use serde::de::DeserializeOwned;

use crate::error::PlatformError;

/// Reads TOML; `origin` is what messages call it.
pub(crate) fn read<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, PlatformError> {
    toml::from_str(text).map_err(|error| {
        // The last line of the message says what is wrong, those before it where.
        let why = format!("{}{}", error.to_string().trim_end(), meant(error.message()));
        PlatformError::Broken { origin: origin.to_owned(), why }
    })
}

/// serde lists the names that it expected; the nearest of them is what was meant.
fn meant(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match (message.starts_with("unknown "), quoted.next()) {
        (true, Some(wrong)) => {
            nearest(wrong, quoted).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
        }
        _ => String::new(),
    }
}
