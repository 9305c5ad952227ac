//! The caches of one socket and the traffic between them, the devices and memory.

mod snoop_filter;

use crate::cache::{Cache, Geometry, LINE, LineNumber, Replacement};
use snoop_filter::{SnoopFilter, cores_of};

/// The shape of the caches of a socket.
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
    /// Policy for a device-written line that a core has read.
    pub consumed: ConsumedPolicy,
}

/// Policy for a device-written line that a core takes into its private cache. Other lines move to
/// the private cache and leave the shared one, unless that is inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumedPolicy {
    /// It stays in its way of the shared cache.
    Keep,
    /// It moves to one of these ways of the shared cache (Skylake-SP's "inclusive ways"). If only a
    /// prefetcher took the line, or no device wrote it, a device's next write hits it, too, but moves
    /// it back to the device's own ways.
    Migrate { ways: u32 },
    /// It leaves the shared cache.
    Move,
}

/// The level that served a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Private,
    Shared,
    /// Another core's private cache.
    Peer,
    Memory,
}

/// The kind of a core's access.
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

/// Lines that a device accessed, by hit and miss. A write hits only in the shared cache.
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

    /// Between 0 and 1; none without accesses.
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

/// Lines per lookup batch.
const BATCH: usize = 16;

/// Sets, and the ways of them that hold each line.
struct WaySets {
    places: [(u32, u32); BATCH],
}

/// All caches of one socket.
#[derive(Debug, Clone)]
pub struct Caches {
    /// A mark: a device wrote the line last, and no prefetcher has moved it since.
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
            from += BATCH as u32;
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
            from += BATCH as u32;
        }
        hits
    }

    /// Sets and ways of the next lines, looked up before anything changes, so that independent lookups
    /// overlap their cache misses. A function of its own for better register allocation.
    #[inline(never)]
    fn look_ahead(&self, from: LineNumber, last: LineNumber) -> WaySets {
        let mut run = WaySets { places: [(0, 0); BATCH] };
        let count = BATCH.min((last - from) as usize);
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
        looked_up: u32,
        ways: Option<u32>,
        whole: bool,
    ) -> bool {
        let holders = self.snoop_filter.holders(set, line);
        let is_shared = holders != 0;
        if is_shared {
            self.take_back(set, line, holders);
        }
        // The line may have been evicted since, but it cannot have been inserted.
        let way = looked_up.trailing_zeros();
        match ways {
            Some(mask) => {
                let was_hit = looked_up != 0
                    && if self.goes_back(set, way, mask) {
                        self.send_back(set, way, line, mask)
                    } else {
                        // Write update, in whichever way it is.
                        self.shared.rewrite(set, way, line)
                    };
                if !was_hit {
                    self.memory.device_reads += u64::from(!whole && !is_shared);
                    self.place(set, line, mask, true, true);
                }
                was_hit
            }
            None => {
                if looked_up != 0 && self.shared.holds(set, way, line) {
                    self.shared.remove(set, way);
                }
                self.memory.device_writes += 1;
                // The copies are invalidated, which is no hit.
                false
            }
        }
    }

    /// Whether a device's write moves a line from this way to the device's ways.
    #[inline(always)]
    fn goes_back(&self, set: usize, way: u32, mask: u32) -> bool {
        matches!(self.consumed, ConsumedPolicy::Migrate { .. })
            && mask >> way & 1 == 0
            && !self.shared.is_marked(set, way)
    }

    /// Moves a line to the device's ways, if it is still where it was looked up.
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
        let way_found = self.shared.find(set, line);
        let level = match (way_found, others) {
            (Some(way), _) => {
                self.shared.touch(set, way);
                if write {
                    self.take_back(set, line, others);
                } else if self.clean(line, others) {
                    // Another core's change is written back to the shared cache here.
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

    /// Moves a line of the shared cache to a private one; returns whether the private copy has the
    /// only changes.
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

    /// Moves a line evicted from a private cache to the shared one.
    fn retire(&mut self, set: usize, line: LineNumber, dirty: bool, ways: u32) {
        match self.shared.find(set, line) {
            Some(way) if dirty => self.shared.soil(set, way),
            Some(_) => {}
            None if self.inclusive => self.memory.write_backs += u64::from(dirty),
            None => self.place(set, line, ways, dirty, false),
        }
    }

    /// Removes a line from the private caches of `holders`; returns whether a copy was dirty.
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

    /// Cleans the copies of `holders`; returns whether one was dirty.
    fn clean(&mut self, line: LineNumber, holders: u64) -> bool {
        self.at_holders(line, holders, Cache::wash)
    }

    /// Applies `does` to each copy of `holders`; returns whether one was dirty.
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
