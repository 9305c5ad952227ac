//! A file system in memory that loses, tears and refuses what a real one may, and does it again
//! from the same seed.
//!
//! Every call has a number. Before each, a watcher may take an [image](State::image) of what a
//! power cut or the end of the process would leave there; a [fault](Fault) can be set for any.
//! Content that was not synced survives a power cut or not in each sector by itself, and so do
//! lengths and names; at random moments some of it reaches the device unasked.

mod content;
mod fault;
mod memory;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use spill::fs::{Access, File, Fs, Map, Mode, Pages};

use crate::random::Random;
use content::Content;
pub use fault::Fault;
use names::{Names, Node};

/// So many calls are no test any more, but an engine that tries again without end.
const MOST_CALLS: u64 = 3_000_000;

/// What a device writes as a whole or not at all, in bytes.
pub const SECTOR: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    CreateDir,
    List,
    OpenNew,
    OpenWrite,
    OpenRead,
    Rename,
    Remove,
    HardLink,
    SyncDir,
    Lock,
    Len,
    SetLen,
    Allocate,
    Read,
    Write,
    Sync,
    Map,
    Bring,
    /// No call: the test itself asks for a number.
    Pause,
}

impl Kind {
    /// Whether something may be different on the disk afterwards, or may have changed in a
    /// mapping since the last one.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Kind::List | Kind::OpenWrite | Kind::OpenRead | Kind::Len | Kind::Read | Kind::Bring
        )
    }
}

/// One call, to say where something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub number: u64,
    pub kind: Kind,
    pub path: PathBuf,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}, {:?} {}", self.number, self.kind, self.path.display())
    }
}

/// Which part of what was not synced a power cut takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Everything,
    Nothing,
    /// Each piece survives by itself so many times in eight.
    Some(usize),
    /// What came later has overtaken what came before.
    Earlier,
    /// Each file, and each change of names, as a whole or not at all.
    Files,
}

impl Loss {
    pub const ALL: [Loss; 7] = [
        Loss::Everything,
        Loss::Nothing,
        Loss::Some(4),
        Loss::Some(7),
        Loss::Some(1),
        Loss::Earlier,
        Loss::Files,
    ];

    /// The indexes, of so many pieces, that survive.
    fn kept(self, pieces: usize, random: &mut Random) -> Vec<usize> {
        match self {
            Loss::Everything => Vec::new(),
            Loss::Nothing => (0..pieces).collect(),
            Loss::Some(eighths) => (0..pieces).filter(|_| random.chance(eighths, 8)).collect(),
            Loss::Earlier => (random.below(pieces + 1)..pieces).collect(),
            Loss::Files if random.chance(1, 2) => (0..pieces).collect(),
            Loss::Files => Vec::new(),
        }
    }
}

/// How everything ends at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process dies: its stores and writes stay, synced or not.
    Kill,
    PowerCut(Loss),
}

/// See [`State::stores`].
pub struct Stores(BTreeMap<u64, Vec<u8>>);

type Watcher = Box<dyn FnMut(&Call, &State) + Send>;

/// A handle on the disk; clones are handles on the same one.
#[derive(Clone)]
pub struct Sim {
    disk: Arc<Disk>,
}

struct Disk {
    state: Mutex<State>,
    watcher: Mutex<Option<Watcher>>,
}

pub struct State {
    seed: u64,
    calls: u64,
    /// Of each call, while it is asked for.
    trace: Option<Vec<Call>>,
    fault: Option<(u64, Fault)>,
    fired: Option<Call>,
    /// In bytes; none: without end.
    capacity: Option<usize>,
    read_only: bool,
    names: Names,
    files: BTreeMap<u64, Content>,
    next_file: u64,
    locked: BTreeSet<u64>,
}

impl Sim {
    /// A disk with an empty folder `/disk`.
    pub fn new(seed: u64) -> Sim {
        let mut names = Names::new();
        names.add(Path::new("/disk"), Node::Folder).expect("the root is there");
        names.settle();
        Sim::of(State {
            seed,
            calls: 0,
            trace: None,
            fault: None,
            fired: None,
            capacity: None,
            read_only: false,
            names,
            files: BTreeMap::new(),
            next_file: 0,
            locked: BTreeSet::new(),
        })
    }

