//! The caches of one socket and the traffic between them, the devices and memory.

mod snoop_filter;

use crate::cache::{Cache, Geometry, LINE, LineNumber, Replacement};
use snoop_filter::{SnoopFilter, cores_of};

/// What the caches of a socket are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    pub shared: Geometry,
    pub shared_replacement: Replacement,
    pub private: Geometry,
    pub private_replacement: Replacement,
    /// Entries for one set of the shared cache in the snoop filter.
    pub directory_ways: u32,
    pub cores: usize,
    /// Whatever a private cache holds, the shared one holds too.
    pub inclusive: bool,
    /// Where the shared cache keeps a line that a device wrote once a core has read it.
    pub consumed: ConsumedPolicy,
}

/// What becomes of a line that a device wrote when a core takes it into its private cache.
/// Lines that no device wrote move to the private cache and leave the shared one, unless that
/// is inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumedPolicy {
    /// The shared cache keeps it where it stands.
    Keep,
    /// The shared cache keeps it in one of these ways (Skylake-SP's "inclusive ways"). Of a line
    /// that only a prefetcher took, and of one that no device wrote, a device's next write is a hit
    /// too, but brings it back to the device's own ways.
    Migrate { ways: u32 },
    /// It leaves the shared cache.
    Move,
}

/// How near a core found a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Private,
    Shared,
    /// Another core's private cache.
    Peer,
    Memory,
}

/// Why a core takes a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessReason {
    Read,
    Write,
    Prefetch,
}

/// Lines read from and written to memory, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryLines {
    /// Read because a core missed.
    pub core_reads: u64,
    /// Read because a device did.
    pub device_reads: u64,
    /// Changed lines that had to leave the caches.
    pub write_backs: u64,
    /// Written by a device past the caches.
    pub device_writes: u64,
}

impl MemoryLines {
    pub fn reads(self) -> u64 {
        self.core_reads + self.device_reads
    }

    pub fn writes(self) -> u64 {
        self.write_backs + self.device_writes
    }

    pub fn bytes(self) -> u64 {
        (self.reads() + self.writes()) * LINE
    }
}

/// Lines that a device asked for: those that the caches had, and those that they had not. A write
/// hits only what the shared cache has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hits {
    pub hits: u64,
    pub misses: u64,
}

impl Hits {
    #[inline(always)]
    fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
    }

    pub fn total(self) -> u64 {
        self.hits + self.misses
    }

    /// Between 0 and 1; none where nothing was asked for.
    pub fn rate(self) -> Option<f64> {
        (self.total() > 0).then(|| self.hits as f64 / self.total() as f64)
    }
}

impl std::ops::AddAssign for Hits {
    fn add_assign(&mut self, other: Hits) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

/// Lines that are looked up at a time.
const RUN: usize = 16;

/// Sets, and the ways of them that hold each line.
struct WaySets {
    places: [(u32, u32); RUN],
}

/// All caches of one socket.
#[derive(Debug, Clone)]
pub struct Caches {
    /// A mark says that a device wrote the line last, and that no prefetcher moved it since.
    shared: Cache,
    private: Vec<Cache>,
    snoop_filter: SnoopFilter,
    inclusive: bool,
    consumed: ConsumedPolicy,
    pub memory: MemoryLines,
}

impl Caches {
    /// Empty caches. The geometries are checked, and there are at most 64 cores.
    pub fn new(shape: CacheShape, seed: u64) -> Caches {
        let filter = Geometry { ways: shape.directory_ways, ..shape.shared };
        let private = (0..shape.cores as u64)
            .map(|i| Cache::new(shape.private, shape.private_replacement, seed ^ (i + 2) << 32));
        Caches {
            shared: Cache::new(shape.shared, shape.shared_replacement, seed),
            private: private.collect(),
            snoop_filter: SnoopFilter::new(filter, seed ^ 1 << 32),
            inclusive: shape.inclusive,
            consumed: shape.consumed,
            memory: MemoryLines::default(),
        }
    }

    /// Bytes of memory that the simulation takes.
    pub fn footprint(&self) -> usize {
        let private: usize = self.private.iter().map(Cache::footprint).sum();
        self.shared.footprint() + private + self.snoop_filter.footprint()
    }

    pub fn shared(&self) -> &Cache {
        &self.shared
    }

    pub fn private(&self, core: usize) -> &Cache {
        &self.private[core]
    }

    /// A device writes `lines` lines from `first` on; of the last, less than all of it if `part`.
    /// `ways` are those in which it may allocate, `None` when direct cache access is off.
    pub fn device_write(
        &mut self,
        first: LineNumber,
        lines: u32,
        part: bool,
        ways: Option<u32>,
    ) -> Hits {
        let mut hits = Hits::default();
        let last = first + lines;
        let mut from = first;
        while from < last {
            let run = self.look_ahead(from, last);
            for (line, &(set, seen)) in (from..last).zip(&run.places) {
                let whole = !(part && line + 1 == last);
                let hit = self.device_writes_line(line, set as usize, seen, ways, whole);
                hits.count(hit);
            }
            from += RUN as u32;
        }
        hits
    }

