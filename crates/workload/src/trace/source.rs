//! The bytes of a trace, decompressed.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::TraceError;
use super::zstd::ZstdFrames;

/// Bytes that are read from a compressed file at a time.
const BUFFER: usize = 256 << 10;

pub(super) type Bytes = Box<dyn Read + Send>;

/// The name of a trace in errors.
pub(super) fn name(path: &Path) -> Arc<str> {
    if is_stdin(path) { "standard input".into() } else { path.display().to_string().into() }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a trace; its first bytes, not its name, determine the compression.
pub(super) fn open(path: &Path) -> Result<Bytes, TraceError> {
    let file = name(path);
    let failed = |source| TraceError::Open { file: file.clone(), source: Arc::new(source) };
    let raw: Box<dyn Read + Send> = match is_stdin(path) {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    decompressed(raw, failed, |format| TraceError::Compression { file: file.clone(), format })
}

fn decompressed(
    mut raw: Box<dyn Read + Send>,
    failed: impl Fn(io::Error) -> TraceError,
    unknown: impl Fn(&'static str) -> TraceError,
) -> Result<Bytes, TraceError> {
    let mut magic = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut magic).map_err(&failed)?;
    let head = <[u8; 4]>::try_from(magic.as_slice()).unwrap_or_default();
    let whole = Cursor::new(magic).chain(raw);
    let buffered = |whole| BufReader::with_capacity(BUFFER, whole);
    match head {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(buffered(whole)))),
        // A data frame or a skippable frame.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            Ok(Box::new(ZstdFrames::new(buffered(whole))))
        }
        [0xfd, b'7', b'z', b'X'] => Err(unknown("xz")),
        [b'B', b'Z', b'h', _] => Err(unknown("bzip2")),
        [0x04, 0x22, 0x4d, 0x18] => Err(unknown("lz4")),
        [b'P', b'K', ..] => Err(unknown("zip")),
        _ => Ok(Box::new(whole)),
    }
}
