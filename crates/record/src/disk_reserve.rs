//! Disk space that is reserved for the results of a run.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

/// Reserved blocks. They belong to an unnamed file, so that they are freed however the process
/// ends.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    _blocks: File,
}

/// Bytes that are written at once where a file system cannot preallocate.
const CHUNK: usize = 64 << 10;

impl DiskReserve {
    /// On the disk of `results`, whose folder must be there.
    pub fn take(results: &Path, bytes: u64) -> io::Result<DiskReserve> {
        // The journal is written next to the file itself, not next to a link to it.
        let real = results.canonicalize().unwrap_or_else(|_| results.to_owned());
        let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut blocks = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))?;
        allocate(&mut blocks, bytes)?;
        Ok(DiskReserve { _blocks: blocks })
    }
}

fn allocate(file: &mut File, bytes: u64) -> io::Result<()> {
    let length = i64::try_from(bytes).map_err(io::Error::other)?;
    loop {
        match fallocate(&*file, FallocateFlags::empty(), 0, length) {
            Ok(()) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => return fill(file, bytes),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Writes incompressible bytes, for file systems that compress.
fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    while left > 0 {
        let piece: Vec<u8> = std::iter::repeat_with(|| {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            noise.to_le_bytes()
        })
        .take(CHUNK / 8)
        .flatten()
        .collect();
        let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&piece[..length])?;
        left -= length as u64;
    }
    // A file system that allocates late reports a lack of space only now.
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn reserved_blocks_belong_to_an_unnamed_file() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = DiskReserve::take(&folder.path().join("results.sqlite"), 300_000).unwrap();
        assert!(reserve._blocks.metadata().unwrap().blocks() * 512 >= 300_000);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn fill_allocates_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile_in(folder.path()).unwrap();
        fill(&mut file, 100_001).unwrap();
        let metadata = file.metadata().unwrap();
        assert!(metadata.len() == 100_001 && metadata.blocks() * 512 >= 100_001, "{metadata:?}");
    }
}
