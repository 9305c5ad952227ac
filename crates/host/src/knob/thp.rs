//! Transparent huge pages.

#![allow(unsafe_code, reason = "madvise has no safe form")]

use model::Unavailable;
use nix::sys::mman::{MmapAdvise, madvise};
use std::ffi::c_void;
use std::ptr::NonNull;

use super::error::KnobRefusal;
use super::plan::KnobChange;
use super::proof::{ProofOutcome, Prove};
use super::{Knob, KnobInfo, word_file};
use crate::facts::memory::THP;
use crate::format;
use crate::parse::kilobytes;
use crate::root::Root;

const SMAPS: &str = "/proc/self/smaps";
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

pub struct Thp;

impl Knob for Thp {
    fn info(&self) -> &'static KnobInfo {
        &KnobInfo {
            name: "thp",
            what: "transparent huge pages",
            mechanism: "/sys/kernel/mm/transparent_hugepage/enabled",
            scope: "the machine, for memory that is touched from then on",
            proof: "AnonHugePages of memory that is touched, with and without madvise",
        }
    }

    fn levels(&self, root: &Root) -> Result<Vec<String>, Unavailable> {
        Ok(word_file::words(&root.value(THP)?))
    }

    fn read(&self, root: &Root) -> Result<String, Unavailable> {
        Ok(root.selected(THP)?)
    }

    fn plan(&self, root: &Root, level: &str) -> Result<KnobChange, KnobRefusal> {
        word_file::check(level, &["always", "madvise", "never"].map(str::to_owned))?;
        word_file::plan_writes(root, [THP.to_owned()], level, prove(level.to_owned()))
    }
}

fn prove(level: String) -> Prove {
    Box::new(move |root| {
        if !root.is_live() {
            return ProofOutcome::Unverified(
                "a recorded machine has no memory to touch".to_owned(),
            );
        }
        let (plain, advised) = match (huge(root, false), huge(root, true)) {
            (Ok(plain), Ok(advised)) => (plain, advised),
            (Err(why), _) | (_, Err(why)) => return ProofOutcome::Unverified(why),
        };
        let observed = format!(
            "of touched memory {} are huge pages, {} with madvise",
            format::bytes(plain),
            format::bytes(advised)
        );
        match level.as_str() {
            "never" if plain + advised == 0 => ProofOutcome::Proven(observed),
            "madvise" if plain == 0 && advised > 0 => ProofOutcome::Proven(observed),
            "always" if plain > 0 => ProofOutcome::Proven(observed),
            "always" | "madvise" if plain == 0 => {
                ProofOutcome::Unverified(format!("{observed}; memory may be too fragmented"))
            }
            _ => ProofOutcome::Refuted(observed),
        }
    })
}

/// Touches memory and returns how many bytes of it lie on huge pages.
fn huge(root: &Root, advise: bool) -> Result<u64, String> {
    let mut memory: Vec<u8> = Vec::with_capacity(6 * HUGE);
    let spare = memory.spare_capacity_mut();
    let start = spare.as_mut_ptr().align_offset(HUGE);
    let part = spare.get_mut(start..start + 4 * HUGE).ok_or("no memory to touch")?;
    let address = NonNull::from(&mut *part).cast::<c_void>();
    if advise {
        // SAFETY: the range is page-aligned and lies in `memory`, which has no other owner; the
        // advice changes how it is backed and not what it holds.
        unsafe { madvise(address, 4 * HUGE, MmapAdvise::MADV_HUGEPAGE) }
            .map_err(|error| format!("madvise: {}", error.desc()))?;
    }
    for byte in part.iter_mut().step_by(PAGE) {
        byte.write(1);
    }
    let address = address.as_ptr() as usize;
    let text = root.text(SMAPS).map_err(|error| error.to_string())?;
    let bytes = anonymous_huge(&text, address).ok_or("the memory is in no line of smaps")?;
    drop(memory);
    Ok(bytes)
}

/// AnonHugePages of the mapping in which an address lies.
fn anonymous_huge(smaps: &str, address: usize) -> Option<u64> {
    let mut lines = smaps.lines();
    lines.find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.is_some_and(|(from, to)| {
            let bound = |text| usize::from_str_radix(text, 16);
            matches!((bound(from), bound(to)), (Ok(from), Ok(to)) if (from..to).contains(&address))
        })
    })?;
    kilobytes(lines.find(|line| line.starts_with("AnonHugePages:"))?, "AnonHugePages")
}
