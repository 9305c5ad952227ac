//! Merging what is newer into a level: only indexes are read and written, values stay where they
//! are.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::iter;
use std::sync::Arc;

use super::build::{Built, Keys, TreeBuilder};
use super::file::IndexFile;
use super::filter::{FilterBuilder, Size};
use super::known::Known;
use super::page::{Page, PageId};
use super::{Leaves, Level};
use crate::bytes::head_at;
use crate::error::Result;
use crate::folder::Folder;
use crate::l0;
use crate::position::Position;
use crate::record::hash;
use crate::stint;

/// What a merge asks of the log.
pub(crate) trait Records {
    /// Calls `seen` with the key of a record; answers what `seen` does, and the length of the
    /// record in bytes.
    fn look<R>(&self, position: Position, seen: impl FnOnce(&[u8]) -> R) -> Result<(R, u32)>;

    /// A record will be looked at soon.
    fn ask(&self, _: Position) {}

    /// Whether its segment is gone: then something newer tells of its key.
    fn is_gone(&self, position: Position) -> bool;
}

impl<T: Records> Keys for T {
    fn key(&self, position: Position) -> Result<Vec<u8>> {
        Ok(self.look(position, <[u8]>::to_vec)?.0)
    }

    fn key_hash(&self, position: Position) -> Result<u64> {
        Ok(self.look(position, hash)?.0)
    }
}

/// Entries in the order of their keys, of which none comes twice.
pub(crate) trait Upper<'a> {
    fn current(&self) -> Option<(Known<'a>, Position)>;
    fn advance(&mut self, records: &impl Records, dead: &mut Dead) -> Result<()>;

    /// The keys from the current one on, where they are wholly known.
    fn keys_ahead(&self) -> impl Iterator<Item = &'a [u8]> {
        iter::empty()
    }
}

/// Bytes of records that nothing refers to any more, for each segment.
#[derive(Debug, Default, Clone)]
pub(crate) struct Dead(pub(crate) HashMap<u32, u64>);

impl Dead {
    pub(crate) fn add(&mut self, position: Position, bytes: u32) {
        *self.0.entry(position.segment()).or_default() += u64::from(bytes);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().sum()
    }
}

/// A file that has fewer of its pages in use than this is written anew, leaf by leaf.
const LEAST_USE: f64 = 0.5;
/// More files than this, and the one least used is written anew.
const MOST_FILES: usize = 6;

/// Where a merge writes to.
pub(crate) struct Target<'a> {
    pub(crate) folder: &'a Folder,
    /// The number of the new file.
    pub(crate) file: u32,
    /// Nothing lies below: tombstones have done their work.
    pub(crate) is_last: bool,
    /// What a filter is made for, if the level begins with one.
    pub(crate) filter: Option<Size>,
}

impl Target<'_> {
    /// A filter with what is there already. A level that has none begins one when it is empty: what
    /// its keys are only the log knows.
    fn filter(&self, lower: Option<&Level>) -> Result<Option<FilterBuilder>> {
        match (self.filter, lower) {
            (None, _) => Ok(None),
            (Some(size), None) => Ok(Some(FilterBuilder::new(size))),
            (Some(_), Some(lower)) => lower.filter_pages().map(FilterBuilder::of).transpose(),
        }
    }
}

