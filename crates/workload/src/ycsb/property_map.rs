//! The properties of a file by name, with typed getters.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::YcsbError;
use super::properties::Property;

pub(super) struct PropertyMap<'a>(BTreeMap<&'a str, &'a Property>);

impl<'a> PropertyMap<'a> {
    /// # Errors
    /// A name that is given twice, of which Java silently takes the last.
    pub fn new(properties: &'a [Property]) -> Result<PropertyMap<'a>, YcsbError> {
        let mut all = BTreeMap::new();
        for property in properties {
            if let Some(first) = all.insert(property.name.as_str(), property) {
                let Property { name, line, .. } = property;
                let problem = format!(
                    "`{name}` is given on line {} too, and Java would take this one; keep one",
                    first.line
                );
                return Err(YcsbError::at(*line, problem));
            }
        }
        Ok(PropertyMap(all))
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|property| property.value.as_str())
    }

    /// A number; YCSB's default where it is left out.
    pub fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T, YcsbError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| self.wrong(name, "a number that is not negative"))
    }

    /// A proportion, a percentage or another finite number that is not negative.
    pub fn share(&self, name: &str, default: f64) -> Result<f64, YcsbError> {
        let share: f64 = self.number(name, default)?;
        if share.is_finite() && share >= 0.0 {
            return Ok(share);
        }
        Err(self.wrong(name, "a number that is not negative"))
    }

    pub fn flag(&self, name: &str, default: bool) -> Result<bool, YcsbError> {
        match self.text(name).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(self.wrong(name, "`true` or `false`")),
        }
    }

    /// The choice of this name, out of `(name, value)`; the first one where it is left out.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, YcsbError> {
        let Some(text) = self.text(name) else { return Ok(choices[0].1) };
        match choices.iter().find(|(choice, _)| *choice == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let hint = model::suggest::hint(text, choices.iter().map(|(choice, _)| *choice));
                Err(self.at(name, format!("`{name}` is `{text}`; {hint}")))
            }
        }
    }

    /// An error at a property, or of the whole file where it is left out.
    pub fn at(&self, name: &str, problem: impl Into<String>) -> YcsbError {
        match self.0.get(name) {
            Some(property) => YcsbError::at(property.line, problem),
            None => YcsbError::whole(problem),
        }
    }

    fn wrong(&self, name: &str, expected: &str) -> YcsbError {
        let text = self.text(name).unwrap_or_default();
        self.at(name, format!("`{name}` is `{text}`; write {expected}"))
    }
}
