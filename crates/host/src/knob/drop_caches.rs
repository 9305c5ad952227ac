//! Dropping the page cache and the slabs: an action, not a lasting level.

use model::Unavailable;

use super::error::KnobRefusal;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::target::KnobTarget;
use super::write::{KnobWrite, RestoreAction};
use super::{Knob, KnobInfo, word_file};
use crate::format;
use crate::parse::kilobytes;
use crate::root::{Root, RootError};

const FILE: &str = "/proc/sys/vm/drop_caches";
const MEMINFO: &str = "/proc/meminfo";
const LEVELS: &[(&str, &str)] = &[("pages", "1"), ("slabs", "2"), ("all", "3")];

pub struct DropCaches;

/// Bytes of the page cache and of slabs that can be freed.
fn cached(root: &Root) -> Result<(u64, u64), RootError> {
    let text = root.text(MEMINFO)?;
    let bytes = |key: &str| {
        kilobytes(&text, key)
            .ok_or_else(|| RootError::malformed(MEMINFO, &text, "a list with Cached and slabs"))
    };
    Ok((bytes("Cached")?, bytes("SReclaimable")?))
}

impl Knob for DropCaches {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "drop_caches",
            what: "drops clean pages and slabs once; an action that nothing undoes",
            mechanism: "/proc/sys/vm/drop_caches, after sync(2)",
            scope: "the machine",
            proof: "Cached and SReclaimable of /proc/meminfo are smaller than before",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        if !root.exists(FILE) {
            return Err(RootError::Missing { path: FILE.to_owned() }.into());
        }
        Ok(LEVELS.iter().map(|(name, _)| (*name).to_owned()).collect())
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        self.levels(root)?;
        let (pages, slabs) = cached(root)?;
        Ok(format!("{} of pages, {} of slabs", format::bytes(pages), format::bytes(slabs)))
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        word_file::check(level, &self.levels(root)?)?;
        let (_, number) =
            LEVELS.iter().find(|(name, _)| *name == level).copied().unwrap_or(LEVELS[2]);
        let (place, new) = (KnobTarget::file(FILE), number.to_owned());
        let write = KnobWrite { place, old: None, new, after: RestoreAction::Lasting };
        Ok(KnobChange { writes: vec![write], prove: prove(cached(root)?, level.to_owned()) })
    }
}

fn prove(before: (u64, u64), level: String) -> Prove {
    Box::new(move |root| {
        let after = match cached(root) {
            Ok(after) => after,
            Err(error) => return ProofOutcome::Unverified(error.to_string()),
        };
        let text = |(pages, slabs): (u64, u64)| {
            format!("{} of pages and {} of slabs", format::bytes(pages), format::bytes(slabs))
        };
        let observed = format!("{} before, {} after", text(before), text(after));
        let (pages, slabs) = (after.0 < before.0, after.1 < before.1);
        let fell = match level.as_str() {
            "pages" => pages,
            "slabs" => slabs,
            _ => pages && slabs,
        };
        // Other processes may fill the caches as fast as they are dropped.
        if fell { ProofOutcome::Proven(observed) } else { ProofOutcome::Unverified(observed) }
    })
}
