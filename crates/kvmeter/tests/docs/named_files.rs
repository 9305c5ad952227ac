//! Files that documents name exist.

use std::path::{Path, PathBuf};

use crate::markdown::Block;
use crate::tree::{document, documents, root};

#[test]
fn files_that_documents_name_exist() {
    let mut missing = Vec::new();
    for document in documents() {
        // Decisions tell of the day on which they were taken.
        if document.path.starts_with("docs/decisions") {
            continue;
        }
        for block in document.blocks() {
            for path in named(&block).filter(|path| !root().join(path).exists()) {
                let (file, line) = (document.path.display(), block.line);
                missing.push(format!("{file}:{line}: {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "named, but not there:\n{}", missing.join("\n"));
}

#[test]
fn each_of_the_ten_tasks_says_which_files_it_touches() {
    let section = document("docs/architecture.md").section("Ten tasks");
    let mut tasks: Vec<(String, usize)> = Vec::new();
    for block in section {
        if block.heading.is_some() {
            tasks.push((block.literal, 0));
        } else if let Some((_, files)) = tasks.last_mut() {
            *files += named(&block).filter(|path| root().join(path).is_file()).count();
        }
    }
    assert_eq!(tasks.len(), 10, "tasks: {tasks:?}");
    let without: Vec<_> = tasks.iter().filter(|(_, files)| *files == 0).collect();
    assert!(without.is_empty(), "no file is named in {without:?}");
}

#[test]
fn each_crate_of_the_architecture_says_where_to_begin() {
    for block in document("docs/architecture.md").section("The crates") {
        let begins = block.code.iter().any(|code| code.contains("/src/"));
        assert!(begins || block.heading.is_some(), "no file in: {}", block.literal);
    }
}

/// The files in code spans, as paths from the top of the tree or from `crates/`
/// (`drive/src/plan.rs`).
fn named(block: &Block) -> impl Iterator<Item = PathBuf> {
    block.code.iter().filter_map(|code| path(code))
}

fn path(code: &str) -> Option<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let (first, rest) = code.split_once('/')?;
    let is_file = rest.rsplit('/').next().is_some_and(|name| name.contains('.'));
    if !is_file || !code.chars().all(plain) {
        return None;
    }
    const FOLDERS: [&str; 9] = [
        "crates",
        "docs",
        "studies",
        "platforms",
        "benches",
        "scripts",
        "fuzz",
        "packaging",
        "python",
    ];
    if FOLDERS.contains(&first) {
        return Some(code.into());
    }
    let of_a_crate = ["src/", "tests/", "benches/", "build.rs", "Cargo.toml"];
    of_a_crate.iter().any(|start| rest.starts_with(start)).then(|| Path::new("crates").join(code))
}
