//! Where a key of a study comes from that is shown in an error: its file, a scale of it, or a
//! `--set`. Lines of the text in which all are put together are nobody's.

use std::ops::Range;

use toml_edit::Item;

/// A key that was put into a study's text.
#[derive(Debug, Clone)]
pub(super) struct PutKey {
    /// The tables it lies in, and its name.
    path: Vec<String>,
    pub(super) by: PutBy,
}

/// Who put a key into a study's text.
#[derive(Debug, Clone)]
pub(super) enum PutBy {
    /// The assignment of a `--set`.
    Set(String),
    /// The key of a scale, in the file's text.
    Scale(Range<usize>),
}

impl PutKey {
    pub(super) fn new(path: &str, by: PutBy) -> PutKey {
        PutKey { path: path.trim().split('.').map(str::to_owned).collect(), by }
    }

    /// Whether it put what lies at `path`, or made that table.
    fn made(&self, path: &[String], file: &Item) -> bool {
        path.starts_with(&self.path)
            || (self.path.starts_with(path) && item_at(file, path).is_none())
    }
}

/// The place in a file's text of what stands at `span` in the text made of it, and who put it there.
pub(super) fn origin_of<'p>(
    span: &Range<usize>,
    text: &str,
    file: &str,
    put: &'p [PutKey],
) -> (Option<Range<usize>>, Option<&'p PutBy>) {
    let parsed = |text| toml_edit::Document::parse(text).ok();
    let (Some(text), Some(file)) = (parsed(text), parsed(file)) else { return (None, None) };
    let mut nearest = None;
    find_nearest(text.as_item(), span.start, &mut Vec::new(), &mut nearest);
    let Some(Place { path, is_key, .. }) = nearest else { return (None, None) };
    let by = put.iter().rev().find(|put| put.made(&path, file.as_item()));
    let (name, tables) = path.split_last().unzip();
    let table = item_at(file.as_item(), tables.unwrap_or_default());
    let in_file = name.zip(table).and_then(|(name, table)| match is_key {
        true => table.as_table_like()?.key(name)?.span(),
        false => table.get(name.as_str())?.span(),
    });
    (in_file, by.map(|put| &put.by))
}

/// A key or a value that covers a place in a text.
struct Place {
    path: Vec<String>,
    is_key: bool,
    len: usize,
}

/// The shortest key or value that covers `at`.
fn find_nearest(item: &Item, at: usize, path: &mut Vec<String>, nearest: &mut Option<Place>) {
    let Some(table) = item.as_table_like() else { return };
    for (name, value) in table.iter() {
        path.push(name.to_owned());
        let key = table.key(name).and_then(toml_edit::Key::span);
        for (span, is_key) in [(key, true), (value.span(), false)] {
            let Some(span) = span.filter(|span| span.contains(&at)) else { continue };
            if nearest.as_ref().is_none_or(|nearest| span.len() < nearest.len) {
                *nearest = Some(Place { path: path.clone(), is_key, len: span.len() });
            }
        }
        find_nearest(value, at, path, nearest);
        path.pop();
    }
}

fn item_at<'i>(root: &'i Item, path: &[String]) -> Option<&'i Item> {
    path.iter().try_fold(root, |item, key| item.get(key.as_str()))
}
