//! Names on the disk: as they read, and as a power cut may leave them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::Loss;
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    Folder,
    File(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Add(PathBuf, Node),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Node),
}

impl Change {
    fn is_in(&self, folder: &Path) -> bool {
        let is_there = |path: &Path| path.parent() == Some(folder);
        match self {
            Change::Add(path, _) | Change::Remove(path) => is_there(path),
            Change::Rename(from, to, _) => is_there(from) || is_there(to),
        }
    }

    fn make(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Change::Add(path, node) => {
                names.insert(path.clone(), *node);
            }
            Change::Remove(path) => {
                names.remove(path);
            }
            Change::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

#[derive(Clone)]
pub struct Names {
    now: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    /// Changes from durable to current names, in order.
    unsynced: Vec<Change>,
}

impl Names {
    pub fn new() -> Names {
        let root = BTreeMap::from([(PathBuf::from("/"), Node::Folder)]);
        Names { now: root.clone(), durable: root, unsynced: Vec::new() }
    }

    pub fn get(&self, path: &Path) -> io::Result<Node> {
        self.now.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub fn file(&self, path: &Path) -> io::Result<u64> {
        match self.get(path)? {
            Node::File(id) => Ok(id),
            Node::Folder => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub fn children(&self, folder: &Path) -> io::Result<Vec<String>> {
        if self.get(folder)? != Node::Folder {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(self
            .now
            .keys()
            .filter(|path| path.parent() == Some(folder))
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect())
    }

    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, u64)> {
        self.now.iter().filter_map(|(path, node)| match node {
            Node::File(id) => Some((path, *id)),
            Node::Folder => None,
        })
    }

    fn change(&mut self, change: Change) {
        change.make(&mut self.now);
        self.unsynced.push(change);
    }

    fn must_have_directory(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(path);
        match self.get(folder)? {
            Node::Folder => Ok(()),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub fn add(&mut self, path: &Path, node: Node) -> io::Result<()> {
        self.must_have_directory(path)?;
        if self.now.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(Change::Add(path.to_owned(), node));
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.file(from)?;
        self.must_have_directory(to)?;
        if self.get(to).is_ok_and(|node| node == Node::Folder) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.change(Change::Rename(from.to_owned(), to.to_owned(), Node::File(id)));
        Ok(())
    }

    pub fn sync(&mut self, folder: &Path) -> io::Result<()> {
        if self.get(folder)? != Node::Folder {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        for change in self.unsynced.extract_if(.., |change| change.is_in(folder)) {
            change.make(&mut self.durable);
        }
        Ok(())
    }

    /// Writeback, which may happen at any time: the oldest changes reach the device.
    pub fn sync_some(&mut self, random: &mut Random) {
        let count = random.below(self.unsynced.len() + 1);
        for change in self.unsynced.drain(..count) {
            change.make(&mut self.durable);
        }
    }

    /// Makes everything durable.
    pub fn settle(&mut self) {
        self.durable.clone_from(&self.now);
        self.unsynced.clear();
    }

    pub fn after_power_cut(&self, loss: Loss, random: &mut Random) -> Names {
        let mut names = self.durable.clone();
        for index in loss.survivors(self.unsynced.len(), random) {
            self.unsynced[index].make(&mut names);
        }
        // What is in a lost directory is lost.
        while let Some(orphan) = names
            .keys()
            .find(|path| path.parent().is_some_and(|folder| !names.contains_key(folder)))
            .cloned()
        {
            names.remove(&orphan);
        }
        Names { now: names.clone(), durable: names, unsynced: Vec::new() }
    }

    /// Whether a name leads to the file: now, and after a power cut.
    pub fn has(&self, id: u64) -> (bool, bool) {
        let node = Node::File(id);
        let now = self.now.values().any(|other| *other == node);
        let later = self.durable.values().any(|other| *other == node)
            || self.unsynced.iter().any(|change| match change {
                Change::Add(_, other) | Change::Rename(_, _, other) => *other == node,
                Change::Remove(_) => false,
            });
        (now, later)
    }
}
