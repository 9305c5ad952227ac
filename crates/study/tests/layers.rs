//! Text knows nothing of plans, and what lies beneath both knows neither.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn imports_point_downwards() {
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
        entries.flat_map(below).collect()
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut texts, mut beneath) = (0, 0);
    for file in sources(&src) {
        let name = file.strip_prefix(&src).unwrap();
        let above: &[&str] = match name.iter().next().and_then(|first| first.to_str()) {
            Some("lib.rs" | "plan") => continue,
            Some("text") => &["crate::plan"],
            _ => &["crate::plan", "crate::text"],
        };
        let text = fs::read_to_string(&file).unwrap();
        for layer in above {
            assert!(!text.contains(layer), "{} imports {layer}", name.display());
        }
        *if above.len() == 1 { &mut texts } else { &mut beneath } += 1;
    }
    assert!(texts > 5 && beneath > 5, "{texts} files of text, {beneath} beneath");
}
