//! Where a study's text comes from, and errors that point into it.

use std::ops::Range;
use std::path::Path;

use host::Root;
use model::design::ChosenScale;
use model::suggest::{hint, with_suggestion};
use model::text_position::{shown, shown_if};
use model::tilde::unexpanded;
use toml::Spanned;

use super::built_in::BUILT_IN;
use super::edit::{assign, edited, put};
use super::machine_sized;
use super::spec::StudySpec;
use crate::error::StudyError;

/// The file next to a study with published figures.
const PUBLISHED: &str = "published.toml";

/// The text of a study and its name in messages.
#[derive(Debug, Clone)]
pub struct StudyText {
    pub origin: String,
    pub text: String,
    /// The `published.toml` next to it.
    pub(crate) published: Option<String>,
    /// The chosen scale.
    pub(crate) scale: Option<ChosenScale>,
    /// The machine that numbers such as `8 per cpu` follow.
    root: Root,
}

impl StudyText {
    /// A study of this text.
    pub fn new(origin: &str, text: &str) -> StudyText {
        let (origin, text) = (origin.to_owned(), text.to_owned());
        StudyText { origin, text, published: None, scale: None, root: Root::live() }
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The same for another machine than this one.
    pub(crate) fn on(&self, root: &Root) -> StudyText {
        StudyText { root: root.clone(), ..self.clone() }
    }

    /// A built-in study by its name, or a file by its path.
    pub fn open(name: &str) -> Result<StudyText, StudyError> {
        if let Some(found) = BUILT_IN.iter().find(|study| study.name == name) {
            let source = StudyText::new(name, found.text);
            return Ok(StudyText { published: found.published.map(str::to_owned), ..source });
        }
        let path = Path::new(name);
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Ok(StudyText { published: published_file(path)?, ..StudyText::new(name, &text) })
            }
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
        let mut document: toml_edit::DocumentMut =
            self.text.parse().map_err(|error: toml_edit::TomlError| {
                StudyError::Request(shown_if(
                    &self.origin,
                    &self.text,
                    error.span(),
                    error.message(),
                ))
            })?;
        let sound = self.spec().is_ok();
        for assignment in assignments {
            assign(document.as_table_mut(), assignment)?;
            let changed = StudyText { text: document.to_string(), ..self.clone() };
            if let (true, Err(error)) = (sound, changed.spec()) {
                let why = error.reason();
                return Err(StudyError::Request(format!("--set {assignment}: {why}")));
            }
        }
        self.text = document.to_string();
        Ok(())
    }

    /// Applies the scale of this name, before any [`StudyText::set`].
    ///
    /// # Errors
    /// An unknown scale, or an invalid key in it.
    pub fn scale(&mut self, name: &str) -> Result<(), StudyError> {
        let spec = self.spec()?;
        let Some((key, chosen)) = spec.scale.iter().find(|(key, _)| key.get_ref() == name) else {
            let names: Vec<&str> = spec.scale.keys().map(|name| name.get_ref().as_str()).collect();
            let words = match names.is_empty() {
                true => format!("{} has no [scale.NAME] at all", self.origin),
                false => format!("{} has none of this name; {}", self.origin, hint(name, names)),
            };
            return Err(StudyError::Request(format!("--scale {name}: {words}")));
        };
        let mut changed = self.clone();
        for (path, value) in &chosen.set {
            let change = [(path.get_ref().clone(), value.clone())];
            let place = path.span();
            let next = changed.with(&change).map_err(|words| self.at(place.clone(), &words))?;
            if let Err(error) = next.spec() {
                return Err(self.at(place, &error.reason()));
            }
            changed = next;
        }
        let set = |(path, value): (&Spanned<String>, &toml::Value)| {
            (path.get_ref().clone(), value.to_string())
        };
        let (name, note) = (key.get_ref().clone(), chosen.note.clone());
        changed.scale = Some(ChosenScale { name, note, set: chosen.set.iter().map(set).collect() });
        *self = changed;
        Ok(())
    }

    /// The same study with values in other keys, as `--set` would put them there.
    ///
    /// # Errors
    /// What is wrong, in words: a key inside a value.
    pub(crate) fn with(&self, changes: &[(String, toml::Value)]) -> Result<StudyText, String> {
        let mut document: toml_edit::DocumentMut =
            self.text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
        for (path, value) in changes {
            put(document.as_table_mut(), path, edited(value))?;
        }
        Ok(StudyText { text: document.to_string(), ..self.clone() })
    }

