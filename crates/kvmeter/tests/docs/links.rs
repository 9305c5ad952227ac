//! Links within the repository lead somewhere.

use std::path::{Component, Path, PathBuf};

use crate::tree::{document, documents, root};

#[test]
fn relative_links_and_anchors_resolve() {
    let mut broken = Vec::new();
    for from in documents() {
        for link in from.links() {
            if let Some(why) = fault(&from.path, &link.target) {
                broken.push(format!(
                    "{}:{}: {} {why}",
                    from.path.display(),
                    link.line,
                    link.target
                ));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn links_of_spill_stay_in_its_folder() {
    let spill = Path::new("crates/spill");
    for from in documents().iter().filter(|document| document.path.starts_with(spill)) {
        let folder = from.path.parent().unwrap();
        for link in from.links().iter().filter(|link| !link.target.contains("://")) {
            let target = normal(&folder.join(&link.target));
            assert!(target.starts_with(spill), "{}: {}", from.path.display(), link.target);
        }
    }
}

#[test]
fn the_book_contains_every_document() {
    let summary: Vec<PathBuf> = document("docs/SUMMARY.md")
        .links()
        .iter()
        .map(|link| normal(&Path::new("docs").join(&link.target)))
        .collect();
    let documents = documents().into_iter().map(|document| document.path);
    let missing: Vec<_> = documents
        .filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md"))
        .filter(|path| !summary.contains(path))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not name {missing:?}");
}

#[test]
fn the_list_of_decisions_is_complete() {
    let listed: Vec<String> =
        document("docs/decisions/README.md").links().into_iter().map(|link| link.target).collect();
    for decision in documents().iter().filter(|file| file.path.starts_with("docs/decisions")) {
        let name = decision.path.file_name().unwrap().to_str().unwrap();
        assert!(
            name == "README.md" || listed.iter().any(|listed| listed == name),
            "docs/decisions/README.md does not list {name}"
        );
    }
}

/// Why a link of this document leads nowhere.
fn fault(from: &Path, target: &str) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => from.to_owned(),
        _ => normal(&from.parent().unwrap().join(file)),
    };
    if !root().join(&path).exists() {
        return Some("does not exist");
    }
    let is_markdown = path.extension().is_some_and(|extension| extension == "md");
    if anchor.is_empty() || !is_markdown {
        return None;
    }
    let anchors = document(path.to_str().unwrap()).anchors();
    (!anchors.iter().any(|there| there == anchor)).then_some("has no such heading")
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}
