//! Which documents there are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::markdown::Document;

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Every document for readers: those at the top, `docs/`, and a README of a crate or a study.
pub fn documents() -> Vec<Document> {
    let root = root();
    let mut paths: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from).into();
    for folder in ["docs", "crates", "studies", "python"] {
        markdown_below(&root, Path::new(folder), &mut paths);
    }
    paths.sort();
    paths.into_iter().map(|path| Document::read(&root, path)).collect()
}

pub fn document(name: &str) -> Document {
    Document::read(&root(), PathBuf::from(name))
}

fn markdown_below(root: &Path, folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            if name != "target" && name != "src" {
                markdown_below(root, &path, paths);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}