/// The level that is `lower` with all of `upper` in it; None if nothing is left.
pub(crate) fn merge<'a>(
    mut upper: impl Upper<'a>,
    lower: Option<&'a Level>,
    target: &Target<'a>,
    records: &'a impl Records,
    dead: &mut Dead,
) -> Result<Option<Level>> {
    let mut builder = TreeBuilder::new(target.folder, target.file, records, target.filter(lower)?);
    let rewritten = lower.map(files_to_rewrite).unwrap_or_default();
    let mut kept: HashMap<u32, u32> = HashMap::new();
    let mut leaves = lower.map(Level::leaves);
    let next_leaf = |leaves: &mut Option<Leaves<'a>>| match leaves {
        Some(leaves) => leaves.next().transpose(),
        None => Ok(None),
    };
    let mut leaf = next_leaf(&mut leaves)?;
    let mut is_first = true;
    while let (Some((id, bound)), Some(lower)) = (leaf, lower) {
        let next = next_leaf(&mut leaves)?;
        let end = next.as_ref().map(|(_, bound)| bound.as_slice());
        let page = lower.leaf(id)?;
        let is_touched = match upper.current() {
            Some((key, position)) => is_below(key, position, end, records)?,
            None => false,
        };
        if !is_touched && !rewritten.contains(&id.file) && builder.may_keep() {
            builder.keep(id, &bound, page.count())?;
            *kept.entry(id.file).or_default() += 1;
        } else {
            // What is newer may lie below all that was there.
            if !is_first {
                builder.at_bound(&bound);
            }
            ask_ahead(page, end, &upper, records);
            let mut place = 0;
            while let Some((key, position)) = upper.current() {
                if !is_below(key, position, end, records)? {
                    break;
                }
                take_below(page, &mut place, key, position, &mut builder, records, dead)?;
                push_new(key, position, &mut builder, target, records, dead)?;
                upper.advance(records, dead)?;
            }
            for place in place..page.count() {
                push_old(page, place, &mut builder, records)?;
            }
        }
        is_first = false;
        leaf = next;
    }
    while let Some((key, position)) = upper.current() {
        push_new(key, position, &mut builder, target, records, dead)?;
        upper.advance(records, dead)?;
    }
    let Some(Built { root, height, entries, file, filter }) = builder.finish()? else {
        return Ok(None);
    };
    let mut files: Vec<(Arc<IndexFile>, u32)> = Vec::new();
    if let Some(file) = file {
        let pages = file.pages();
        files.push((Arc::new(file), pages));
    }
    for (file, _) in lower.iter().flat_map(|lower| &lower.files) {
        if let Some(&pages) = kept.get(&file.id) {
            files.push((Arc::clone(file), pages));
        }
    }
    Ok(Some(Level { root, height, entries, files, filter }))
}

fn files_to_rewrite(level: &Level) -> Vec<u32> {
    let mut files: Vec<(f64, u32)> = level
        .files
        .iter()
        .map(|(file, used)| (f64::from(*used) / f64::from(file.pages()), file.id))
        .collect();
    files.sort_by(|one, other| one.0.total_cmp(&other.0));
    let too_many = files.len().saturating_sub(MOST_FILES);
    let thin = files.iter().take_while(|(used, _)| *used < LEAST_USE).count();
    files.iter().take(too_many.max(thin)).map(|(_, id)| *id).collect()
}

/// Whether a key lies below a bound; below none lies every key.
fn is_below(
    key: Known<'_>,
    position: Position,
    bound: Option<&[u8]>,
    records: &impl Records,
) -> Result<bool> {
    let Some(bound) = bound else { return Ok(true) };
    match key.compare(&Known::Whole(bound)) {
        Ordering::Less => Ok(true),
        Ordering::Greater => Ok(false),
        Ordering::Equal => match key {
            Known::Whole(_) => Ok(false),
            Known::Begin { .. } => Ok(records.look(position, |key| key < bound)?.0),
        },
    }
}

/// Asks the processor for the old records of a leaf that the keys to come replace: they lie far from
/// each other, and looking at one after the other would wait for each.
fn ask_ahead<'a>(
    page: Page<'_>,
    end: Option<&[u8]>,
    upper: &impl Upper<'a>,
    records: &impl Records,
) {
    let positions = (0..page.count()).map(|place| Position::from_bits(page.value(place)));
    if page.head(0) == page.head(page.count() - 1) {
        // Heads tell nothing: all of them are looked at.
        return positions.for_each(|position| records.ask(position));
    }
    // Where the last heads are the same, the bound alone says which keys are another leaf's.
    for key in upper.keys_ahead().take_while(|&key| end.is_none_or(|end| key < end)) {
        match page.side(key) {
            Ordering::Less => continue,
            Ordering::Equal => {}
            Ordering::Greater => return,
        }
        let head = head_at(key, page.skip());
        let place = page.below(head);
        if place == page.count() {
            return;
        }
        if page.head(place) == head {
            records.ask(Position::from_bits(page.value(place)));
        }
    }
}

