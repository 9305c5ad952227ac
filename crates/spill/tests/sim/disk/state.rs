//! State of the disk, and the planned events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::content::{BLOCK, Content};
use super::names::Names;
use super::{Call, End, Fault, Sim};
use crate::random::Random;

/// See [`State::stores`].
pub struct Stores(BTreeMap<u64, Vec<u8>>);

pub struct State {
    pub(super) seed: u64,
    pub(super) calls: u64,
    /// All calls, while recording.
    pub(super) trace: Option<Vec<Call>>,
    pub(super) fault: Option<(u64, Fault)>,
    pub(super) fired: Option<Call>,
    /// In bytes; `None`: unlimited.
    pub(super) capacity: Option<usize>,
    pub(super) read_only: bool,
    pub(super) names: Names,
    pub(super) files: BTreeMap<u64, Content>,
    pub(super) next_file: u64,
    pub(super) locked: BTreeSet<PathBuf>,
}

impl State {
    /// A disk without files.
    pub(super) fn new(seed: u64, names: Names) -> State {
        State {
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
        }
    }

    /// The disk as the next process finds it, for a new [`Sim`].
    pub fn image(&self, end: End, seed: u64) -> Sim {
        let mut random = Random::of(seed, self.calls);
        let mut names = match end {
            End::Kill => self.names.clone(),
            End::PowerCut(loss) => self.names.after_power_cut(loss.parts().0, &mut random),
        };
        let files = self
            .files
            .iter()
            .filter(|(id, _)| names.has(**id) != (false, false))
            .map(|(id, content)| {
                let content = match end {
                    End::Kill => content.after_kill(),
                    End::PowerCut(loss) => content.after_power_cut(loss.parts().1, &mut random),
                };
                (*id, content)
            })
            .collect();
        if matches!(end, End::PowerCut(_)) {
            names.settle();
        }
        Sim::of(State {
            capacity: self.capacity,
            read_only: self.read_only,
            files,
            next_file: self.next_file,
            ..State::new(seed, names)
        })
    }

    /// Content of the writable mappings, by file.
    pub fn stores(&self) -> Stores {
        let mapped = self.files.iter().filter(|(_, file)| file.writable_maps > 0);
        Stores(mapped.map(|(id, file)| (*id, file.bytes())).collect())
    }

    /// What a process leaves that dies while storing into its mappings: as [`End::Kill`], but with
    /// only a part of the stores since `before`, with no call between.
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

    pub(super) fn used(&self) -> usize {
        self.files
            .iter()
            .filter(|(id, content)| content.handles > 0 || self.names.has(**id).0)
            .map(|(_, content)| content.space())
            .sum()
    }

    /// How many bytes of `part` are allocated or can be.
    pub(super) fn space_for(&self, content: &Content, part: Range<usize>) -> usize {
        let Some(capacity) = self.capacity else { return part.len() };
        let free = capacity.saturating_sub(self.used());
        if content.space_for(part.clone()) <= free {
            return part.len();
        }
        let mut end = part.start;
        while end < part.end {
            let next = part.end.min((end / BLOCK + 1) * BLOCK);
            if content.space_for(part.start..next) > free {
                break;
            }
            end = next;
        }
        end - part.start
    }

    pub(super) fn file(&mut self, id: u64) -> &mut Content {
        self.files.get_mut(&id).expect("open files are kept")
    }

    /// Drops a file that nobody has open and no name leads to.
    pub(super) fn reclaim(&mut self, id: u64) {
        if self.files.get(&id).is_some_and(|file| file.handles == 0)
            && self.names.has(id) == (false, false)
        {
            self.files.remove(&id);
        }
    }

    pub(super) fn write_back_at_random(&mut self) {
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
