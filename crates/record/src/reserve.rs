//! Space on the disk of a results file that is kept for what a run will write there.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

/// Blocks of the disk that nobody else gets until they are given back. They belong to a file
/// without a name, so that they are free again however the process ends.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    _blocks: File,
}

/// Where a file system cannot set blocks aside, so much is written at once.
const PIECE: usize = 64 << 10;

impl DiskReserve {
    /// On the disk of `results`, whose folder must be there.
    pub fn take(results: &Path, bytes: u64) -> io::Result<DiskReserve> {
        // The journal lies beside the file itself, not beside a link to it.
        let real = results.canonicalize().unwrap_or_else(|_| results.to_owned());
        let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut blocks = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))?;
        set_aside(&mut blocks, bytes)?;
        Ok(DiskReserve { _blocks: blocks })
    }
}

fn set_aside(file: &mut File, bytes: u64) -> io::Result<()> {
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

/// Writes what a file system that compresses cannot make smaller.
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
        .take(PIECE / 8)
        .flatten()
        .collect();
        let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&piece[..length])?;
        left -= length as u64;
    }
    // Only then does a file system that allocates late know that there is no room.
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_is_set_aside_has_blocks_and_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = DiskReserve::take(&folder.path().join("results.sqlite"), 300_000).unwrap();
        assert!(reserve._blocks.metadata().unwrap().blocks() * 512 >= 300_000);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_system_that_cannot_set_blocks_aside_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile_in(folder.path()).unwrap();
        fill(&mut file, 100_001).unwrap();
        let found = file.metadata().unwrap();
        assert!(found.len() == 100_001 && found.blocks() * 512 >= 100_001, "{found:?}");
    }
}
