//! The simulated disk as the engine's file system.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use spill::fs::{File, Fs, Mode};

use super::content::Content;
use super::file::SimFile;
use super::names::Node;
use super::state::State;
use super::{Disk, Kind, Sim};
use crate::random::Random;

impl Fs for Sim {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.disk.begin(Kind::CreateDir, path)?;
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        for folder in above {
            match state.names.get(folder) {
                Ok(Node::Folder) => {}
                Ok(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(_) if state.read_only => return Err(Errno::ROFS.into()),
                Err(_) => state.names.add(folder, Node::Folder)?,
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.disk.begin(Kind::List, path)?;
        let mut names = state.names.children(path)?;
        // In an arbitrary but repeatable order.
        let mut random = Random::of(state.seed, state.calls);
        for index in (1..names.len()).rev() {
            names.swap(index, random.below(index + 1));
        }
        Ok(names)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn File>> {
        let (kind, writes) = match mode {
            Mode::Read => (Kind::OpenRead, false),
            Mode::Write => (Kind::OpenWrite, true),
            Mode::New => (Kind::OpenNew, true),
        };
        let mut state = self.disk.begin(kind, path)?;
        if writes && state.read_only {
            return Err(Errno::ROFS.into());
        }
        let id = if mode == Mode::New {
            let id = state.next_file;
            state.names.add(path, Node::File(id))?;
            state.next_file += 1;
            state.files.insert(id, Content::empty());
            state.file(id).name = path.to_owned();
            id
        } else {
            state.names.file(path)?
        };
        state.file(id).handles += 1;
        drop(state);
        Ok(Arc::new(SimFile {
            hold: Hold { disk: Arc::clone(&self.disk), id },
            path: path.into(),
            writes,
            blocks: false,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.disk.begin_change(Kind::Rename, from)?;
        let replaced = state.names.file(to).ok();
        state.names.rename(from, to)?;
        let id = state.names.file(to)?;
        state.file(id).name = to.to_owned();
        if let Some(id) = replaced {
            state.reclaim(id);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.disk.begin_change(Kind::Remove, path)?;
        let id = state.names.file(path)?;
        state.names.remove(path)?;
        state.reclaim(id);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.disk.begin_change(Kind::HardLink, to)?;
        let id = state.names.file(from)?;
        state.names.add(to, Node::File(id))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.begin(Kind::SyncDir, path)?.names.sync(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.disk.begin(Kind::Lock, path)?;
        state.names.children(path)?;
        if !state.locked.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        drop(state);
        Ok(Box::new(Lock { disk: Arc::clone(&self.disk), path: path.to_owned() }))
    }

    /// Stricter than required: one holder at a time.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.lock(path)
    }
}

/// Keeps a file open, though its name may go.
pub(super) struct Hold {
    pub(super) disk: Arc<Disk>,
    pub(super) id: u64,
}

impl Hold {
    pub(super) fn another(&self, state: &mut State) -> Hold {
        state.file(self.id).handles += 1;
        Hold { disk: Arc::clone(&self.disk), id: self.id }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        state.file(self.id).handles -= 1;
        state.reclaim(self.id);
    }
}

struct Lock {
    disk: Arc<Disk>,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}
