//! The manifest: the durable description of a store. Each frame holds the whole state; the last
//! valid frame counts.

mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::fs::{File, Fs, Mode, read_exact_at, write_all_at};

use state::{Decoder, put32, put64};
pub(crate) use state::{LevelState, SegmentState, State, TableState};

const MAGIC: &[u8; 8] = b"spill\0mf";
/// Format of the whole directory.
pub(crate) const FORMAT: u32 = 8;
/// The oldest readable format. Format 7 lacks the store number, 6 the state number, 5 filters, and
/// 4 the hidden garbage of levels. Each opening for writing creates a new manifest, so no file
/// mixes formats.
const OLDEST_FORMAT: u32 = 4;
const FILE_HEADER_LEN: usize = 16;
/// Length of a frame (u32), its complement (u32), and the checksum of its content (u64).
const FRAME_HEADER_LEN: usize = 16;
/// The manifest is rewritten once it exceeds this many bytes, and this many times its last frame.
const MIN_REWRITE_LEN: u64 = 1 << 20;
const REWRITE_RATIO: u64 = 16;
/// No valid manifest is longer.
const MAX_LEN: u64 = 8 << 30;

/// The state that counts when a store is opened.
#[derive(Debug)]
pub(crate) struct LatestState {
    pub(crate) state: State,
    /// End of its frame in the file.
    end: u64,
}

impl LatestState {
    /// The error when a later state should exist.
    pub(crate) fn stale_error(&self, dir: &Path, why: &str) -> Error {
        Error::damaged(&path(dir), self.end, why)
    }
}

/// The file, open for appending frames.
pub(crate) struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    file: Arc<dyn File>,
    len: u64,
    /// A frame could not be written: the content behind `len` is unknown, and the file is rewritten
    /// before the next append.
    is_torn: bool,
    /// The state that counts.
    last: State,
}

/// Why a state was not appended.
pub(crate) enum AppendError {
    /// The previous state counts.
    Unchanged(Error),
    /// Either state may count at the next opening.
    Unknown(Error),
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("MANIFEST")
}

fn new_path(dir: &Path) -> PathBuf {
    dir.join("MANIFEST.new")
}

impl Manifest {
    /// Creates the file with one state, durably; replaces an existing one.
    pub(crate) fn create(fs: &Arc<dyn Fs>, dir: &Path, state: &State) -> Result<Manifest> {
        Manifest::write_new(fs, dir, state)?.install()
    }

    /// Creates the file under a temporary name, durably.
    fn write_new(fs: &Arc<dyn Fs>, dir: &Path, state: &State) -> Result<Manifest> {
        let path = new_path(dir);
        let failed = |error| Error::io(&path, error);
        match fs.remove(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let file = fs.open(&path, Mode::New).map_err(failed)?;
        let mut bytes = Vec::new();
        bytes.extend_from_slice(MAGIC);
        put32(&mut bytes, FORMAT);
        let check = xxh3_64(&bytes) as u32;
        put32(&mut bytes, check);
        bytes.extend_from_slice(&frame(state));
        write_all_at(&*file, &bytes, 0).map_err(failed)?;
        file.sync().map_err(failed)?;
        let (fs, dir) = (Arc::clone(fs), dir.to_owned());
        Ok(Manifest { fs, dir, file, len: bytes.len() as u64, is_torn: false, last: state.clone() })
    }

    /// Renames the file into place, durably. After an error it may be in place.
    fn install(self) -> Result<Manifest> {
        let path = new_path(&self.dir);
        let failed = |error| Error::io(&path, error);
        self.fs.rename(&path, &self::path(&self.dir)).map_err(failed)?;
        self.fs.sync_dir(&self.dir).map_err(failed)?;
        Ok(self)
    }

    /// Reads the last valid state; `None` if there is no manifest.
    pub(crate) fn read(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Option<LatestState>> {
        let path = path(dir);
        let failed = |error| Error::io(&path, error);
        let file = match fs.open(&path, Mode::Write) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed)?,
        };
        // A killed process may have left it unsynced.
        file.sync().map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let mut bytes = Vec::new();
        if len > MAX_LEN || bytes.try_reserve_exact(len as usize).is_err() {
            let what = format!("{len} bytes are too many for a manifest");
            return Err(Error::damaged(&path, len, what));
        }
        bytes.resize(len as usize, 0);
        read_exact_at(&*file, &mut bytes, 0).map_err(failed)?;
        decode(&bytes, &path).map(Some)
    }

    /// The state that counts.
    pub(crate) fn last(&self) -> LatestState {
        LatestState { state: self.last.clone(), end: self.len }
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.last.number
    }

