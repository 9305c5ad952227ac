//! What lies on a device or in a file that is to be overwritten: file systems, members of volumes
//! and arrays, swap, encryption, partition tables, and data of no known kind.
//!
//! Signatures are looked for by a table of this program's own, so that nothing depends on which
//! tools are installed. What the table does not know is not taken for nothing: any byte that is
//! neither zero nor of an earlier preconditioning is content, too.

mod area;
mod partitions;
mod signature;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;

use area::Area;

pub(super) use signature::Ext4;

/// The label of file systems that kvmeter makes.
pub(super) const OWN_LABEL: &str = "kvmeter-mbwu";

/// A device is sampled in so many places between what is read whole at its ends.
const SAMPLES: u64 = 64;
const BLOCK: usize = 4096;
/// The kind of what has no known one.
const UNKNOWN: &str = "data";

/// Something that would be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContent {
    /// What is on it, with an article.
    pub description: String,
    /// By this word it is allowed to be lost: `ext4:3f2a91c0`, the kind and the first digits of an
    /// identifier, so that the word for one device is not that for another.
    pub token: String,
    /// The digits are of the content, for want of an identifier: whatever is written changes them.
    by_content: bool,
}

impl FoundContent {
    fn new(kind: &str, digits: Option<String>, area: &Area, words: String) -> FoundContent {
        let by_content = digits.is_none();
        let digits = digits.unwrap_or_else(|| area.digits());
        FoundContent { description: words, token: format!("{kind}:{digits}"), by_content }
    }

    fn kind(word: &str) -> &str {
        word.split_once(':').map_or(word, |(kind, _)| kind)
    }

    /// Data of no known kind.
    fn is_unknown(&self) -> bool {
        FoundContent::kind(&self.token) == UNKNOWN
    }

    /// Whether it may be what is left of what had these words before a part of it was overwritten:
    /// the same, or data of no known kind, which whatever lost its signature is.
    pub(super) fn may_be_remainder_of(&self, words: &[String]) -> bool {
        let same_kind = |word: &String| FoundContent::kind(word) == FoundContent::kind(&self.token);
        words.contains(&self.token)
            || (self.by_content && words.iter().any(same_kind))
            || (self.is_unknown() && !words.is_empty())
    }
}

/// Looks at the first `bytes` of a device or file.
///
/// # Errors
/// It cannot be read: then it is not known what is on it.
pub(super) fn inspect(file: &File, bytes: u64) -> io::Result<Vec<FoundContent>> {
    let area = Area::read(file, 0, bytes, area::WHOLE)?;
    let mut found = signature::all(&area);
    if let Some(table) = partitions::table(file, &area, &found)? {
        // Boot sectors of a table are no file system, and a table says what its partitions hold.
        found.insert(0, table);
    }
    if found.is_empty()
        && let Some(at) = first_foreign(file, &area)?
    {
        let words = format!("data of no known kind (the first of it in the block at byte {at})");
        found.push(FoundContent::new(UNKNOWN, None, &area, words));
    }
    Ok(found)
}

/// Where the first block is that is neither zero nor what a preconditioning wrote.
fn first_foreign(file: &File, area: &Area) -> io::Result<Option<u64>> {
    for (at, block) in area.blocks() {
        if is_foreign(at, block) {
            return Ok(Some(at));
        }
    }
    let Some((begin, end)) = area.gap() else { return Ok(None) };
    let step = ((end - begin) / SAMPLES).max(BLOCK as u64);
    let mut block = vec![0; BLOCK];
    for at in (begin..end).step_by(step as usize).map(|at| at / BLOCK as u64 * BLOCK as u64) {
        let most = (end - at).min(BLOCK as u64) as usize;
        std::os::unix::fs::FileExt::read_exact_at(file, &mut block[..most], at)?;
        if is_foreign(at, &block[..most]) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Blocks of a preconditioning begin with their own address.
fn is_foreign(at: u64, block: &[u8]) -> bool {
    let own = block.get(..8).is_some_and(|stamp| stamp == at.to_le_bytes());
    // Nothing behind the address of 0 but zeros is nothing at all, and few bytes are no block of
    // random data.
    let zeros = || block.iter().filter(|byte| **byte == 0).count();
    block.iter().any(|byte| *byte != 0) && !(own && zeros() * 16 < block.len())
}

/// A number as the hexadecimal digits of a word.
fn digits_of(bytes: &[u8]) -> String {
    bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