    /// A device reads `lines` lines from `first` on. Nothing moves: a read of a device never
    /// allocates. A line that only a core holds is a hit too: the core gives it.
    pub fn device_read(&mut self, first: LineNumber, lines: u32) -> Hits {
        let mut hits = Hits::default();
        let last = first + lines;
        let mut from = first;
        while from < last {
            let run = self.look_ahead(from, last);
            for (line, &(set, seen)) in (from..last).zip(&run.places) {
                let set = set as usize;
                let here = seen != 0;
                if here {
                    self.shared.touch(set, seen.trailing_zeros());
                }
                let hit = here || self.snoop_filter.holders(set, line) != 0;
                hits.count(hit);
                self.memory.device_reads += u64::from(!hit);
            }
            from += RUN as u32;
        }
        hits
    }

    /// Sets and ways of the next lines, found before anything is changed: independent look-ups
    /// wait for memory at the same time. A function of its own, so that its loops have the registers.
    #[inline(never)]
    fn look_ahead(&self, from: LineNumber, last: LineNumber) -> WaySets {
        let mut run = WaySets { places: [(0, 0); RUN] };
        let count = RUN.min((last - from) as usize);
        let places = &mut run.places[..count];
        self.shared.geometry().sets_from(from, places.iter_mut().map(|(set, _)| set));
        for (line, (set, seen)) in (from..).zip(places) {
            *seen = self.shared.holding(*set as usize, line);
        }
        run
    }

    #[inline(always)]
    fn device_writes_line(
        &mut self,
        line: LineNumber,
        set: usize,
        seen: u32,
        ways: Option<u32>,
        whole: bool,
    ) -> bool {
        let holders = self.snoop_filter.holders(set, line);
        let held = holders != 0;
        if held {
            self.take_back(set, line, holders);
        }
        // What was seen may have been evicted since, but nothing else can have come in.
        let way = seen.trailing_zeros();
        match ways {
            Some(mask) => {
                let found = seen != 0
                    && if self.goes_back(set, way, mask) {
                        self.send_back(set, way, line, mask)
                    } else {
                        // Write update: wherever it stands.
                        self.shared.rewrite(set, way, line)
                    };
                if !found {
                    self.memory.device_reads += u64::from(!whole && !held);
                    self.place(set, line, mask, true, true);
                }
                found
            }
            None => {
                if seen != 0 && self.shared.holds(set, way, line) {
                    self.shared.remove(set, way);
                }
                self.memory.device_writes += 1;
                // What was there is invalid now: nothing was hit.
                false
            }
        }
    }

    /// Whether a line in this way goes to the device's ways when a device writes it.
    #[inline(always)]
    fn goes_back(&self, set: usize, way: u32, mask: u32) -> bool {
        matches!(self.consumed, ConsumedPolicy::Migrate { .. })
            && mask >> way & 1 == 0
            && !self.shared.is_marked(set, way)
    }

    /// Puts a line into the device's ways, if it still stands where it was seen.
    fn send_back(&mut self, set: usize, way: u32, line: LineNumber, mask: u32) -> bool {
        let there = self.shared.holds(set, way, line);
        if there {
            self.shared.remove(set, way);
            self.place(set, line, mask, true, true);
        }
        there
    }

    /// A prefetcher of a core brings a line for reading.
    pub fn prefetch(&mut self, core: usize, line: LineNumber, ways: u32) {
        let private = &mut self.private[core];
        let own = private.set_of(line);
        match private.find(own, line) {
            Some(way) => private.touch(own, way),
            None => _ = self.core_miss(core, line, AccessReason::Prefetch, ways),
        }
    }

    /// A core reads or writes a line; what it displaces from its private cache goes to `ways` of
    /// the shared one.
    #[inline]
    pub fn core_access(&mut self, core: usize, line: LineNumber, write: bool, ways: u32) -> Level {
        let private = &mut self.private[core];
        let own = private.set_of(line);
        if let Some(way) = private.find(own, line) {
            private.touch(own, way);
            if write && !private.is_dirty(own, way) {
                private.soil(own, way);
                let set = self.shared.set_of(line);
                let others = self.snoop_filter.holders(set, line) & !(1 << core);
                self.take_back(set, line, others);
            }
            return Level::Private;
        }
        let access = if write { AccessReason::Write } else { AccessReason::Read };
        self.core_miss(core, line, access, ways)
    }

