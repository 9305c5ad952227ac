//! The table of a file's frames, in a skippable frame at its end: zstd's seekable format.
//!
//! Source: <https://github.com/facebook/zstd/blob/dev/contrib/seekable_format>.

/// Begins the skippable frame.
const SKIPPABLE: u32 = 0x184d_2a5e;
/// Ends the file.
const SEEKABLE: u32 = 0x8f92_eab1;

/// The compressed and decompressed bytes of each frame.
#[derive(Debug, Default)]
pub(super) struct SeekTable {
    frames: Vec<(u32, u32)>,
}

impl SeekTable {
    pub(super) fn add(&mut self, compressed: usize, decompressed: usize) {
        // A frame is far below 4 GiB.
        self.frames.push((compressed as u32, decompressed as u32));
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let entries = self.frames.len() as u32;
        let mut out = SKIPPABLE.to_le_bytes().to_vec();
        out.extend((entries * 8 + 9).to_le_bytes());
        for (compressed, decompressed) in &self.frames {
            out.extend(compressed.to_le_bytes());
            out.extend(decompressed.to_le_bytes());
        }
        out.extend(entries.to_le_bytes());
        // No checksums in the table: each frame has its own.
        out.push(0);
        out.extend(SEEKABLE.to_le_bytes());
        out
    }
}
