//! Every text in a study, whatever key it is the value of: paths without a shell's help, files that
//! another machine needs too.

use std::ops::Range;
use std::path::{Component, Path};

use model::tilde::unexpanded;

use super::study_text::StudyText;
use crate::error::StudyError;

/// A text and its place.
type Text = (String, Option<Range<usize>>);

impl StudyText {
    /// The files of this machine that its texts name by a relative path: traces, workloads,
    /// certificates, libraries.
    ///
    /// # Errors
    /// One lies outside of this folder, so that no other machine has it at that path.
    pub fn relative_files(&self) -> Result<Vec<String>, StudyError> {
        let mut files = Vec::new();
        for (text, place) in self.texts() {
            let path = Path::new(&text);
            if path.is_absolute() || !text.contains(['.', '/']) || !path.is_file() {
                continue;
            }
            if path.components().any(|part| part == Component::ParentDir) {
                let words = format!(
                    "`{text}` lies outside of this folder, so it is not copied to other machines; \
                     run kvmeter in a folder above it, or give an absolute path that they have"
                );
                return Err(self.at(place.unwrap_or_default(), &words));
            }
            if !files.contains(&text) {
                files.push(text);
            }
        }
        Ok(files)
    }

    /// Refuses a `~` that no shell has replaced.
    pub(super) fn check_paths(&self) -> Result<(), StudyError> {
        let wrong = self.texts().into_iter().find_map(|(text, place)| {
            Some(self.at(place.unwrap_or_default(), &unexpanded(&text)?))
        });
        wrong.map_or(Ok(()), Err)
    }

    /// None of invalid TOML, which is reported when the study is parsed.
    fn texts(&self) -> Vec<Text> {
        let mut found = Vec::new();
        if let Ok(document) = toml_edit::Document::parse(self.text.as_str()) {
            collect(document.as_item(), &mut found);
        }
        found
    }
}

fn collect(item: &toml_edit::Item, found: &mut Vec<Text>) {
    if let Some(table) = item.as_table_like() {
        table.iter().for_each(|(_, item)| collect(item, found));
    } else if let Some(tables) = item.as_array_of_tables() {
        tables.iter().for_each(|table| collect(&toml_edit::Item::Table(table.clone()), found));
    } else if let Some(list) = item.as_array() {
        list.iter().for_each(|value| collect(&toml_edit::Item::Value(value.clone()), found));
    } else if let Some(text) = item.as_str() {
        found.push((text.to_owned(), item.span()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_that_lie_in_this_folder() {
        // Tests run in the folder of their crate.
        let study = |value: &str| {
            StudyText::new("s.toml", &format!("name = \"Cargo\"\n[workloads.w]\ntrace = {value}\n"))
        };
        let files = |value: &str| study(value).relative_files();
        assert_eq!(files("\"Cargo.toml\"").expect("files"), ["Cargo.toml"]);
        let both = files("[\"src/lib.rs\", \"./Cargo.toml\", \"src/lib.rs\"]").expect("files");
        assert_eq!(both, ["src/lib.rs", "./Cargo.toml"]);
        for none in ["\"/etc/passwd\"", "\"src\"", "\"no.such\"", "7"] {
            assert_eq!(files(none).expect("files"), [""; 0], "{none}");
        }
        let outside = files("\"../study/Cargo.toml\"").expect_err("outside").to_string();
        assert!(outside.contains("lies outside of this folder"), "{outside}");
        assert!(outside.contains("s.toml"), "{outside}");
    }
}
