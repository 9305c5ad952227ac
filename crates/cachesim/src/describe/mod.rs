//! Descriptions of machines and traffic, as TOML.

pub mod machine;
pub mod text;
pub mod traffic;

use std::path::Path;

use model::suggest::hint;

use crate::error::SimError;
use text::DescriptionText;

/// A built-in description by its name, or a file by its path.
fn open(name: &str, built_in: &[(&str, &str)], what: &str) -> Result<DescriptionText, SimError> {
    if let Some((_, text)) = built_in.iter().find(|(known, _)| *known == name) {
        return Ok(DescriptionText { origin: name.to_owned(), text: (*text).to_owned() });
    }
    let path = Path::new(name);
    if path.exists() {
        return DescriptionText::read(path);
    }
    let hint = hint(name, built_in.iter().map(|(known, _)| *known));
    Err(SimError::Value(format!(
        "there is no file `{name}` and no built-in {what} of that name; {hint}"
    )))
}
