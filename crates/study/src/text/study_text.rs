//! Where a study's text comes from, and errors that point into it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use host::Root;
use model::design::ChosenScale;
use model::suggest::{hint, with_suggestion};
use model::text_position::{shown, shown_if};
use store::StoreUrl;
use toml::Spanned;

use super::built_in::BUILT_IN;
use super::edit::{assign, edited, put};
use super::machine_sized;
use super::origin::{PutBy, PutKey, origin_of};
use super::spec::{StudySpec, option_text};
use crate::error::StudyError;
use crate::server_spec::ServerHosts;

/// The file next to a study with published figures.
const PUBLISHED: &str = "published.toml";

/// The text of a study and its name in messages.
#[derive(Debug, Clone)]
pub struct StudyText {
    pub origin: String,
    pub text: String,
    /// The text as it was opened.
    file: String,
    /// What a scale and `--set` put into it.
    put: Vec<PutKey>,
    /// The `published.toml` next to it.
    pub(crate) published: Option<String>,
    /// The chosen scale.
    pub(crate) scale: Option<ChosenScale>,
    /// The machine that numbers such as `8 per cpu` follow.
    root: Root,
    /// The machines on which its servers are started; None: this one.
    server_hosts: Option<ServerHosts>,
}

impl StudyText {
    /// A study of this text.
    pub fn new(origin: &str, text: &str) -> StudyText {
        StudyText {
            origin: origin.to_owned(),
            text: text.to_owned(),
            file: text.to_owned(),
            put: Vec::new(),
            published: None,
            scale: None,
            root: Root::live(),
            server_hosts: None,
        }
    }

    /// The same with its servers on other machines.
    pub fn with_servers_on(self, hosts: ServerHosts) -> StudyText {
        StudyText { server_hosts: Some(hosts), ..self }
    }

    /// The published figures next to it, as TOML.
    pub fn published(&self) -> Option<&str> {
        self.published.as_deref()
    }

    pub(crate) fn server_hosts(&self) -> Option<&ServerHosts> {
        self.server_hosts.as_ref()
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
            let path = assignment.split_once('=').map_or("", |(path, _)| path);
            self.put.push(PutKey::new(path, PutBy::Set(assignment.clone())));
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
            changed.put.push(PutKey::new(path.get_ref(), PutBy::Scale(place.clone())));
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

    /// The plug-in among its stores, without its options but `trusted`. Nothing is loaded.
    pub fn plugin(&self) -> Result<Option<StoreUrl>, StudyError> {
        let spec = self.spec()?;
        let Some((_, options)) = spec.store.iter().find(|(name, _)| name.get_ref() == "plugin")
        else {
            return Ok(None);
        };
        let mut url = StoreUrl {
            scheme: "plugin".to_owned(),
            path: PathBuf::new(),
            servers: Vec::new(),
            options: Vec::new(),
        };
        for name in [StoreUrl::LIBRARY, "trusted"] {
            let given = options.iter().find(|(key, _)| key.get_ref() == name);
            if let Some(text) = given.and_then(|(_, value)| option_text(value.get_ref()).ok()) {
                url.options.push((name.to_owned(), text));
            }
        }
        Ok(Some(url))
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

    /// An error that shows what stands at `span` of the text where it comes from: in the study's
    /// file or in a `--set`.
    pub fn at(&self, span: Range<usize>, words: &str) -> StudyError {
        let (in_file, by) = match self.put.is_empty() {
            true => (Some(span.clone()), None),
            false => origin_of(&span, &self.text, &self.file, &self.put),
        };
        let shown = match (by, in_file) {
            (Some(PutBy::Set(assignment)), _) => format!("--set {assignment}: {words}"),
            (Some(PutBy::Scale(place)), _) => shown(&self.origin, &self.file, place.clone(), words),
            (None, Some(place)) => shown(&self.origin, &self.file, place, words),
            (None, None) => shown(&self.origin, &self.text, span, words),
        };
        StudyError::InText { why: words.to_owned(), shown }
    }
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
    fn an_error_shows_who_put_the_key_there() {
        let text = "name = \"x\"\nsequence = []\n[scale.small]\nnote = \"n\"\n[scale.small.set]\n\
                    \"data.records\" = 5\n[data]\nrecords = 1\n\
                    [store.null]\n[store.spill]\n[measure]\nthreads = 2\n";
        let mut study = source(text);
        study.scale("small").unwrap();
        let sets = ["measure.time=1s", "factors.f.levels=[1]", "store.null.delay=\"1us\""];
        study.set(&sets.map(str::to_owned)).unwrap();
        let at = |path: &[&str]| study.at_key(path, "wrong").to_string();
        assert_eq!(at(&["measure", "time"]), "--set measure.time=1s: wrong");
        assert_eq!(at(&["factors", "f", "levels"]), "--set factors.f.levels=[1]: wrong");
        assert_eq!(at(&["store", "null", "delay"]), "--set store.null.delay=\"1us\": wrong");
        let key = study.text.find("f]").unwrap();
        assert!(study.at(key..key + 1, "wrong").to_string().starts_with("--set factors.f"));
        for (path, place) in
            [(["data", "records"], "study.toml:6:1"), (["measure", "threads"], "study.toml:12:11")]
        {
            assert!(at(&path).contains(place), "{}", at(&path));
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