    fn of(state: State) -> Sim {
        Sim { disk: Arc::new(Disk { state: Mutex::new(state), watcher: Mutex::new(None) }) }
    }

    pub fn fs(&self) -> Arc<dyn Fs> {
        Arc::new(self.clone())
    }

    pub fn calls(&self) -> u64 {
        self.disk.state().calls
    }

    /// From now on, calls are written down.
    pub fn start_trace(&self) {
        self.disk.state().trace = Some(Vec::new());
    }

    pub fn take_trace(&self) -> Vec<Call> {
        self.disk.state().trace.take().unwrap_or_default()
    }

    /// `watcher` is called before each call that changes something, until it is replaced. It
    /// must not call the disk itself.
    pub fn watch(&self, watcher: impl FnMut(&Call, &State) + Send + 'static) {
        *self.disk.watcher() = Some(Box::new(watcher));
    }

    pub fn unwatch(&self) {
        *self.disk.watcher() = None;
    }

    /// A number between the calls, for watchers and faults.
    pub fn pause(&self) {
        drop(self.disk.enter(Kind::Pause, Place::Path(Path::new(""))));
    }

    /// Call `number` goes wrong, if the fault can hit its kind.
    pub fn fail(&self, number: u64, fault: Fault) {
        let mut state = self.disk.state();
        state.fault = Some((number, fault));
        state.fired = None;
    }

    /// The call that went wrong.
    pub fn fired(&self) -> Option<Call> {
        self.disk.state().fired.clone()
    }

    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.disk.state().capacity = bytes;
    }

    /// In bytes; files that are removed and still open count.
    pub fn used(&self) -> usize {
        self.disk.state().used()
    }

    pub fn set_read_only(&self, read_only: bool) {
        self.disk.state().read_only = read_only;
    }

    pub fn image(&self, end: End, seed: u64) -> Sim {
        self.disk.state().image(end, seed)
    }

    /// The files, in order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.disk.state().names.files().map(|(path, _)| path.clone()).collect()
    }

    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.disk.state();
        let id = state.names.file(path).ok()?;
        Some(state.files[&id].bytes())
    }

    /// Puts a file there behind everybody's back, on the device at once.
    pub fn put(&self, path: &Path, content: Vec<u8>) {
        let mut state = self.disk.state();
        let id = state.names.file(path).unwrap_or_else(|_| {
            let id = state.next_file;
            state.next_file += 1;
            state.names.add(path, Node::File(id)).expect("its folder is there");
            state.names.settle();
            id
        });
        state.files.insert(id, Content::of(content));
    }

    /// Takes a file away behind everybody's back.
    pub fn take(&self, path: &Path) {
        let mut state = self.disk.state();
        state.names.remove(path).expect("it is there");
        state.names.settle();
    }
}

impl State {
    /// The disk as the next process finds it, for a new [`Sim`].
    pub fn image(&self, end: End, seed: u64) -> Sim {
        let mut random = Random::of(seed, self.calls);
        let mut names = match end {
            End::Kill => self.names.clone(),
            End::PowerCut(loss) => self.names.after_power_cut(loss, &mut random),
        };
        let files = self
            .files
            .iter()
            .filter(|(id, _)| names.has(**id) != (false, false))
            .map(|(id, content)| {
                let content = match end {
                    End::Kill => content.after_kill(),
                    End::PowerCut(loss) => content.after_power_cut(loss, &mut random),
                };
                (*id, content)
            })
            .collect();
        if matches!(end, End::PowerCut(_)) {
            names.settle();
        }
        Sim::of(State {
            seed,
            calls: 0,
            trace: None,
            fault: None,
            fired: None,
            capacity: self.capacity,
            read_only: self.read_only,
            names,
            files,
            next_file: self.next_file,
            locked: BTreeSet::new(),
        })
    }

    /// What is in the mappings for writing, by file.
    pub fn stores(&self) -> Stores {
        let mapped = self.files.iter().filter(|(_, file)| file.writable_maps > 0);
        Stores(mapped.map(|(id, file)| (*id, file.bytes())).collect())
    }

    /// What a process leaves that dies while it stores into its mappings: as [`End::Kill`], but
    /// of the stores since `before`, which no call came between, only a part.
    pub fn torn_image(&self, before: &Stores, seed: u64) -> Sim {
        let image = self.image(End::Kill, seed);
        let mut random = Random::of(seed, self.calls);
        for (id, bytes) in &before.0 {
            if let Some(content) = image.disk.state().files.get_mut(id) {
                content.tear_stores(bytes, &mut random);
            }
        }
        image
    }