    /// Reads the file again and verifies its content.
    pub(crate) fn check(&self) -> Result<()> {
        let path = path(&self.dir);
        let mut bytes = vec![0; self.len as usize];
        read_exact_at(&*self.file, &mut bytes, 0)
            .map_err(|error| Error::truncated(&path, error))?;
        let found = decode(&bytes, &path)?;
        if found.state != self.last {
            return Err(found.stale_error(&self.dir, "the state that was written is missing"));
        }
        Ok(())
    }

    /// Makes a state the one that counts, durably.
    pub(crate) fn append(&mut self, state: &State) -> std::result::Result<(), AppendError> {
        let frame = frame(state);
        let is_long = self.len > MIN_REWRITE_LEN.max(REWRITE_RATIO * frame.len() as u64);
        let must_rewrite = self.is_torn || is_long;
        self.is_torn = true;
        if must_rewrite {
            // Until the rename the old file counts, so lack of space does no harm.
            let new =
                Manifest::write_new(&self.fs, &self.dir, state).map_err(AppendError::Unchanged)?;
            match new.install() {
                Ok(manifest) => *self = manifest,
                Err(error) => return Err(self.roll_back(error)),
            }
            return Ok(());
        }
        let path = path(&self.dir);
        let failed = |error| Error::io(&path, error);
        if let Err(error) = write_all_at(&*self.file, &frame, self.len) {
            return Err(match failed(error) {
                // An incomplete frame does not count.
                error @ Error::Full { .. } => AppendError::Unchanged(error),
                // The frame may be complete.
                error => self.roll_back(error),
            });
        }
        if let Err(error) = self.file.sync() {
            return Err(self.roll_back(failed(error)));
        }
        self.len += frame.len() as u64;
        self.is_torn = false;
        self.last = state.clone();
        Ok(())
    }

    /// Makes the previous state count again, after one that may or may not be on the device.
    fn roll_back(&mut self, error: Error) -> AppendError {
        match Manifest::create(&self.fs, &self.dir, &self.last) {
            Ok(manifest) => {
                *self = manifest;
                AppendError::Unchanged(error)
            }
            Err(_) => AppendError::Unknown(error),
        }
    }
}

fn frame(state: &State) -> Vec<u8> {
    frame_of(&state.encode())
}

fn frame_of(content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_HEADER_LEN + content.len());
    put32(&mut frame, content.len() as u32);
    put32(&mut frame, !(content.len() as u32));
    put64(&mut frame, xxh3_64(content));
    frame.extend_from_slice(content);
    frame
}

/// The last valid state in the bytes of a manifest.
fn decode(bytes: &[u8], path: &Path) -> Result<LatestState> {
    let damaged = |at: usize, what: &str| Error::damaged(path, at as u64, what);
    let mut header = Decoder(bytes);
    let magic = header.take(8);
    let (format, check) = (header.get32(), header.get32());
    let (Some(magic), Some(format), Some(check)) = (magic, format, check) else {
        return Err(damaged(bytes.len(), "the manifest is truncated"));
    };
    if magic != MAGIC || check != xxh3_64(&bytes[..12]) as u32 {
        return Err(damaged(0, "the manifest header is invalid"));
    }
    if !(OLDEST_FORMAT..=FORMAT).contains(&format) {
        let path = path.to_owned();
        return Err(Error::Format { path, found: format, known: FORMAT });
    }
    let mut last = None;
    let mut at = FILE_HEADER_LEN;
    while at < bytes.len() {
        let mut frame = Decoder(&bytes[at..]);
        let (len, inverse, check) = (frame.get32(), frame.get32(), frame.get64());
        let is_head = matches!((len, inverse), (Some(len), Some(inverse)) if len == !inverse);
        let content = len.filter(|_| is_head).and_then(|len| frame.take(len as usize));
        let good = content.filter(|content| Some(xxh3_64(content)) == check);
        let Some(state) = good.and_then(State::decode) else {
            // A frame is begun only when the one before is durable, so only the last may be torn.
            if later_frame(&bytes[at + 1..]) {
                return Err(damaged(at, "a frame of the manifest is not what was written"));
            }
            break;
        };
        last = Some(state);
        at += FRAME_HEADER_LEN + content.map_or(0, <[u8]>::len);
    }
    let state = last.ok_or_else(|| damaged(at, "the manifest has no valid frame"))?;
    Ok(LatestState { state, end: at as u64 })
}

/// Whether a valid frame begins anywhere in the bytes.
fn later_frame(bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|at| {
        let mut frame = Decoder(&bytes[at..]);
        let (Some(len), Some(inverse), Some(check)) = (frame.get32(), frame.get32(), frame.get64())
        else {
            return false;
        };
        len == !inverse
            && len > 0
            && frame.take(len as usize).is_some_and(|content| xxh3_64(content) == check)
    })
}

