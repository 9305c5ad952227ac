//! Ways into what decodes files, for fuzzing. Not part of the interface.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::fs::{Fs, Os, write_whole};
use crate::level::filter::Filter;
use crate::level::page::{self, Kind, PAGE, Page, PageId};
use crate::log::Segment;
use crate::log::reader::{Buffer, Found, Reader};
use crate::log::replay::replay;
use crate::log::segment::{self, FILE_HEADER};
use crate::position::Position;
use crate::record::{Hashes, Record, hash};
use crate::stream::{Places, Point, Stream};
use crate::version::Covers;

const ID: u32 = 1;

/// Walks and replays a segment in `dir` that has these bytes for records; `repaired` puts the
/// right check into whatever looks like a record, so that what is behind the checks is reached.
///
/// # Errors
/// Those of the file system, and [`Error::Damaged`], which is a good answer.
///
/// # Panics
/// If a walk and a replay do not agree.
pub fn segment(dir: &Path, bytes: &[u8], repaired: bool) -> Result<()> {
    let fs: Arc<dyn Fs> = Arc::new(Os::new());
    let folder = Folder::new(&fs, dir.to_owned(), 0);
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
    let capacity = (FILE_HEADER as usize + bytes.len()).next_multiple_of(4096);
    let made = Segment::create(&folder, ID, Stream::Main, capacity)?;
    write_whole(&*made.file, &bytes, FILE_HEADER.into()).map_err(|error| Error::io(dir, error))?;
    drop(made);
    let segment = Arc::new(Segment::open(&folder, ID, None, 0)?);
    let mut walked = Vec::new();
    let mut buffer = Buffer::default();
    let mut reader = Reader::new(&segment, FILE_HEADER, capacity as u32, &mut buffer);
    while let Some(found) = reader.next()? {
        let Found { offset, record, .. } = &found;
        assert!(offset % 8 == 0 && found.end() as usize <= capacity);
        assert_eq!(record.key.len(), usize::from(record.header.key_len));
        walked.push((*offset, record.header));
    }
    let walked_to = reader.at();
    let mut replayed = Vec::new();
    let begin = Point { segment: ID, offset: FILE_HEADER };
    let places = Places { main: begin, ..Places::default() };
    // As if those before the first were covered.
    let before = walked.first().map_or(0, |(_, header)| header.sequence.saturating_sub(1));
    let covers = Covers { sequence: before, places };
    let gone = |id| Error::damaged(segment::name(id).as_ref(), 0, "the file is missing");
    let tails = replay(covers, places, &[], &[Arc::clone(&segment)], gone, |point, record| {
        replayed.push((point.offset, record.header));
        Ok(())
    });
    // What is replayed is what a walk sees, in the same order, and nothing twice.
    let mut walk = walked.iter();
    assert!(replayed.iter().all(|record| walk.any(|walked| walked == record)));
    let tail = tails?.places.main;
    assert!(tail.segment != ID || (FILE_HEADER..=walked_to).contains(&tail.offset));
    Ok(())
}

/// Gives every record the check that it should have, from the begin to the first that is none.
fn repair(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(record) = Record::peek(&bytes[at..]) {
        let hashes = Hashes::of(record.key, record.value);
        let (header, key, value) = (record.header, record.key.to_vec(), record.value.to_vec());
        let len = header.record_len();
        let place = (ID, FILE_HEADER + at as u32);
        header.write(place, hashes, &key, &value, &mut bytes[at..at + len]);
        let record = Record::read(&bytes[at..], place);
        assert!(record.is_some_and(|record| record.header == header && record.key == key));
        at += len;
    }
}

/// Takes the bytes, cut or with zeros behind, as a page and searches it for keys; `repaired`
/// puts the right check into it.
///
/// # Panics
/// If an answer lies outside the page.
pub fn page(bytes: &[u8], repaired: bool) {
    let id = PageId { file: 7, number: 3 };
    let mut whole = [0; PAGE];
    let len = bytes.len().min(PAGE);
    whole[..len].copy_from_slice(&bytes[..len]);
    if repaired {
        page::seal(&mut whole, id);
    }
    let page = Page::new(&whole);
    if page.fault(id, 0).is_some() {
        return;
    }
    if page.kind() == Kind::Filter {
        let filter = Filter { first: 0, pages: 1 };
        for key_hash in [0, u64::MAX, hash(bytes)] {
            assert!(filter.may_have(key_hash, |_| Ok(page)).is_ok());
        }
        return;
    }
    let count = page.count();
    let mut keys = vec![Vec::new(), vec![0xff; 200], page.prefix().to_vec()];
    for index in 0..count {
        let bound = page.bound(index);
        let _ = Position::from_bits(page.value(index)).offset();
        keys.extend([[&bound[..], &[0]].concat(), bound]);
    }
    for key in keys {
        let ties = page.ties(&key);
        assert!(ties.start <= ties.end && ties.end <= count);
        assert!(page.child_of(&key) < count);
    }
}
