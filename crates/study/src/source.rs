//! Where a study's text comes from, and errors that point into it.

use std::ops::Range;
use std::path::Path;

use model::suggest::{hint, nearest};
use toml::Spanned;

use crate::error::StudyError;
use crate::spec::Spec;

/// What a key holds, if it was given.
pub(crate) fn given<T: Clone>(key: &Option<Spanned<T>>) -> Option<T> {
    key.as_ref().map(|key| key.get_ref().clone())
}

/// A study that is built in.
pub struct BuiltIn {
    pub name: &'static str,
    /// One line for a list.
    pub what: &'static str,
    text: &'static str,
}

pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "quickstart",
        what: "Spill and RocksDB under the YCSB core workloads, in two to three minutes",
        text: include_str!("../../../studies/quickstart/study.toml"),
    },
    BuiltIn {
        name: "memcached",
        what: "both sides of the latency of a memcached that it starts, in under a minute",
        text: include_str!("../../../studies/memcached/study.toml"),
    },
    BuiltIn {
        name: "mbwu",
        what: "media-based work units of the devices that are named, in hours",
        text: include_str!("../../../studies/mbwu/study.toml"),
    },
];

/// The text of a study and the name by which messages call it.
#[derive(Debug, Clone)]
pub struct Source {
    pub origin: String,
    pub text: String,
}

impl Source {
    /// A built-in study by its name, or a file by its path.
    pub fn open(name: &str) -> Result<Source, StudyError> {
        if let Some(found) = BUILT_IN.iter().find(|study| study.name == name) {
            return Ok(Source { origin: name.to_owned(), text: found.text.to_owned() });
        }
        let path = Path::new(name);
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Source { origin: name.to_owned(), text }),
            Err(error) if path.exists() => {
                Err(StudyError::Request(format!("{name}: cannot be read: {error}")))
            }
            Err(_) => Err(StudyError::Request(format!(
                "there is no study file `{name}` and no built-in study of that name; {}",
                hint(name, BUILT_IN.iter().map(|study| study.name))
            ))),
        }
    }

    /// Changes single values: `table.key=value`, the value as TOML or, failing that, as text.
    pub fn set(&mut self, assignments: &[String]) -> Result<(), StudyError> {
        if assignments.is_empty() {
            return Ok(());
        }
        let mut document: toml_edit::DocumentMut = self
            .text
            .parse()
            .map_err(|error: toml_edit::TomlError| self.broken(&error.to_string()))?;
        let sound = self.spec().is_ok();
        for assignment in assignments {
            assign(document.as_table_mut(), assignment)?;
            let changed = Source { text: document.to_string(), ..self.clone() };
            if let (true, Err(error)) = (sound, changed.spec()) {
                // The place would be one in a text that nobody wrote.
                let words = error.to_string();
                let why = words.lines().next().unwrap_or_default().to_owned();
                return Err(StudyError::Request(format!("--set {assignment}: {why}")));
            }
        }
        self.text = document.to_string();
        Ok(())
    }

    pub fn spec(&self) -> Result<Spec, StudyError> {
        toml::from_str(&self.text).map_err(|error| {
            let words = with_suggestion(error.message());
            match error.span() {
                Some(span) => self.at(span, &words),
                None => self.broken(&words),
            }
        })
    }

    /// An error that shows the place in the text.
    pub fn at(&self, span: Range<usize>, words: &str) -> StudyError {
        let start = span.start.min(self.text.len());
        let before = &self.text[..start];
        let number = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let column = self.text[line_start..start].chars().count();
        let length = self.text[start..span.end.clamp(start, self.text.len())]
            .lines()
            .next()
            .map_or(1, |text| text.chars().count().max(1));
        let margin = " ".repeat(number.to_string().len());
        StudyError::Request(format!(
            "{words}\n{margin} --> {}:{number}:{}\n{margin} |\n{number} | {line}\n{margin} | {}{}",
            self.origin,
            column + 1,
            " ".repeat(column),
            "^".repeat(length)
        ))
    }

    fn broken(&self, words: &str) -> StudyError {
        StudyError::Request(format!("{}: {words}", self.origin))
    }
}

fn assign(root: &mut toml_edit::Table, assignment: &str) -> Result<(), StudyError> {
    let wrong = |why: &str| StudyError::Request(format!("--set {assignment}: {why}"));
    let (path, text) = assignment
        .split_once('=')
        .ok_or_else(|| wrong("write it as `table.key=value`, e.g. `data.records=1M`"))?;
    let mut value: toml_edit::Value =
        text.trim().parse().unwrap_or_else(|_| toml_edit::Value::from(text.trim()));
    let mut keys: Vec<&str> = path.trim().split('.').collect();
    let last = keys.pop().filter(|key| !key.is_empty()).ok_or_else(|| wrong("the key is empty"))?;
    let mut table: &mut dyn toml_edit::TableLike = root;
    for key in keys {
        let item = table.entry(key).or_insert(toml_edit::Item::Table(toml_edit::Table::new()));
        table = item
            .as_table_like_mut()
            .ok_or_else(|| wrong(&format!("`{key}` is a value, not a table")))?;
    }
    if let Some(old) = table.get(last).and_then(toml_edit::Item::as_value) {
        // A comment behind the value stays.
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(last, toml_edit::Item::Value(value));
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { origin: "study.toml".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_built_in_study_reads() {
        for study in BUILT_IN {
            let spec = Source::open(study.name).and_then(|source| source.spec()).unwrap();
            assert_eq!(spec.name.get_ref(), study.name);
        }
    }

    #[test]
    fn an_unknown_key_is_shown_in_its_place() {
        let text = "name = \"x\"\nsequence = []\n[store.null]\n[measure]\nthread = 2\n";
        let error = source(text).spec().unwrap_err().to_string();
        assert!(error.contains("did you mean `threads`?"), "{error}");
        assert!(error.contains("study.toml:5:1"), "{error}");
        assert!(error.contains("5 | thread = 2"), "{error}");
        assert!(error.ends_with("| ^^^^^^"), "{error}");
    }

    #[test]
    fn values_are_set_by_their_path() {
        let mut study =
            source("name = \"x\" # kept\nsequence = []\n[data]\nrecords = 1\n[store.null]\n");
        study
            .set(&["data.records=2M".into(), "measure.threads=4".into(), "name=y z".into()])
            .unwrap();
        let spec = study.spec().unwrap();
        assert_eq!(spec.name.get_ref(), "y z");
        assert_eq!(spec.data.records.unwrap().get_ref().0, 2_000_000);
        assert_eq!(*spec.measure.threads.unwrap().get_ref(), 4);
        assert!(study.text.contains("# kept"));
        for wrong in ["records", "=1", "name.x=1", "a..=1"] {
            let error = study.clone().set(&[wrong.to_owned()]).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_missing_study_names_the_nearest() {
        let error = Source::open("quikstart").unwrap_err().to_string();
        assert!(error.contains("did you mean `quickstart`?"), "{error}");
    }
}
