//! The content of a manifest frame.

use crate::level::filter::Filter;
use crate::level::page::PageId;
use crate::record::{MAX_SEQUENCE, MAX_TABLES};
use crate::stream::{LogPosition, Stream, StreamPositions};
use crate::version::Coverage;

/// The durable state of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct State {
    /// The next unused numbers.
    pub(crate) next_segment: u32,
    pub(crate) next_index: u32,
    pub(crate) next_table: u32,
    /// The part of the log that the levels contain; the rest is replayed.
    pub(crate) coverage: Coverage,
    /// Everything before these positions is durable.
    pub(crate) synced: StreamPositions,
    pub(crate) tables: Vec<TableState>,
    /// In the order of their numbers.
    pub(crate) segments: Vec<SegmentState>,
    /// Estimated bytes that upper levels made dead in lower ones.
    pub(crate) hidden_in_levels: u64,
    /// Number of states before this one. The staging file knows the last durable number; an earlier
    /// one at the manifest's end is damage, not a crash.
    pub(crate) number: u64,
    /// Number of the store ([`Directory::store`](crate::directory::Directory::store)).
    pub(crate) store: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableState {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// `None`: an empty level.
    pub(crate) levels: Vec<Option<LevelState>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LevelState {
    pub(crate) root: PageId,
    pub(crate) height: u32,
    pub(crate) entries: u64,
    /// Number of a file, its pages, and how many of them are in use.
    pub(crate) files: Vec<(u32, u32, u32)>,
    /// Number of pages at the end of the first file that are a filter.
    pub(crate) filter_pages: u32,
}

impl LevelState {
    /// `None` if there is none.
    pub(crate) fn filter(&self) -> Option<Filter> {
        let &(_, pages, _) = self.files.first()?;
        let first = pages.checked_sub(self.filter_pages)?;
        (self.filter_pages > 0).then_some(Filter { first, pages: self.filter_pages })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentState {
    pub(crate) id: u32,
    /// End of its records, if it is complete and durable.
    pub(crate) end: Option<u32>,
    /// Everything before this offset is durable.
    pub(crate) synced: u32,
    pub(crate) dead: u64,
}

impl State {
    /// What the state says of a segment.
    pub(crate) fn segment(&self, id: u32) -> Option<&SegmentState> {
        let at = self.segments.binary_search_by_key(&id, |segment| segment.id).ok()?;
        self.segments.get(at)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put32(&mut out, self.next_segment);
        put32(&mut out, self.next_index);
        put32(&mut out, self.next_table);
        put64(&mut out, self.coverage.sequence);
        for positions in [self.coverage.positions, self.synced] {
            for stream in Stream::ALL {
                let position = positions.of(stream);
                put32(&mut out, position.segment);
                put32(&mut out, position.offset);
            }
        }
        put32(&mut out, self.tables.len() as u32);
        for table in &self.tables {
            put32(&mut out, table.id);
            put32(&mut out, table.name.len() as u32);
            out.extend_from_slice(table.name.as_bytes());
            put32(&mut out, table.levels.len() as u32);
            for level in &table.levels {
                let Some(level) = level else {
                    put32(&mut out, 0);
                    continue;
                };
                put32(&mut out, level.files.len() as u32);
                put64(&mut out, level.root.bits());
                put32(&mut out, level.height);
                put64(&mut out, level.entries);
                for &(id, pages, used) in &level.files {
                    put32(&mut out, id);
                    put32(&mut out, pages);
                    put32(&mut out, used);
                }
            }
        }
        put32(&mut out, self.segments.len() as u32);
        for segment in &self.segments {
            put32(&mut out, segment.id);
            put32(&mut out, segment.end.unwrap_or(u32::MAX));
            put32(&mut out, segment.synced);
            put64(&mut out, segment.dead);
        }
        put64(&mut out, self.hidden_in_levels);
        for level in self.tables.iter().flat_map(|table| table.levels.iter().flatten()) {
            put32(&mut out, level.filter_pages);
        }
        put64(&mut out, self.number);
        put64(&mut out, self.store);
        out
    }

    /// `None` if the bytes are no valid state.
    pub(crate) fn decode(bytes: &[u8]) -> Option<State> {
        let mut bytes = Decoder(bytes);
        let mut state = State {
            next_segment: bytes.get32()?,
            next_index: bytes.get32()?,
            next_table: bytes.get32()?,
            coverage: Coverage { sequence: bytes.get64()?, positions: bytes.positions()? },
            synced: bytes.positions()?,
            ..State::default()
        };
        for _ in 0..bytes.get32()? {
            let id = bytes.get32()?;
            let len = bytes.get32()? as usize;
            let name = std::str::from_utf8(bytes.take(len)?).ok()?.to_owned();
            let mut levels = Vec::new();
            for _ in 0..bytes.get32()? {
                let files = bytes.get32()?;
                if files == 0 {
                    levels.push(None);
                    continue;
                }
                let mut level = LevelState {
                    root: PageId::from_bits(bytes.get64()?),
                    height: bytes.get32()?,
                    entries: bytes.get64()?,
                    files: Vec::new(),
                    filter_pages: 0,
                };
                for _ in 0..files {
                    level.files.push((bytes.get32()?, bytes.get32()?, bytes.get32()?));
                }
                levels.push(Some(level));
            }
            state.tables.push(TableState { id, name, levels });
        }
        for _ in 0..bytes.get32()? {
            let id = bytes.get32()?;
            let end = Some(bytes.get32()?).filter(|&end| end != u32::MAX);
            let (synced, dead) = (bytes.get32()?, bytes.get64()?);
            state.segments.push(SegmentState { id, end, synced, dead });
        }
        if !bytes.0.is_empty() {
            state.hidden_in_levels = bytes.get64()?;
        }
        if !bytes.0.is_empty() {
            let tables = state.tables.iter_mut();
            for level in tables.flat_map(|table| table.levels.iter_mut().flatten()) {
                level.filter_pages = bytes.get32()?;
            }
        }
        if !bytes.0.is_empty() {
            state.number = bytes.get64()?;
        }
        if !bytes.0.is_empty() {
            state.store = bytes.get64()?;
        }
        let is_possible = state.coverage.sequence <= MAX_SEQUENCE && state.next_table <= MAX_TABLES;
        (bytes.0.is_empty() && is_possible).then_some(state)
    }
}

pub(super) fn put32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn get32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    pub(super) fn get64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    fn positions(&mut self) -> Option<StreamPositions> {
        let mut positions = StreamPositions::default();
        for stream in Stream::ALL {
            *positions.of_mut(stream) =
                LogPosition { segment: self.get32()?, offset: self.get32()? };
        }
        Some(positions)
    }
}
