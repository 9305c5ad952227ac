//! Serde names of enum variants as text in a column.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as Unknown, StrDeserializer};

use crate::error::RecordError;

/// The name of a variant without fields: `Phase::Load` is `load`. Empty for anything else.
pub(crate) fn name<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Reads what [`name`] wrote; `what` is for the message.
pub(crate) fn from_name<T: DeserializeOwned>(
    path: &Path,
    what: &'static str,
    name: &str,
) -> Result<T, RecordError> {
    T::deserialize(StrDeserializer::<Unknown>::new(name)).map_err(|_| RecordError::UnknownName {
        path: path.to_owned(),
        what,
        found: name.to_owned(),
    })
}
