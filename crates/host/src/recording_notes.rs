//! What was read from a machine, to be written as a recorded machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The recording of what was read from a machine.
#[derive(Debug, Default)]
pub struct RecordingNotes(Mutex<BTreeMap<String, TreeEntry>>);

#[derive(Debug, Clone, PartialEq)]
enum TreeEntry {
    Folder,
    /// It exists; its content was not read.
    File,
    Text(String),
    /// Bytes by offset.
    Bytes(BTreeMap<u64, Vec<u8>>),
    Link(String),
    Failure(String),
}

impl TreeEntry {
    /// Of two entries for one path the one with the higher rank stays.
    fn rank(&self) -> u8 {
        match self {
            TreeEntry::Folder | TreeEntry::File | TreeEntry::Failure(_) => 0,
            TreeEntry::Text(_) | TreeEntry::Bytes(_) | TreeEntry::Link(_) => 1,
        }
    }
}

impl RecordingNotes {
    pub(crate) fn entry(&self, path: &str, is_folder: bool) {
        self.put(path, if is_folder { TreeEntry::Folder } else { TreeEntry::File });
    }

    pub(crate) fn text(&self, path: &str, text: &str) {
        self.put(path, TreeEntry::Text(text.to_owned()));
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        self.put(path, TreeEntry::Link(target.to_owned()));
    }

    pub(crate) fn failure(&self, path: &str, why: String) {
        self.put(path, TreeEntry::Failure(why));
    }

    pub(crate) fn bytes(&self, path: &str, offset: u64, bytes: &[u8]) {
        if is_of_a_process(path) {
            return;
        }
        let mut notes = self.lock();
        let entry = notes.entry(path.to_owned()).or_insert(TreeEntry::File);
        match entry {
            TreeEntry::Bytes(parts) => drop(parts.insert(offset, bytes.to_vec())),
            other => *other = TreeEntry::Bytes(BTreeMap::from([(offset, bytes.to_vec())])),
        }
    }

    fn put(&self, path: &str, entry: TreeEntry) {
        if is_of_a_process(path) {
            return;
        }
        let path = path.trim_end_matches('/');
        let mut notes = self.lock();
        // The first reading stays, so that the recording is of one moment.
        if notes.get(path).is_none_or(|before| before.rank() < entry.rank()) {
            notes.insert(path.to_owned(), entry);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TreeEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it as a text that [`unpack`](crate::recorded::unpack) takes, behind `title` as comment. Each of `secrets`
    /// is replaced by `...`, and passwords of addresses are starred.
    pub fn to_text(&self, title: &str, secrets: &[String]) -> String {
        let mut text = String::new();
        for line in title.lines() {
            let _ = writeln!(text, "# {line}");
        }
        for (path, entry) in &*self.lock() {
            let _ = match entry {
                TreeEntry::Folder => writeln!(text, "{path}/"),
                TreeEntry::File => writeln!(text, "{path} ="),
                TreeEntry::Failure(why) => writeln!(text, "# {why}"),
                TreeEntry::Link(target) => writeln!(text, "{path} -> {target}"),
                TreeEntry::Text(content) => write_text(&mut text, path, content),
                TreeEntry::Bytes(parts) => parts.iter().try_for_each(|(offset, bytes)| {
                    let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02X}")).collect();
                    writeln!(text, "{path} @{offset} = {}", hex.join(" "))
                }),
            };
        }
        for secret in secrets.iter().filter(|secret| secret.len() > 2) {
            text = text.replace(secret.as_str(), "...");
        }
        model::masked(&text).into_owned()
    }
}

fn write_text(text: &mut String, path: &str, content: &str) -> std::fmt::Result {
    // Device trees and DMI end their texts with a zero.
    let content = content.trim_end_matches(['\0', '\n']);
    if !content.contains('\n') {
        return writeln!(text, "{path} = {content}");
    }
    writeln!(text, "{path}:")?;
    content.lines().try_for_each(|line| writeln!(text, "|{line}"))
}

/// Files of other processes are private and short-lived, so they are not recorded.
fn is_of_a_process(path: &str) -> bool {
    path.strip_prefix("/proc/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