    fn core_miss(
        &mut self,
        core: usize,
        line: LineNumber,
        access: AccessReason,
        ways: u32,
    ) -> Level {
        let write = access == AccessReason::Write;
        let set = self.shared.set_of(line);
        let others = self.snoop_filter.holders(set, line);
        let mut dirty = write;
        let found = self.shared.find(set, line);
        let level = match (found, others) {
            (Some(way), _) => {
                self.shared.touch(set, way);
                if write {
                    self.take_back(set, line, others);
                } else if self.clean(line, others) {
                    // What another core changed is known here from now on.
                    self.shared.soil(set, way);
                }
                // A line that several cores read stays.
                if write || others == 0 {
                    dirty |= self.hand_over(set, line, way, access);
                }
                Level::Shared
            }
            (None, 0) => {
                self.memory.core_reads += 1;
                if self.inclusive {
                    self.place(set, line, ways, false, false);
                }
                Level::Memory
            }
            (None, others) => {
                if write {
                    // The changed line goes from one private cache to the other.
                    self.take_back(set, line, others);
                } else if self.clean(line, others) {
                    self.place(set, line, ways, true, false);
                }
                Level::Peer
            }
        };
        self.fill(core, line, dirty, ways);
        level
    }

    /// A line of the shared cache goes to a private one; says whether the private copy carries
    /// the only changes.
    fn hand_over(&mut self, set: usize, line: LineNumber, way: u32, access: AccessReason) -> bool {
        let device = self.shared.is_marked(set, way);
        if self.inclusive {
            return false;
        }
        match self.consumed {
            ConsumedPolicy::Keep if device => false,
            ConsumedPolicy::Migrate { ways } if device => {
                if ways >> way & 1 == 0 {
                    let dirty = self.shared.remove(set, way);
                    self.place(set, line, ways, dirty, access != AccessReason::Prefetch);
                }
                false
            }
            _ => self.shared.remove(set, way),
        }
    }

    /// Puts a line that is not there into the shared cache.
    fn place(&mut self, set: usize, line: LineNumber, ways: u32, dirty: bool, device: bool) {
        let placed = self.shared.insert(set, line, ways, dirty);
        if device {
            self.shared.mark(set, placed.way);
        }
        let Some(evicted) = placed.evicted else { return };
        let mut changed = evicted.dirty;
        if self.inclusive {
            let holders = self.snoop_filter.holders(set, evicted.line);
            changed |= self.take_back(set, evicted.line, holders);
        }
        self.memory.write_backs += u64::from(changed);
    }

    /// Puts a line that is not there into a private cache.
    fn fill(&mut self, core: usize, line: LineNumber, dirty: bool, ways: u32) {
        let private = &mut self.private[core];
        let own = private.set_of(line);
        let placed = private.insert(own, line, u32::MAX, dirty);
        if let Some(evicted) = placed.evicted {
            let set = self.shared.set_of(evicted.line);
            self.snoop_filter.drop(set, evicted.line, core);
            self.retire(set, evicted.line, evicted.dirty, ways);
        }
        let set = self.shared.set_of(line);
        if let Some(gone) = self.snoop_filter.add(set, line, core) {
            let changed = self.invalidate(gone.line, gone.holders);
            let set = self.shared.set_of(gone.line);
            self.retire(set, gone.line, changed, ways);
        }
    }

    /// A line that left a private cache goes to the shared one.
    fn retire(&mut self, set: usize, line: LineNumber, dirty: bool, ways: u32) {
        match self.shared.find(set, line) {
            Some(way) if dirty => self.shared.soil(set, way),
            Some(_) => {}
            None if self.inclusive => self.memory.write_backs += u64::from(dirty),
            None => self.place(set, line, ways, dirty, false),
        }
    }

    /// Takes a line out of the private caches of `holders`; says whether one had changed it.
    #[inline(never)]
    fn take_back(&mut self, set: usize, line: LineNumber, holders: u64) -> bool {
        for core in cores_of(holders) {
            self.snoop_filter.drop(set, line, core);
        }
        self.invalidate(line, holders)
    }

    fn invalidate(&mut self, line: LineNumber, holders: u64) -> bool {
        self.at_holders(line, holders, Cache::remove)
    }

    /// Makes the copies of `holders` clean; says whether one was not.
    fn clean(&mut self, line: LineNumber, holders: u64) -> bool {
        self.at_holders(line, holders, Cache::wash)
    }

    /// Does something to each copy of a line that `holders` have; says whether one was dirty.
    fn at_holders(
        &mut self,
        line: LineNumber,
        holders: u64,
        does: fn(&mut Cache, usize, u32) -> bool,
    ) -> bool {
        let mut changed = false;
        for core in cores_of(holders) {
            let private = &mut self.private[core];
            let own = private.set_of(line);
            if let Some(way) = private.find(own, line) {
                changed |= does(private, own, way);
            }
        }
        changed
    }
}