/// Whether a name belongs to a manifest.
pub(crate) fn is_own_name(name: &str) -> bool {
    matches!(name, "MANIFEST" | "MANIFEST.new")
}

/// Decodes bytes as a manifest, for fuzzing. Not part of the API.
///
/// # Panics
/// If they are valid and the state does not survive encoding.
#[doc(hidden)]
pub fn fuzz_decode(bytes: &[u8]) {
    if let Ok(LatestState { state, .. }) = decode(bytes, Path::new("MANIFEST")) {
        assert_eq!(State::decode(&state.encode()).as_ref(), Some(&state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::page::PageId;
    use crate::stream::{LogPosition, StreamPositions};
    use crate::version::Coverage;

    fn state(number: u32) -> State {
        State {
            next_segment: number,
            next_index: 4,
            next_table: 2,
            coverage: Coverage {
                sequence: 77,
                positions: StreamPositions {
                    main: LogPosition { segment: 1, offset: 64 },
                    hot: LogPosition { segment: 3, offset: 72 },
                    copies: LogPosition { segment: 2, offset: 128 },
                },
            },
            synced: StreamPositions {
                main: LogPosition { segment: 1, offset: 4096 },
                ..StreamPositions::default()
            },
            tables: vec![TableState {
                id: 1,
                name: "täble".to_owned(),
                levels: vec![
                    None,
                    Some(LevelState {
                        root: PageId { file: 3, number: 9 },
                        height: 1,
                        entries: 500,
                        files: vec![(3, 10, 10), (1, 10, 4)],
                        filter_pages: 2,
                    }),
                ],
            }],
            segments: vec![
                SegmentState { id: 1, end: Some(9000), synced: 9000, dead: 12 },
                SegmentState { id: 2, end: None, synced: 128, dead: 0 },
            ],
            hidden_in_levels: 1 << 40,
            number: 12,
            store: 1 << 50,
        }
    }

    fn header(format: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put32(&mut bytes, format);
        let check = xxh3_64(&bytes) as u32;
        put32(&mut bytes, check);
        bytes
    }

    fn file_of(states: &[State]) -> Vec<u8> {
        let mut bytes = header(FORMAT);
        for state in states {
            bytes.extend(frame(state));
        }
        bytes
    }

    #[test]
    fn last_complete_frame_wins_over_a_torn_one() {
        let states = [state(3), state(4)];
        let bytes = file_of(&states);
        let path = Path::new("MANIFEST");
        assert_eq!(decode(&bytes, path).unwrap().state, states[1]);
        let second = bytes.len() - frame(&states[1]).len();
        for end in second..bytes.len() {
            let last = decode(&bytes[..end], path).unwrap();
            assert_eq!((last.state, last.end), (states[0].clone(), second as u64));
        }
        for end in 0..second {
            assert!(matches!(decode(&bytes[..end], path), Err(Error::Damaged { .. })), "{end}");
        }
    }

    #[test]
    fn flipped_bit_is_damage_unless_in_the_last_frame() {
        let states = [state(3), state(4), state(5)];
        let bytes = file_of(&states);
        let third = bytes.len() - frame(&states[2]).len();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match decode(&bytes, Path::new("MANIFEST")) {
                Ok(last) => assert!(bit / 8 >= third && last.state == states[1], "bit {bit}"),
                Err(Error::Damaged { .. }) => assert!(bit / 8 < third, "bit {bit}"),
                Err(other) => panic!("bit {bit}: {other}"),
            }
        }
    }

    #[test]
    fn unknown_format_is_reported() {
        for format in [OLDEST_FORMAT - 1, FORMAT + 7] {
            let mut bytes = header(format);
            bytes.extend(frame(&state(3)));
            let error = decode(&bytes, Path::new("MANIFEST")).unwrap_err();
            assert!(matches!(error, Error::Format { found, known: FORMAT, .. } if found == format));
        }
    }

    #[test]
    fn older_formats_are_read_with_defaults() {
        let mut content = state(3).encode();
        let mut less = state(3);
        let mut read = |format, cut| {
            content.truncate(content.len() - cut);
            let mut bytes = header(format);
            bytes.extend(frame_of(&content));
            decode(&bytes, Path::new("MANIFEST")).unwrap().state
        };
        less.store = 0;
        assert_eq!(read(7, 8), less);
        less.number = 0;
        assert_eq!(read(6, 8), less);
        if let Some(level) = &mut less.tables[0].levels[1] {
            level.filter_pages = 0;
        }
        assert_eq!(read(5, 4), less);
        less.hidden_in_levels = 0;
        assert_eq!(read(4, 8), less);
    }
}
