//! What of a segment is settled: written, and not written again.
//!
//! The last block of a direct write is written again with what follows. If a reader brings it, or
//! what comes behind it, into the page cache meanwhile, the kernel may fail to drop it there, and
//! then fails the next sync: Linux, `mm/filemap.c`, `kiocb_invalidate_post_direct_write`.

use std::io;

use super::direct_io::{self, BlockBuffer};
use super::segment::Segment;
use crate::fs::{BLOCK_SIZE, cache_page, read_exact_at};

impl Segment {
    /// The end of what is settled. Nothing behind it may be read through the page cache.
    pub(crate) fn settled(&self) -> usize {
        match self.is_finished() {
            true => self.capacity(),
            false => self.written() as usize / cache_page() * cache_page(),
        }
    }

    /// Complete, and nothing of it is staged any more.
    fn is_finished(&self) -> bool {
        self.end().is_some_and(|end| end <= self.written())
    }

    /// Reads may go ahead again once nothing is written any more.
    pub(super) fn allow_readahead_if_finished(&self) {
        if self.is_finished() {
            self.map.set_readahead(true);
        }
    }

    /// Fills `into`: through the page cache as far as it is settled, else past it.
    pub(super) fn read_at(&self, into: &mut [u8], from: usize) -> io::Result<()> {
        let settled = self.settled().saturating_sub(from).min(into.len());
        let (settled, rest) = into.split_at_mut(settled);
        read_exact_at(&*self.file, settled, from as u64)?;
        let from = from + settled.len();
        match rest.is_empty() || self.read_past_cache(rest, from)? {
            true => Ok(()),
            // Without direct I/O nothing is written directly. One that failed this once is rarer than harm.
            false => read_exact_at(&*self.file, rest, from as u64),
        }
    }

    /// False if direct I/O does not work here.
    fn read_past_cache(&self, into: &mut [u8], from: usize) -> io::Result<bool> {
        let Some(file) = self.file.open_direct() else { return Ok(false) };
        let begin = from / BLOCK_SIZE * BLOCK_SIZE;
        let len = (from + into.len()).next_multiple_of(BLOCK_SIZE) - begin;
        let mut blocks = BlockBuffer::default();
        let blocks = &mut blocks.bytes(len)[..len];
        if !direct_io::read(&*file, blocks, begin as u64)? {
            return Ok(false);
        }
        into.copy_from_slice(&blocks[from - begin..][..into.len()]);
        Ok(true)
    }
}

#[cfg(all(test, not(feature = "shuttle"), target_os = "linux"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::directory::Directory;
    use crate::fs::{Fs, Os};
    use crate::stream::Stream;
    use crate::value_log::direct_io::DirectWriter;
    use crate::value_log::segment::FILE_HEADER_LEN;

    /// Whether each page of a segment is in the page cache.
    fn pages_in_cache(segment: &Segment) -> Vec<bool> {
        let mut pages = vec![0; segment.capacity().div_ceil(cache_page())];
        // SAFETY: the mapping has the segment's capacity, and the vector a byte for each page.
        let asked = unsafe {
            let start = segment.map.start().as_ptr().cast();
            libc::mincore(start, segment.capacity(), pages.as_mut_ptr())
        };
        assert_eq!(asked, 0, "{}", io::Error::last_os_error());
        pages.iter().map(|page| page & 1 == 1).collect()
    }

    #[test]
    fn what_is_written_again_is_not_in_the_page_cache() {
        let home = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Os::new());
        let directory = Directory::new(&fs, home.path().to_owned(), 9);
        let segment = Segment::create(&directory, 1, Stream::Main, 4 << 20).unwrap();
        let mut writer = DirectWriter::default();
        let bytes: Vec<u8> = (0..150_000).map(|at| (at % 251) as u8).collect();
        let mut end = FILE_HEADER_LEN;
        for round in 0..20 {
            let begin = end;
            writer.append(&segment, &[&bytes], begin, true).unwrap();
            end += bytes.len() as u32;
            segment.set_written(end);
            let unread = end as usize / cache_page();
            if pages_in_cache(&segment)[unread] {
                return eprintln!("skipped: direct writes of this file system take page cache");
            }
            // Else they are read one by one, for which the kernel would read ahead.
            if round % 2 == 0 {
                segment.populate(begin as usize, segment.settled()).unwrap();
            }
            let there: Vec<u8> = (begin..end)
                .step_by(1000)
                .flat_map(|at| segment.read(at, end.min(at + 1000)).unwrap())
                .collect();
            assert!(there == bytes);
            let pages = pages_in_cache(&segment);
            assert_eq!(segment.settled(), unread * cache_page());
            assert!(pages[unread - 1], "what is settled is in the page cache once it was read");
            assert_eq!(pages[unread..].iter().position(|&page| page), None, "after {end} bytes");
        }
        segment.complete(end);
        segment.read(end - 1, end).unwrap();
        assert!(pages_in_cache(&segment)[end as usize / cache_page()]);
    }
}
