//! Entry points into the decoders, for fuzzing. Not part of the API.

use std::path::Path;
use std::sync::Arc;

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::fs::{Fs, Os, write_all_at};
use crate::level::filter::Filter;
use crate::level::page::{self, PAGE_SIZE, Page, PageId, PageKind};
use crate::record::{Hashes, Record, hash};
use crate::stream::{LogPosition, Stream, StreamPositions};
use crate::value_log::Segment;
use crate::value_log::reader::{LocatedRecord, ReadBuffer, SegmentReader};
use crate::value_log::replay::replay;
use crate::value_log::segment::{self, FILE_HEADER_LEN};
use crate::value_pointer::ValuePointer;
use crate::version::Coverage;

const ID: u32 = 1;

/// Reads and replays a segment in `dir` with these bytes as records. `repaired` fixes checksums
/// first, so that code behind them is reached.
///
/// # Errors
/// Those of the file system, and [`Error::Damaged`], which is a valid outcome.
///
/// # Panics
/// If reading and replaying disagree.
pub fn segment(dir: &Path, bytes: &[u8], repaired: bool) -> Result<()> {
    let fs: Arc<dyn Fs> = Arc::new(Os::new());
    let directory = Directory::new(&fs, dir.to_owned(), 0);
    let mut bytes = bytes.to_vec();
    if repaired {
        repair(&mut bytes);
    }
    match fs.remove(&dir.join(segment::name(ID))) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(dir, error));
        }
        _ => {}
    }
    let capacity = (FILE_HEADER_LEN as usize + bytes.len()).next_multiple_of(4096);
    let made = Segment::create(&directory, ID, Stream::Main, capacity)?;
    write_all_at(&*made.file, &bytes, FILE_HEADER_LEN.into())
        .map_err(|error| Error::io(dir, error))?;
    drop(made);
    let segment = Arc::new(Segment::open(&directory, ID, None, 0)?);
    let mut walked = Vec::new();
    let mut buffer = ReadBuffer::default();
    let mut reader = SegmentReader::new(&segment, FILE_HEADER_LEN, capacity as u32, &mut buffer);
    while let Some(found) = reader.next()? {
        let LocatedRecord { offset, record, .. } = &found;
        assert!(offset % 8 == 0 && found.end() as usize <= capacity);
        assert_eq!(record.key.len(), usize::from(record.header.key_len));
        walked.push((*offset, record.header));
    }
    let walked_to = reader.offset();
    let mut replayed = Vec::new();
    let begin = LogPosition { segment: ID, offset: FILE_HEADER_LEN };
    let positions = StreamPositions { main: begin, ..StreamPositions::default() };
    // Pretends that everything before the first record is covered.
    let before = walked.first().map_or(0, |(_, header)| header.sequence.saturating_sub(1));
    let coverage = Coverage { sequence: before, positions };
    let missing = |id| Error::damaged(segment::name(id).as_ref(), 0, "the file is missing");
    let log_end =
        replay(coverage, positions, &[], &[Arc::clone(&segment)], missing, |position, record| {
            replayed.push((position.offset, record.header));
            Ok(())
        });
    // Replay yields a subsequence of what reading yields, in order.
    let mut walk = walked.iter();
    assert!(replayed.iter().all(|record| walk.any(|walked| walked == record)));
    let tail = log_end?.positions.main;
    assert!(tail.segment != ID || (FILE_HEADER_LEN..=walked_to).contains(&tail.offset));
    Ok(())
}

/// Fixes the checksum of each record up to the first invalid one.
fn repair(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(record) = Record::parse_unchecked(&bytes[at..]) {
        let hashes = Hashes::of(record.key, record.value);
        let (header, key, value) = (record.header, record.key.to_vec(), record.value.to_vec());
        let len = header.record_len();
        let location = (ID, FILE_HEADER_LEN + at as u32);
        header.write(location, hashes, &key, &value, &mut bytes[at..at + len]);
        let record = Record::parse(&bytes[at..], location);
        assert!(record.is_some_and(|record| record.header == header && record.key == key));
        at += len;
    }
}

/// Takes the bytes, truncated or zero-padded, as a page and searches it for keys; `repaired` fixes
/// its checksum first.
///
/// # Panics
/// If a result lies outside the page.
pub fn page(bytes: &[u8], repaired: bool) {
    let id = PageId { file: 7, number: 3 };
    let mut whole = [0; PAGE_SIZE];
    let len = bytes.len().min(PAGE_SIZE);
    whole[..len].copy_from_slice(&bytes[..len]);
    if repaired {
        page::write_checksum(&mut whole, id);
    }
    let page = Page::new(&whole);
    if page.defect(id, 0).is_some() {
        return;
    }
    if page.kind() == PageKind::Filter {
        let filter = Filter { first: 0, pages: 1 };
        for key_hash in [0, u64::MAX, hash(bytes)] {
            assert!(filter.may_contain(key_hash, |_| Ok(page)).is_ok());
        }
        return;
    }
    let count = page.count();
    let mut keys = vec![Vec::new(), vec![0xff; 200], page.prefix().to_vec()];
    for index in 0..count {
        let bound = page.bound(index);
        let _ = ValuePointer::from_bits(page.value(index)).offset();
        keys.extend([[&bound[..], &[0]].concat(), bound]);
    }
    for key in keys {
        let ties = page.ties(&key);
        assert!(ties.start <= ties.end && ties.end <= count);
        assert!(page.child_of(&key) < count);
    }
}