    fn used(&self) -> usize {
        self.files
            .iter()
            .filter(|(id, content)| content.handles > 0 || self.names.has(**id).0)
            .map(|(_, content)| content.space())
            .sum()
    }

    /// How many of so many bytes at `part` have their place or can get it.
    fn room_for(&self, content: &Content, part: Range<usize>) -> usize {
        let Some(capacity) = self.capacity else { return part.len() };
        let free = capacity.saturating_sub(self.used());
        if content.space_for(part.clone()) <= free {
            return part.len();
        }
        let mut end = part.start;
        while end < part.end {
            let next = part.end.min((end / content::BLOCK + 1) * content::BLOCK);
            if content.space_for(part.start..next) > free {
                break;
            }
            end = next;
        }
        end - part.start
    }

    fn file(&mut self, id: u64) -> &mut Content {
        self.files.get_mut(&id).expect("open files are kept")
    }

    /// Forgets a file that nobody has and no name leads to.
    fn reclaim(&mut self, id: u64) {
        if self.files.get(&id).is_some_and(|file| file.handles == 0)
            && self.names.has(id) == (false, false)
        {
            self.files.remove(&id);
        }
    }

    fn work_in_the_background(&mut self) {
        let mut random = Random::of(self.seed, self.calls);
        if random.chance(1, 16) && !self.files.is_empty() {
            let index = random.below(self.files.len());
            if let Some(file) = self.files.values_mut().nth(index) {
                file.sync_some(&mut random);
            }
        }
        if random.chance(1, 32) {
            self.names.sync_some(&mut random);
        }
    }
}

/// What a call is for.
#[derive(Clone, Copy)]
enum Place<'a> {
    Path(&'a Path),
    /// Its name may have changed since it was opened.
    File(u64),
}

impl<'a> From<&'a Path> for Place<'a> {
    fn from(path: &'a Path) -> Place<'a> {
        Place::Path(path)
    }
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watcher(&self) -> MutexGuard<'_, Option<Watcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a call; what is set to go wrong with it.
    fn enter(&self, kind: Kind, place: Place<'_>) -> (MutexGuard<'_, State>, Option<Fault>) {
        let mut watcher = self.watcher();
        let mut state = self.state();
        let path = match place {
            Place::Path(path) => path.to_owned(),
            Place::File(id) => state.file(id).name.clone(),
        };
        let call = Call { number: state.calls, kind, path };
        if kind.changes() {
            if let Some(watcher) = watcher.as_mut() {
                watcher(&call, &state);
            }
            state.work_in_the_background();
        }
        state.calls += 1;
        assert!(state.calls < MOST_CALLS, "calls without end: {call}");
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

    /// As above, for a call that has no half of it to do when it goes wrong.
    fn begin<'a>(
        &self,
        kind: Kind,
        place: impl Into<Place<'a>>,
    ) -> io::Result<MutexGuard<'_, State>> {
        let (state, fault) = self.enter(kind, place.into());
        if let Some(fault) = fault {
            return Err(fault.error());
        }
        Ok(state)
    }

    /// As above, for a call that writes.
    fn begin_change(&self, kind: Kind, path: &Path) -> io::Result<MutexGuard<'_, State>> {
        let state = self.begin(kind, path)?;
        if state.read_only {
            return Err(Errno::ROFS.into());
        }
        Ok(state)
    }
}

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
        // In no order, but the same each time.
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
        let mut state = self.disk.begin_change(Kind::Lock, path)?;
        let id = match state.names.file(path) {
            Ok(id) => id,
            Err(_) => {
                let id = state.next_file;
                state.names.add(path, Node::File(id))?;
                state.next_file += 1;
                state.files.insert(id, Content::empty());
                id
            }
        };
        if !state.locked.insert(id) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.file(id).handles += 1;
        drop(state);
        Ok(Box::new(Lock { hold: Hold { disk: Arc::clone(&self.disk), id } }))
    }
}

/// Keeps a file, though its name may go.
struct Hold {
    disk: Arc<Disk>,
    id: u64,
}

impl Hold {
    fn another(&self, state: &mut State) -> Hold {
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
    hold: Hold,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.hold.disk.state().locked.remove(&self.hold.id);
    }
}

