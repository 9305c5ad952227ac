//! Puts values into the text of a study.

use crate::error::StudyError;

/// Carries out one `table.key=value`, whose value is TOML or, failing that, text.
pub(super) fn assign(root: &mut toml_edit::Table, assignment: &str) -> Result<(), StudyError> {
    let wrong = |why: &str| StudyError::Request(format!("--set {assignment}: {why}"));
    let (path, text) = assignment
        .split_once('=')
        .ok_or_else(|| wrong("write it as `table.key=value`, e.g. `data.records=1M`"))?;
    let value: toml_edit::Value =
        text.trim().parse().unwrap_or_else(|_| toml_edit::Value::from(text.trim()));
    put(root, path, value).map_err(|why| wrong(&why))
}

/// Puts a value at a dotted path; tables on the way are made.
pub(super) fn put(
    root: &mut toml_edit::Table,
    path: &str,
    mut value: toml_edit::Value,
) -> Result<(), String> {
    let mut keys: Vec<&str> = path.trim().split('.').collect();
    let last = keys.pop().filter(|key| !key.is_empty()).ok_or("the key is empty")?;
    let mut table: &mut dyn toml_edit::TableLike = root;
    for key in keys {
        let item = table.entry(key).or_insert(toml_edit::Item::Table(toml_edit::Table::new()));
        table =
            item.as_table_like_mut().ok_or_else(|| format!("`{key}` is a value, not a table"))?;
    }
    if let Some(old) = table.get(last).and_then(toml_edit::Item::as_value) {
        // A comment behind the value stays.
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(last, toml_edit::Item::Value(value));
    Ok(())
}

/// The same value for a document that is edited.
pub(super) fn edited(value: &toml::Value) -> toml_edit::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(yes) => (*yes).into(),
        toml::Value::Datetime(time) => (*time).into(),
        toml::Value::Array(list) => list.iter().map(edited).collect(),
        toml::Value::Table(table) => {
            table.iter().map(|(key, value)| (key.as_str(), edited(value))).collect()
        }
    }
}
