//! The content of a device or file that is to be overwritten: file systems, members of volumes and
//! arrays, swap, encryption, partition tables, and unknown data.
//!
//! Signatures come from a table of this program, so that detection depends on no installed tool.
//! Bytes that match no signature count as content, too, unless they are zero or of an earlier
//! preconditioning.

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

/// Samples of a device between the ends that are read whole.
const SAMPLES: u64 = 64;
const BLOCK: usize = 4096;
/// The kind of unknown data.
const UNKNOWN: &str = "data";

/// Content that would be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContent {
    /// The content in words, with an article.
    pub description: String,
    /// The token by which the user allows its loss: `ext4:3f2a91c0`, the kind and the first digits of
    /// an identifier, so that tokens of two devices differ.
    pub token: String,
    /// The digits hash the content for want of an identifier, so every write changes them.
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

    /// Whether this may be a remainder of content with these tokens after a part of it was overwritten:
    /// the same content, or unknown data, as content without its signature is.
    pub(super) fn may_be_remainder_of(&self, words: &[String]) -> bool {
        let same_kind = |word: &String| FoundContent::kind(word) == FoundContent::kind(&self.token);
        words.contains(&self.token)
            || (self.by_content && words.iter().any(same_kind))
            || (self.is_unknown() && !words.is_empty())
    }
}

/// Detects the content of the first `bytes` of a device or file.
///
/// # Errors
/// It cannot be read, so its content is not known.
pub(super) fn inspect(file: &File, bytes: u64) -> io::Result<Vec<FoundContent>> {
    let area = Area::read(file, 0, bytes, area::WHOLE)?;
    let mut content = signature::all(&area);
    if let Some(table) = partitions::table(file, &area, &content)? {
        // Boot sectors of a table are no file system, and a table describes its partitions.
        content.insert(0, table);
    }
    if content.is_empty()
        && let Some(at) = first_foreign(file, &area)?
    {
        let words = format!("data of no known kind (the first of it in the block at byte {at})");
        content.push(FoundContent::new(UNKNOWN, None, &area, words));
    }
    Ok(content)
}

/// The address of the first block that is neither zero nor of a preconditioning.
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

/// Whether a block is not of a preconditioning, whose blocks begin with their own address.
fn is_foreign(at: u64, block: &[u8]) -> bool {
    let own = block.get(..8).is_some_and(|stamp| stamp == at.to_le_bytes());
    // A block of zeros is empty, and one with few other bytes is no block of random data.
    let zeros = || block.iter().filter(|byte| **byte == 0).count();
    block.iter().any(|byte| *byte != 0) && !(own && zeros() * 16 < block.len())
}

/// Bytes as the hexadecimal digits of a token.
fn digits_of(bytes: &[u8]) -> String {
    bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