struct SimFile {
    hold: Hold,
    path: PathBuf,
    writes: bool,
}

impl SimFile {
    fn begin(&self, kind: Kind) -> io::Result<MutexGuard<'_, State>> {
        self.hold.disk.begin(kind, Place::File(self.hold.id))
    }

    fn must_be_writable(&self) {
        assert!(self.writes, "{} is open for reading and is written", self.path.display());
    }
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.begin(Kind::Len)?.file(self.hold.id).len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.must_be_writable();
        let mut state = self.begin(Kind::SetLen)?;
        let file = state.file(self.hold.id);
        assert_eq!(file.maps, 0, "{} is mapped and gets another length", self.path.display());
        file.set_len(len as usize);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.must_be_writable();
        let mut state = self.begin(Kind::Allocate)?;
        let len = len as usize;
        if state.room_for(&state.files[&self.hold.id], 0..len) < len {
            return Err(Errno::NOSPC.into());
        }
        let file = state.file(self.hold.id);
        file.place(0..len);
        if len > file.len() {
            file.set_len(len);
        }
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut state, fault) = self.hold.disk.enter(Kind::Read, Place::File(self.hold.id));
        let count = match fault {
            None => into.len(),
            Some(Fault::Short) => into.len().div_ceil(2),
            Some(fault) => return Err(fault.error()),
        };
        Ok(state.file(self.hold.id).read(&mut into[..count], offset as usize))
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.must_be_writable();
        let (mut state, fault) = self.hold.disk.enter(Kind::Write, Place::File(self.hold.id));
        let at = offset as usize;
        let count = match fault {
            None => from.len(),
            Some(Fault::Short) => from.len().div_ceil(2),
            Some(fault) => {
                let mut random = Random::of(state.seed, state.calls);
                if fault == Fault::Broken && random.chance(1, 2) {
                    let arrived = random.below(from.len() + 1);
                    state.file(self.hold.id).write(&from[..arrived], at);
                }
                return Err(fault.error());
            }
        };
        let count = state.room_for(&state.files[&self.hold.id], at..at + count);
        if count == 0 && !from.is_empty() {
            return Err(Errno::NOSPC.into());
        }
        state.file(self.hold.id).write(&from[..count], at);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.hold.disk.enter(Kind::Sync, Place::File(self.hold.id));
        let file = state.file(self.hold.id);
        match fault {
            None => {
                file.sync();
                Ok(())
            }
            Some(fault) => {
                file.give_up(matches!(fault, Fault::LostSync { forget: true }));
                Err(fault.error())
            }
        }
    }

    fn start_writeback(&self, _: Range<u64>) {}

    fn map(&self, len: usize, access: Access) -> io::Result<Map> {
        let mut state = self.begin(Kind::Map)?;
        let file = state.file(self.hold.id);
        let path = self.path.display();
        assert!(len > 0, "{path}: nothing is mapped");
        assert!(len <= file.len(), "{path}: {len} bytes are mapped of {}", file.len());
        let writes = access == Access::ReadWrite;
        if writes {
            self.must_be_writable();
            assert!(
                file.can_be_stored_into(len),
                "{path}: mapped for writing, and not all of it has its place on the device"
            );
            file.writable_maps += 1;
        }
        file.maps += 1;
        let start = file.start();
        let pages =
            SimPages { hold: self.hold.another(&mut state), path: self.path.clone(), len, writes };
        drop(state);
        // SAFETY: a mapped file's memory stays where it is, and the file is kept, until the
        // pages are dropped.
        Ok(unsafe { Map::new(start, len, Box::new(pages)) })
    }
}

struct SimPages {
    hold: Hold,
    path: PathBuf,
    len: usize,
    writes: bool,
}

impl Pages for SimPages {
    fn bring(&self, part: Range<usize>) -> io::Result<()> {
        assert!(part.end <= self.len, "{}: brings what is not mapped", self.path.display());
        drop(self.hold.disk.begin(Kind::Bring, Place::File(self.hold.id))?);
        Ok(())
    }
}

impl Drop for SimPages {
    fn drop(&mut self) {
        let mut state = self.hold.disk.state();
        let file = state.file(self.hold.id);
        file.maps -= 1;
        if self.writes {
            file.touch(0..self.len);
            file.writable_maps -= 1;
        }
    }
}
