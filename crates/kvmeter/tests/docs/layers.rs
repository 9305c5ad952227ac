//! The picture of the crates is what Cargo says.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::tree::{document, root};

type Imports = BTreeMap<String, BTreeSet<String>>;

/// Crates of the workspace by their folder, with those that they import outside of tests.
fn imports() -> Imports {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let folder = |path: &serde_json::Value| {
        let path = path.as_str().unwrap().trim_end_matches("/Cargo.toml");
        path.rsplit('/').next().unwrap().to_owned()
    };
    let packages = metadata["packages"].as_array().unwrap();
    let of = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"].is_null() && dependency["path"].is_string())
            .map(|dependency| folder(&dependency["path"]))
            .collect()
    };
    packages.iter().map(|package| (folder(&package["manifest_path"]), of(package))).collect()
}

/// The layers of the picture, the lowest first.
fn layers() -> Vec<Vec<String>> {
    let text = document("docs/architecture.md").text;
    let (_, after) = text.split_once("```text layers\n").expect("a block of layers");
    let (picture, _) = after.split_once("```").unwrap();
    let mut layers: Vec<Vec<String>> = picture
        .lines()
        .filter_map(|line| line.split_once('│'))
        .map(|(_, crates)| crates.split_whitespace().map(str::to_owned).collect())
        .collect();
    layers.reverse();
    layers
}

#[test]
fn each_crate_stands_in_one_layer_and_imports_only_lower_ones() {
    let imports = imports();
    let mut height = BTreeMap::new();
    for (layer, crates) in layers().into_iter().enumerate() {
        for name in crates {
            let before = height.insert(name.clone(), layer);
            assert!(before.is_none(), "{name} stands in two layers");
            assert!(imports.contains_key(&name), "there is no crate {name}");
        }
    }
    for (name, imported) in &imports {
        let own = height.get(name).unwrap_or_else(|| panic!("{name} is not in the picture"));
        for other in imported {
            let below = height.get(other).is_some_and(|other| other < own);
            assert!(below, "{name} imports {other}, which is not below it in the picture");
        }
    }
}

#[test]
fn each_paragraph_of_a_crate_lists_what_it_imports() {
    let mut described = BTreeSet::new();
    let blocks = document("docs/architecture.md").section("The crates");
    let imports = imports();
    for block in blocks.iter().filter(|block| block.heading.is_none()) {
        let name = &block.code[0];
        let real = imports.get(name).unwrap_or_else(|| panic!("there is no crate {name}"));
        let (_, list) = block.literal.rsplit_once("Imports ").unwrap_or_else(|| {
            panic!("the paragraph on {name} does not end with what it imports");
        });
        let list = list.trim_end_matches('.');
        let told: BTreeSet<String> = match list {
            "no sibling" => BTreeSet::new(),
            _ => list.split(", ").map(str::to_owned).collect(),
        };
        assert_eq!(&told, real, "what {name} imports");
        assert!(described.insert(name.clone()), "{name} is described twice");
    }
    let all: BTreeSet<String> = imports.into_keys().collect();
    assert_eq!(described, all, "crates with a paragraph");
}
