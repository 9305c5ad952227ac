//! RocksDB's OPTIONS files: a user's own, and the one that RocksDB writes next to its data with the
//! options in force.

use std::fmt;
use std::fs;
use std::path::Path;

/// The options of one database, of its default column family and of its block-based table, in
/// the order of the file, by RocksDB's names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OptionsFile {
    /// The version of the library that wrote the file.
    pub version: Option<String>,
    database: Vec<(String, String)>,
    table: Vec<(String, String)>,
}

impl OptionsFile {
    /// Reads the text of a file. Sections of other column families are refused: a database has
    /// one here.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut file = Self::default();
        let mut section = String::new();
        for (at, line) in text.lines().enumerate() {
            let line = without_comment(line).trim();
            let here = format!("line {}", at + 1);
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').ok_or(format!("{here}: `]` is missing"))?;
                section = name.trim().to_owned();
                continue;
            }
            let (name, value) = line
                .split_once('=')
                .map(|(name, value)| (name.trim(), unescaped(value.trim())))
                .ok_or(format!("{here}: `{line}` is not `option=value`"))?;
            match section.as_str() {
                "Version" if name == "rocksdb_version" => file.version = Some(value),
                "Version" => {}
                "DBOptions" => file.set(name, &value),
                // Redundant; repeated, it would reset the options of the table.
                r#"CFOptions "default""# if name == "table_factory" => {
                    if value != "BlockBasedTable" {
                        return Err(format!("{here}: `{value}` is not supported"));
                    }
                }
                r#"CFOptions "default""# => file.set(name, &value),
                r#"TableOptions/BlockBasedTable "default""# => file.set_table(name, &value),
                "" => return Err(format!("{here}: `{line}` is before the first [section]")),
                other => return Err(format!("{here}: section [{other}] is not supported")),
            }
        }
        Ok(file)
    }

    /// The file that RocksDB wrote last in a database's directory.
    pub fn in_force(database: &Path) -> Option<Self> {
        let number = |name: &str| name.strip_prefix("OPTIONS-")?.parse::<u64>().ok();
        let newest = fs::read_dir(database)
            .ok()?
            .filter_map(|entry| Some((number(entry.as_ref().ok()?.file_name().to_str()?)?, entry)))
            .max_by_key(|(number, _)| *number)?;
        Self::parse(&fs::read_to_string(newest.1.ok()?.path()).ok()?).ok()
    }

    /// An option that puts files outside the database's directory, where kvmeter would neither
    /// count nor clear them.
    pub fn leads_elsewhere(&self) -> Option<&str> {
        let elsewhere = |(name, value): &&(String, String)| {
            ["wal_dir", "db_log_dir", "db_paths", "cf_paths"].contains(&name.as_str())
                && !["", "{}"].contains(&value.as_str())
        };
        self.database.iter().find(elsewhere).map(|(name, _)| name.as_str())
    }

    /// The value of an option of the database or of its column family.
    pub fn get(&self, name: &str) -> Option<&str> {
        find(&self.database, name)
    }

    /// The value of an option of the table.
    pub fn get_table(&self, name: &str) -> Option<&str> {
        find(&self.table, name)
    }

    pub fn set(&mut self, name: &str, value: &str) {
        replace(&mut self.database, name, value);
    }

    pub fn set_table(&mut self, name: &str, value: &str) {
        replace(&mut self.table, name, value);
    }
}

fn find<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn replace(options: &mut Vec<(String, String)>, name: &str, value: &str) {
    options.retain(|(known, _)| known != name);
    options.push((name.to_owned(), value.to_owned()));
}

/// As RocksDB reads options from a string: `a=1;b={c=2;d=3}`.
impl fmt::Display for OptionsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.database {
            write!(f, "{name}={};", braced(value))?;
        }
        if !self.table.is_empty() {
            f.write_str("block_based_table_factory={")?;
            for (name, value) in &self.table {
                write!(f, "{name}={};", braced(value))?;
            }
            f.write_str("};")?;
        }
        Ok(())
    }
}

/// A value that holds a separator is taken whole only in braces.
fn braced(value: &str) -> String {
    let bare = value.starts_with('{') || !value.contains([';', '=']);
    if bare { value.to_owned() } else { format!("{{{value}}}") }
}

/// The line up to a `#` that is not escaped.
fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            '#' if !escaped => return &line[..at],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

fn unescaped(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# A comment
[Version]
  rocksdb_version=11.8.1
[DBOptions]
  max_background_jobs=6  # another
  wal_dir=/a\#b\:c
[CFOptions "default"]
  compression=kZSTD
  table_factory=BlockBasedTable
  compression_opts={level=3;strategy=0;}
[TableOptions/BlockBasedTable "default"]
  block_size=16384
"#;

    #[test]
    fn a_file_becomes_one_string() {
        let mut file = OptionsFile::parse(TEXT).unwrap();
        assert_eq!(file.version.as_deref(), Some("11.8.1"));
        assert_eq!(file.get("max_background_jobs"), Some("6"));
        assert_eq!(file.get("wal_dir"), Some("/a#b:c"));
        assert_eq!(file.get_table("block_size"), Some("16384"));
        file.set("compression", "kNoCompression");
        file.set_table("no_block_cache", "true");
        assert_eq!(
            file.to_string(),
            "max_background_jobs=6;wal_dir=/a#b:c;compression_opts={level=3;strategy=0;};\
             compression=kNoCompression;\
             block_based_table_factory={block_size=16384;no_block_cache=true;};"
        );
    }

    #[test]
    fn detects_files_outside_the_directory() {
        assert_eq!(OptionsFile::parse(TEXT).unwrap().leads_elsewhere(), Some("wal_dir"));
        let text = "[DBOptions]\nwal_dir=\ndb_log_dir={}\nmax_open_files=9";
        assert_eq!(OptionsFile::parse(text).unwrap().leads_elsewhere(), None);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, why) in [
            ("a=1", "line 1: `a=1` is before the first [section]"),
            ("[DBOptions]\nnonsense", "line 2: `nonsense` is not `option=value`"),
            ("[DBOptions", "line 1: `]` is missing"),
            ("[CFOptions \"x\"]\na=1", "line 2: section [CFOptions \"x\"] is not supported"),
            (
                "[CFOptions \"default\"]\ntable_factory=PlainTable",
                "line 2: `PlainTable` is not supported",
            ),
        ] {
            assert_eq!(OptionsFile::parse(text).unwrap_err(), why);
        }
    }
}