/// Moves the old entries of a leaf that are below a key into the tree, and drops the one that
/// has the key itself.
fn take_below<'a, K: Keys>(
    page: Page<'a>,
    place: &mut usize,
    key: Known<'a>,
    position: Position,
    builder: &mut TreeBuilder<'a, K>,
    records: &impl Records,
    dead: &mut Dead,
) -> Result<()> {
    let count = page.count();
    // Where the whole key is known and lies within the page's prefix, heads are enough.
    let head = match key {
        Known::Whole(whole) if page.side(whole) == Ordering::Equal => {
            Some(head_at(whole, page.skip()))
        }
        _ => None,
    };
    while *place < count {
        let old = Position::from_bits(page.value(*place));
        let order = match head {
            Some(head) => page.head(*place).cmp(&head),
            None => known(page, *place).compare(&key),
        };
        match order {
            Ordering::Less => push_old(page, *place, builder, records)?,
            Ordering::Greater => return Ok(()),
            Ordering::Equal if records.is_gone(old) => {}
            Ordering::Equal => {
                let (order, size) = match key {
                    Known::Whole(key) => records.look(old, |old| old.cmp(key))?,
                    Known::Begin { .. } => {
                        let key = records.key(position)?;
                        records.look(old, |old| old.cmp(&key))?
                    }
                };
                // The record may have had to be read.
                stint::end_if_over();
                match order {
                    Ordering::Less => push_old(page, *place, builder, records)?,
                    Ordering::Greater => return Ok(()),
                    Ordering::Equal => dead.add(old, size),
                }
            }
        }
        *place += 1;
    }
    Ok(())
}

/// Takes what is newer into the tree, unless it is a tombstone that has done its work.
#[inline]
fn push_new<'a, K: Keys>(
    key: Known<'a>,
    position: Position,
    builder: &mut TreeBuilder<'a, K>,
    target: &Target<'_>,
    records: &impl Records,
    dead: &mut Dead,
) -> Result<()> {
    if !(position.is_tombstone() && target.is_last) {
        return builder.push_new(key, position);
    }
    let ((), size) = records.look(position, |_| ())?;
    dead.add(position, size);
    Ok(())
}

fn known(page: Page<'_>, place: usize) -> Known<'_> {
    Known::Begin { prefix: page.prefix(), head: page.head(place) }
}

#[inline]
fn push_old<'a, K: Keys>(
    page: Page<'a>,
    place: usize,
    builder: &mut TreeBuilder<'a, K>,
    records: &impl Records,
) -> Result<()> {
    let position = Position::from_bits(page.value(place));
    if records.is_gone(position) {
        return Ok(());
    }
    builder.push(known(page, place), position)
}

/// The newest version of each key of an L0 that nobody writes any more.
pub(crate) struct OfL0<'a> {
    entries: l0::Entries<'a>,
    current: Option<(&'a [u8], &'a l0::Version)>,
}

impl<'a> OfL0<'a> {
    pub(crate) fn new(l0: &'a l0::L0) -> Self {
        let mut entries = l0.entries();
        let current = entries.next();
        OfL0 { entries, current }
    }
}

impl<'a> OfL0<'a> {
    /// The key that comes next and its newest version.
    pub(crate) fn newest(&self) -> Option<(&'a [u8], &'a l0::Version)> {
        self.current
    }
}

impl<'a> Upper<'a> for OfL0<'a> {
    #[inline]
    fn current(&self) -> Option<(Known<'a>, Position)> {
        let (key, newest) = self.current?;
        Some((Known::Whole(key), newest.position))
    }

    fn keys_ahead(&self) -> impl Iterator<Item = &'a [u8]> {
        let current = self.current.map(|(key, _)| key);
        current.into_iter().chain(self.entries.clone().map(|(key, _)| key))
    }

    fn advance(&mut self, _: &impl Records, dead: &mut Dead) -> Result<()> {
        let mut older = self.current.and_then(|(_, newest)| newest.older());
        while let Some(version) = older {
            dead.add(version.position, version.size);
            older = version.older();
        }
        self.current = self.entries.next();
        Ok(())
    }
}

/// The entries of a level.
pub(crate) struct OfLevel<'a> {
    level: &'a Level,
    leaves: Leaves<'a>,
    page: Option<Page<'a>>,
    place: usize,
}

impl<'a> OfLevel<'a> {
    pub(crate) fn new(level: &'a Level, records: &impl Records) -> Result<Self> {
        let mut all = OfLevel { level, leaves: level.leaves(), page: None, place: 0 };
        all.next_page(records)?;
        all.skip_gone(records)?;
        Ok(all)
    }