    pub fn spec(&self) -> Result<StudySpec, StudyError> {
        let sized = machine_sized::resolve(&self.text, &self.root)
            .map_err(|(place, words)| self.at(place, &words))?;
        self.check_paths()?;
        toml::from_str(sized.as_ref().unwrap_or(&self.text)).map_err(|error| {
            let words = with_suggestion(error.message());
            match error.span() {
                Some(span) => self.at(span, &words),
                None => StudyError::Request(format!("{}: {words}", self.origin)),
            }
        })
    }

    /// Refuses a `~` that no shell has replaced, whatever key it is the value of.
    fn check_paths(&self) -> Result<(), StudyError> {
        // Invalid TOML is reported when the study is parsed.
        let Ok(document) = toml_edit::Document::parse(self.text.as_str()) else { return Ok(()) };
        match tilde(document.as_item()) {
            Some((span, why)) => Err(self.at(span.unwrap_or_default(), &why)),
            None => Ok(()),
        }
    }

    /// An error that shows a key of the text, by its path, where it is there.
    pub(crate) fn at_key(&self, path: &[&str], words: &str) -> StudyError {
        let document = toml_edit::Document::parse(self.text.as_str()).ok();
        let root = document.as_ref().map(toml_edit::Document::as_item);
        let item = path.iter().fold(root, |item, key| item?.get(key));
        match item.and_then(toml_edit::Item::span) {
            Some(span) => self.at(span, words),
            None => StudyError::Request(format!("{}: {words}", self.origin)),
        }
    }

    /// An error that shows the place in the text.
    pub fn at(&self, span: Range<usize>, words: &str) -> StudyError {
        let shown = shown(&self.origin, &self.text, span, words);
        StudyError::InText { why: words.to_owned(), shown }
    }
}

/// The first text in it that begins with a `~`, its place, and what to write.
fn tilde(item: &toml_edit::Item) -> Option<(Option<Range<usize>>, String)> {
    if let Some(table) = item.as_table_like() {
        return table.iter().find_map(|(_, item)| tilde(item));
    }
    if let Some(tables) = item.as_array_of_tables() {
        let tilde = |table: &toml_edit::Table| tilde(&toml_edit::Item::Table(table.clone()));
        return tables.iter().find_map(tilde);
    }
    if let Some(list) = item.as_array() {
        return list.iter().find_map(|value| tilde(&toml_edit::Item::Value(value.clone())));
    }
    let text = item.as_str()?;
    unexpanded(text).map(|why| (item.span(), why))
}

/// The longest file of published figures.
const MAX_PUBLISHED_BYTES: u64 = 16 << 20;

/// The published figures next to the study, if any.
fn published_file(study: &Path) -> Result<Option<String>, StudyError> {
    let path = study.with_file_name(PUBLISHED);
    match safe_file::read_text(&path, MAX_PUBLISHED_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let (path, why) = (path.display(), error.why());
            Err(StudyError::Request(format!("{path}: cannot be read: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> StudyText {
        StudyText::new("study.toml", text)
    }

    #[test]
    fn every_built_in_study_parses() {
        for study in BUILT_IN {
            let spec = StudyText::open(study.name).and_then(|source| source.spec()).unwrap();
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
    fn a_tilde_is_refused_in_every_key() {
        for text in [
            "[store.lmdb]\npath = \"~/db\"",
            "[workloads.w]\ntrace = \"~/t\"",
            "store = { spill = { path = \"~/db\" } }",
            "sequence = [\"~/x\"]",
        ] {
            let error = source(&format!("name = \"x\"\n{text}\n")).spec().unwrap_err().to_string();
            assert!(error.contains("$HOME/") && error.contains("study.toml:"), "{error}");
        }
        assert!(source("name = \"x\"\nquestion = \"~ 3 s?\"").spec().is_ok());
    }

    #[test]
    fn a_missing_study_names_the_nearest() {
        let error = StudyText::open("quikstart").unwrap_err().to_string();
        assert!(error.contains("did you mean `quickstart`?"), "{error}");
    }
}
