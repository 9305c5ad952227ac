//! Zstandard, decompressed frame by frame: a file may contain several, and skippable frames.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// The data of all frames of a stream, one after the other.
pub(super) struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    /// Within a frame.
    inside: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(super) fn new(source: R) -> Self {
        ZstdFrames { source, decoder: FrameDecoder::new(), inside: false }
    }

    /// Goes to the next frame with data; false at the end of the stream.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    /// The frame has been read: its checksum, if it has one, must be right.
    fn check(&self) -> io::Result<()> {
        let stored = self.decoder.get_checksum_from_data();
        match stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            true => Err(io::Error::other("the checksum of a zstd frame is wrong")),
            false => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.inside && !self.next_frame()? {
                return Ok(0);
            }
            self.inside = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let read = self.decoder.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            self.check()?;
            self.inside = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        ZstdFrames::new(bytes).read_to_end(&mut out).map(|_| out)
    }

    fn frame(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    #[test]
    fn reads_all_frames_and_skips_skippable_ones() {
        let mut file = frame(b"one ");
        file.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'x', b'y', b'z']);
        file.extend(frame(b""));
        file.extend(frame(b"two"));
        assert_eq!(read(&file).unwrap(), b"one two");
    }

    #[test]
    fn a_damaged_or_cut_file_is_an_error() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(|i| (i % 1009).to_le_bytes()).collect();
        let whole = frame(&text);
        assert_eq!(read(&whole).unwrap(), text);
        for cut in [1, 4, whole.len() / 2] {
            assert!(read(&whole[..whole.len() - cut]).is_err(), "{cut} bytes are missing");
        }
        let skip = [0x50, 0x2a, 0x4d, 0x18, 30, 0, 0, 0, b'x'];
        assert!(read(&skip).is_err());
    }
}