    fn next_page(&mut self, records: &impl Records) -> Result<()> {
        let next: Option<(PageId, _)> = self.leaves.next().transpose()?;
        self.page = next.map(|(id, _)| self.level.leaf(id)).transpose()?;
        self.place = 0;
        // Their keys are looked at where the lower level has the same heads, or a filter wants them.
        if let Some(page) = self.page {
            let positions = (0..page.count()).map(|place| Position::from_bits(page.value(place)));
            positions.for_each(|position| records.ask(position));
        }
        Ok(())
    }

    fn skip_gone(&mut self, records: &impl Records) -> Result<()> {
        while let Some(page) = self.page {
            if self.place == page.count() {
                self.next_page(records)?;
            } else if records.is_gone(Position::from_bits(page.value(self.place))) {
                self.place += 1;
            } else {
                break;
            }
        }
        Ok(())
    }
}

impl<'a> Upper<'a> for OfLevel<'a> {
    fn current(&self) -> Option<(Known<'a>, Position)> {
        let page = self.page?;
        Some((known(page, self.place), Position::from_bits(page.value(self.place))))
    }

    fn advance(&mut self, records: &impl Records, _: &mut Dead) -> Result<()> {
        self.place += 1;
        self.skip_gone(records)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::level::page::{PAGE, write_leaf};
    use crate::position::Tag;

    /// Counts what is looked at ahead.
    struct Counted<'a> {
        keys: &'a [Vec<u8>],
        looked: Cell<usize>,
    }

    impl<'a> Upper<'a> for Counted<'a> {
        fn current(&self) -> Option<(Known<'a>, Position)> {
            None
        }

        fn advance(&mut self, _: &impl Records, _: &mut Dead) -> Result<()> {
            Ok(())
        }

        fn keys_ahead(&self) -> impl Iterator<Item = &'a [u8]> {
            self.keys.iter().map(|key| {
                self.looked.set(self.looked.get() + 1);
                key.as_slice()
            })
        }
    }

    #[derive(Default)]
    struct Asked(RefCell<Vec<Position>>);

    impl Records for Asked {
        fn look<R>(&self, _: Position, seen: impl FnOnce(&[u8]) -> R) -> Result<(R, u32)> {
            Ok((seen(b""), 0))
        }

        fn ask(&self, position: Position) {
            self.0.borrow_mut().push(position);
        }

        fn is_gone(&self, _: Position) -> bool {
            false
        }
    }

    /// Otherwise a merge into leaves whose heads are all the same looks at all of L0 for each of them.
    #[test]
    fn only_keys_of_the_leaf_are_looked_at_ahead() {
        let keys: Vec<Vec<u8>> =
            (0..1000).map(|number| format!("https://{number:04}").into_bytes()).collect();
        let position = |number: u32| Position::new(1, number * 8, false, Tag::of(0));
        let of_leaf = keys.iter().step_by(2).take(50);
        let (tied, told) = (of_leaf.clone(), of_leaf.clone());
        let with_another = [b"!".to_vec()];
        let with_another = with_another.iter().chain(of_leaf);
        let check = |old: &mut dyn Iterator<Item = &Vec<u8>>, prefix: &str, asked, looked| {
            let old = old.zip(1..);
            let old =
                old.map(|(key, number)| (head_at(key, prefix.len()), position(number).bits()));
            let mut page = [0; PAGE];
            write_leaf(PageId { file: 1, number: 0 }, prefix.as_bytes(), old, &mut page);
            let upper = Counted { keys: &keys, looked: Cell::new(0) };
            let records = Asked::default();
            ask_ahead(Page::new(&page), Some(b"https://0100"), &upper, &records);
            let mut all = records.0.into_inner();
            all.dedup();
            assert_eq!((all.len(), upper.looked.get()), (asked, looked));
        };
        // Of all that their keys do not tell apart.
        check(&mut tied.into_iter(), "", 50, 0);
        check(&mut with_another.into_iter(), "", 1, 101);
        // Of those that are replaced: the one behind the last of the leaf is not looked at.
        check(&mut told.into_iter(), "https://", 50, 100);
    }
}
