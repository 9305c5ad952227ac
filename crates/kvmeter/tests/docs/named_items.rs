//! Types and functions that the pages for developers name exist.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::tree::{documents, root};

/// The pages that name items of the code.
const PAGES: [&str; 3] = ["docs/architecture.md", "docs/adding-a-", "docs/glossary.md"];

/// What the examples of these pages are about, which is yet to be written.
const EXAMPLES: [&str; 3] = ["Mine", "MineSession", "Numad"];

#[test]
fn items_that_pages_for_developers_name_exist() {
    let words = words_of_the_code();
    let mut missing = Vec::new();
    for document in documents() {
        let path = document.path.display().to_string();
        if !PAGES.iter().any(|page| path.starts_with(page)) {
            continue;
        }
        let mut named: Vec<(usize, String)> = Vec::new();
        for block in document.blocks() {
            let items = block.code.iter().filter_map(|code| item(code));
            named.extend(items.map(|item| (block.line, item.to_owned())));
        }
        for (line, text) in document.rust() {
            named.extend(items_of_an_example(&text).map(|item| (line, item.to_owned())));
        }
        let unknown = named.iter().filter(|(_, item)| !words.contains(item));
        missing.extend(unknown.map(|(line, item)| format!("{path}:{line}: {item}")));
    }
    assert!(missing.is_empty(), "named, but nowhere in the code:\n{}", missing.join("\n"));
}

/// Types, and functions that are defined or called by a path.
fn items_of_an_example(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split_once("//").map_or(line, |(code, _)| code);
    let code = code.split_once("/*").map_or(code, |(code, _)| code);
    let mut before = "";
    let text = code
        .split('"')
        .step_by(2)
        .flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c))));
    text.filter(|word| !word.is_empty()).filter_map(move |word| {
        let is_defined = std::mem::replace(&mut before, word) == "fn";
        let name = if is_defined { Some(word) } else { item(word) };
        name.filter(|name| !EXAMPLES.contains(name) && !word.starts_with("mine::"))
    })
}

/// The last name of a path such as `host::probe::Signal`, where it is a type or a constant.
fn item(code: &str) -> Option<&str> {
    let code = code.trim_end_matches("()").trim_end_matches(['!', ':']);
    let name = code.rsplit("::").next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let is_path = code.contains("::");
    let is_type = name.starts_with(|c: char| c.is_ascii_uppercase())
        && (name.contains('_') || name.contains(|c: char| c.is_ascii_lowercase()));
    (code.chars().all(plain) && !name.is_empty() && (is_path || is_type)).then_some(name)
}

fn words_of_the_code() -> HashSet<String> {
    let mut words = HashSet::new();
    rust_below(&root().join("crates"), &mut words);
    words
}

fn rust_below(folder: &Path, words: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            // The names of modules are items too.
            words.insert(name.to_string_lossy().into_owned());
            rust_below(&path, words);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            words.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
            let text = fs::read_to_string(&path).unwrap();
            let part = |c: char| !(c.is_alphanumeric() || c == '_');
            words.extend(text.split(part).filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
}
