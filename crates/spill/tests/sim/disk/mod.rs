//! An in-memory file system that loses, tears and refuses whatever a real one may, repeatably from
//! a seed.
//!
//! Every call has a number. Before each, a watcher may take an [image](State::image) of what a
//! power cut or the end of the process would leave, and a [fault](Fault) can be set for any call.
//! Unsynced content survives a power cut sector by sector, and so do lengths and names; at random
//! moments some of it reaches the device.

mod call;
mod content;
mod directory;
mod fault;
mod file;
mod loss;
mod memory;
mod names;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use spill::fs::Fs;

use call::CallTarget;
pub use call::{Call, Kind};
use content::Content;
pub use fault::Fault;
pub use loss::{End, Loss};
use names::{Names, Node};
pub use state::State;

/// More calls than this mean an endless retry in the engine.
const MAX_CALLS: u64 = 3_000_000;

/// What a device writes atomically, in bytes.
pub const SECTOR: usize = 512;

type Watcher = Box<dyn FnMut(&Call, &State) + Send>;

/// A handle of the disk; clones share it.
#[derive(Clone)]
pub struct Sim {
    disk: Arc<Disk>,
}

struct Disk {
    state: Mutex<State>,
    watcher: Mutex<Option<Watcher>>,
}

impl Sim {
    /// A disk with an empty directory `/disk`.
    pub fn new(seed: u64) -> Sim {
        let mut names = Names::new();
        names.add(Path::new("/disk"), Node::Folder).expect("the root exists");
        names.settle();
        Sim::of(State::new(seed, names))
    }

    pub(super) fn of(state: State) -> Sim {
        Sim { disk: Arc::new(Disk { state: Mutex::new(state), watcher: Mutex::new(None) }) }
    }

    pub fn fs(&self) -> Arc<dyn Fs> {
        Arc::new(self.clone())
    }

    pub fn calls(&self) -> u64 {
        self.disk.state().calls
    }

    /// Starts to record calls.
    pub fn start_trace(&self) {
        self.disk.state().trace = Some(Vec::new());
    }

    pub fn take_trace(&self) -> Vec<Call> {
        self.disk.state().trace.take().unwrap_or_default()
    }

    /// Sets the watcher, which is called before each changing call. It must not call the disk
    /// itself.
    pub fn watch(&self, watcher: impl FnMut(&Call, &State) + Send + 'static) {
        *self.disk.watcher() = Some(Box::new(watcher));
    }

    pub fn unwatch(&self) {
        *self.disk.watcher() = None;
    }

    /// A number between the calls, for watchers and faults.
    pub fn pause(&self) {
        drop(self.disk.enter(Kind::Pause, CallTarget::Path(Path::new(""))));
    }

    /// Makes call `number` fail, if the fault can hit its kind.
    pub fn fail(&self, number: u64, fault: Fault) {
        let mut state = self.disk.state();
        state.fault = Some((number, fault));
        state.fired = None;
    }

    /// The call that failed.
    pub fn fired(&self) -> Option<Call> {
        self.disk.state().fired.clone()
    }

    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.disk.state().capacity = bytes;
    }

    /// In bytes; removed files that are still open count.
    pub fn used(&self) -> usize {
        self.disk.state().used()
    }

    pub fn set_read_only(&self, read_only: bool) {
        self.disk.state().read_only = read_only;
    }

    pub fn image(&self, end: End, seed: u64) -> Sim {
        self.disk.state().image(end, seed)
    }

    /// All files, in order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.disk.state().names.files().map(|(path, _)| path.clone()).collect()
    }

    /// All files with their content.
    pub fn contents(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        self.files().into_iter().map(|path| (path.clone(), self.content(&path))).collect()
    }

    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.disk.state();
        let id = state.names.file(path).ok()?;
        Some(state.files[&id].bytes())
    }

    /// Puts a durable file there, unnoticed by the engine.
    pub fn put(&self, path: &Path, content: Vec<u8>) {
        let mut state = self.disk.state();
        let id = state.names.file(path).unwrap_or_else(|_| {
            let id = state.next_file;
            state.next_file += 1;
            state.names.add(path, Node::File(id)).expect("its directory exists");
            state.names.settle();
            id
        });
        state.files.insert(id, Content::of(content));
    }

    /// Removes a file, unnoticed by the engine.
    pub fn take(&self, path: &Path) {
        let mut state = self.disk.state();
        state.names.remove(path).expect("it is there");
        state.names.settle();
    }
}

impl Disk {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watcher(&self) -> MutexGuard<'_, Option<Watcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a call; returns the fault set for it.
    pub(super) fn enter(
        &self,
        kind: Kind,
        place: CallTarget<'_>,
    ) -> (MutexGuard<'_, State>, Option<Fault>) {
        let mut watcher = self.watcher();
        let mut state = self.state();
        let path = match place {
            CallTarget::Path(path) => path.to_owned(),
            CallTarget::File(id) => state.file(id).name.clone(),
        };
        let call = Call { number: state.calls, kind, path };
        if kind.changes() {
            if let Some(watcher) = watcher.as_mut() {
                watcher(&call, &state);
            }
            state.write_back_at_random();
        }
        state.calls += 1;
        assert!(state.calls < MAX_CALLS, "endless calls: {call}");
        let fault = match state.fault {
            Some((number, fault)) if number == call.number && fault.can_hit(kind) => {
                state.fired = Some(call.clone());
                Some(fault)
            }
            _ => None,
        };
        if let Some(trace) = &mut state.trace {
            trace.push(call);
        }
        (state, fault)
    }

    /// The same for a call that cannot half succeed.
    pub(super) fn begin<'a>(
        &self,
        kind: Kind,
        place: impl Into<CallTarget<'a>>,
    ) -> io::Result<MutexGuard<'_, State>> {
        let (state, fault) = self.enter(kind, place.into());
        if let Some(fault) = fault {
            return Err(fault.error());
        }
        Ok(state)
    }

    /// The same for a call that writes.
    pub(super) fn begin_change(
        &self,
        kind: Kind,
        path: &Path,
    ) -> io::Result<MutexGuard<'_, State>> {
        let state = self.begin(kind, path)?;
        if state.read_only {
            return Err(Errno::ROFS.into());
        }
        Ok(state)
    }
}
