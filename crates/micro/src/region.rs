//! Memory with chosen page size and NUMA placement.
#![allow(unsafe_code, reason = "mappings and memory policies have no safe form")]

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::str::FromStr;

use model::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::MicroError;

/// Bytes of a line of the caches of every processor that kvmeter knows.
pub const LINE: usize = 64;
/// A transparent huge page of x86-64 and of Arm with 4 KiB pages.
const HUGE: usize = 2 << 20;
/// Pages whose node is looked up at most.
const MAX_SAMPLED_PAGES: usize = 4096;
const MPOL_MF_STRICT_OFF: libc::c_uint = 0;

/// The pages under a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageSize {
    /// The system's default.
    #[default]
    System,
    /// Huge pages by `madvise`; whether the kernel gave them is looked up.
    Huge,
    /// Small pages by `madvise`.
    Small,
    /// From the pool of huge pages that the administrator reserved.
    Reserved,
}

impl FromStr for PageSize {
    type Err = String;
    fn from_str(text: &str) -> Result<PageSize, String> {
        match text {
            "system" => Ok(PageSize::System),
            "huge" => Ok(PageSize::Huge),
            "small" => Ok(PageSize::Small),
            "reserved" => Ok(PageSize::Reserved),
            _ => Err(format!("`{text}` is not one of system, huge, small, reserved")),
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PageSize::System => "system",
            PageSize::Huge => "huge",
            PageSize::Small => "small",
            PageSize::Reserved => "reserved",
        })
    }
}

/// The NUMA node of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// On the node of the thread that touches a page first.
    #[default]
    FirstTouch,
    Node(u32),
    /// On all nodes in turn.
    Interleave,
}

impl FromStr for Placement {
    type Err = String;
    fn from_str(text: &str) -> Result<Placement, String> {
        match text {
            "first-touch" => Ok(Placement::FirstTouch),
            "interleave" => Ok(Placement::Interleave),
            _ => text
                .strip_prefix("node:")
                .and_then(|number| number.parse().ok())
                .map(Placement::Node)
                .ok_or_else(|| format!("`{text}` is not one of first-touch, interleave, node:N")),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::FirstTouch => f.write_str("first-touch"),
            Placement::Node(node) => write!(f, "node:{node}"),
            Placement::Interleave => f.write_str("interleave"),
        }
    }
}

/// A private anonymous mapping, zero and not touched yet.
pub struct Region {
    at: NonNull<u8>,
    bytes: usize,
    /// What is mapped: `bytes` rounded up to pages, with room to begin on a huge page.
    mapped: (NonNull<u8>, usize),
}

// SAFETY: a region owns its memory alone, as a box does; nothing of it is tied to a thread.
unsafe impl Send for Region {}
// SAFETY: through a shared reference the memory is only read.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes` bytes; they begin on a boundary of 2 MiB.
    ///
    /// # Errors
    /// No memory, no such node, no reserved huge pages.
    pub fn map(bytes: u64, pages: PageSize, placement: Placement) -> Result<Region, MicroError> {
        let too_much = || MicroError::request("size", format!("{} cannot be mapped", Bytes(bytes)));
        let bytes = usize::try_from(bytes).map_err(|_| too_much())?;
        if bytes == 0 {
            return Err(MicroError::request("size", "must be more than zero"));
        }
        let whole = bytes.checked_next_multiple_of(HUGE).ok_or_else(too_much)?;
        let length = match pages {
            PageSize::Reserved => whole,
            _ => whole.checked_add(HUGE).ok_or_else(too_much)?,
        };
        let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        if pages == PageSize::Reserved {
            // Reserved pages are claimed at once: a touch that finds none would kill the process.
            flags |= libc::MAP_HUGETLB;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping at a place that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
        let why = std::io::Error::last_os_error();
        let mapped = match NonNull::new(at.cast::<u8>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => at,
            _ if pages == PageSize::Reserved => {
                return Err(MicroError::request(
                    "pages",
                    format!(
                        "{} of reserved huge pages are not available ({why}); reserve {} of them \
                         in /proc/sys/vm/nr_hugepages, or use `huge`",
                        Bytes(bytes as u64),
                        whole / HUGE
                    ),
                ));
            }
            _ => {
                return Err(MicroError::request(
                    "size",
                    format!("{} cannot be mapped: {why}", Bytes(bytes as u64)),
                ));
            }
        };
        let skip = mapped.as_ptr().align_offset(HUGE).min(length - bytes);
        // SAFETY: `skip` is smaller than the mapping.
        let at = unsafe { mapped.add(skip) };
        // From here on the mapping is dropped with the region.
        let region = Region { at, bytes, mapped: (mapped, length) };
        region.advise(pages)?;
        region.place(placement)?;
        Ok(region)
    }

    fn advise(&self, pages: PageSize) -> Result<(), MicroError> {
        let advice = match pages {
            PageSize::System | PageSize::Reserved => return Ok(()),
            PageSize::Huge => libc::MADV_HUGEPAGE,
            PageSize::Small => libc::MADV_NOHUGEPAGE,
        };
        let (at, length) = self.mapped;
        // SAFETY: the whole mapping is ours, and the advice changes none of its content.
        match unsafe { libc::madvise(at.as_ptr().cast(), length, advice) } {
            0 => Ok(()),
            _ if pages == PageSize::Small => Ok(()), // A kernel without huge pages gives none.
            _ => Err(MicroError::request(
                "pages",
                format!(
                    "the kernel has no transparent huge pages ({}); use `system`",
                    std::io::Error::last_os_error()
                ),
            )),
        }
    }

    fn place(&self, placement: Placement) -> Result<(), MicroError> {
        let mut mask = [0_u64; 16];
        let mode = match placement {
            Placement::FirstTouch => return Ok(()),
            Placement::Node(node) => {
                let word = mask.get_mut(node as usize / 64).ok_or_else(|| {
                    MicroError::request("place", format!("there is no NUMA node {node}"))
                })?;
                *word |= 1 << (node % 64);
                libc::MPOL_BIND
            }
            Placement::Interleave => {
                mask = allowed_nodes()?;
                libc::MPOL_INTERLEAVE
            }
        };
        let (at, length) = self.mapped;
        // SAFETY: the mapping is ours and not touched yet; the mask has as many bits as are stated.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                at.as_ptr(),
                length,
                mode,
                mask.as_ptr(),
                mask.len() * 64,
                MPOL_MF_STRICT_OFF,
            )
        };
        match answer {
            0 => Ok(()),
            _ => Err(MicroError::request(
                "place",
                format!(
                    "memory cannot be placed {placement}: {}; `kvmeter doctor` lists the nodes, \
                     and `first-touch` always works",
                    std::io::Error::last_os_error()
                ),
            )),
        }
    }

    /// The region as a slice.
    pub(crate) fn as_mut_slice<T: PlainData>(&mut self) -> &mut [T] {
        let count = self.bytes / size_of::<T>();
        // SAFETY: the mapping is at least so long, page-aligned, zeroed, and borrowed as a whole;
        // every pattern of bits is a `T`.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().cast(), count) }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Where the region begins.
    pub(crate) fn start(&self) -> *const u8 {
        self.at.as_ptr()
    }

    /// Touched pages on each NUMA node, in a sample.
    pub fn nodes(&self) -> BTreeMap<u32, usize> {
        let page = page_size();
        let step = (self.bytes / page / MAX_SAMPLED_PAGES).max(1) * page;
        let addresses: Vec<*const u8> = (0..self.bytes)
            .step_by(step)
            .map(|offset| self.at.as_ptr().wrapping_add(offset).cast_const())
            .collect();
        let mut status = vec![-1_i32; addresses.len()];
        // SAFETY: without target nodes the call moves nothing; it fills one status an address.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                addresses.len(),
                addresses.as_ptr(),
                std::ptr::null::<i32>(),
                status.as_mut_ptr(),
                0,
            )
        };
        let mut nodes = BTreeMap::new();
        if answer == 0 {
            for node in status.into_iter().filter_map(|node| u32::try_from(node).ok()) {
                *nodes.entry(node).or_default() += 1;
            }
        }
        nodes
    }

    /// Bytes of the region that are on huge pages now, from `/proc/self/smaps`. The kernel may have
    /// merged several regions into one mapping: then those of the others count too, up to the size of
    /// the region.
    ///
    /// # Errors
    /// That file cannot be read, or says nothing of the region.
    pub fn huge_bytes(&self) -> Result<u64, String> {
        let text = std::fs::read_to_string("/proc/self/smaps")
            .map_err(|error| format!("/proc/self/smaps: {error}"))?;
        let range = self.at.as_ptr() as u64..self.at.as_ptr() as u64 + self.bytes as u64;
        let huge = huge_bytes_in(&text, &range);
        let huge = huge.ok_or_else(|| "/proc/self/smaps lacks the mapping".to_owned())?;
        Ok(huge.min(self.bytes as u64))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let (at, length) = self.mapped;
        // SAFETY: the mapping is ours, whole, and nothing borrows it any more.
        unsafe { libc::munmap(at.as_ptr().cast(), length) };
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for u64 {}
    impl Sealed for usize {}
}

/// Number types for which every bit pattern is valid.
pub(crate) trait PlainData: sealed::Sealed {}
impl PlainData for f64 {}
impl PlainData for u64 {}
impl PlainData for usize {}

/// The nodes on which this process may have memory, as a mask for the memory calls.
fn allowed_nodes() -> Result<[u64; 16], MicroError> {
    const MPOL_F_MEMS_ALLOWED: libc::c_int = 1 << 2;
    let mut mask = [0_u64; 16];
    // SAFETY: the mask has as many bits as are stated; no address and no mode are asked for.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            std::ptr::null_mut::<libc::c_int>(),
            mask.as_mut_ptr(),
            mask.len() * 64,
            std::ptr::null::<u8>(),
            MPOL_F_MEMS_ALLOWED,
        )
    };
    match answer {
        0 => Ok(mask),
        _ => Err(MicroError::request(
            "place",
            format!(
                "the kernel does not report the NUMA nodes: {}; use `first-touch`",
                std::io::Error::last_os_error()
            ),
        )),
    }
}

fn page_size() -> usize {
    // SAFETY: a question that takes no pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096).max(1)
}

/// The bytes on huge pages of the mappings that overlap `range`; `None` where there are none.
fn huge_bytes_in(smaps: &str, range: &std::ops::Range<u64>) -> Option<u64> {
    let mut inside = false;
    let mut total = None;
    for line in smaps.lines() {
        if let Some((start, end)) = bounds(line) {
            inside = start < range.end && end > range.start;
            if inside {
                total.get_or_insert(0);
            }
        } else if inside
            && let Some((name, value)) = line.split_once(':')
            && ["AnonHugePages", "Private_Hugetlb"].contains(&name)
        {
            let kib: u64 = value.trim().trim_end_matches("kB").trim().parse().ok()?;
            *total.get_or_insert(0) += kib * 1024;
        }
    }
    total
}

/// The bounds at the head of a mapping in smaps: `7f00-7f10 rw-p ...`.
fn bounds(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_somewhere_once_they_are_touched() {
        let mut region = Region::map(1 << 20, PageSize::Small, Placement::FirstTouch).unwrap();
        assert_eq!(region.start().align_offset(HUGE), 0);
        let words = region.as_mut_slice::<u64>();
        assert_eq!(words.len(), 1 << 17);
        assert!(words.iter().all(|word| *word == 0));
        words.fill(7);
        let nodes = region.nodes();
        // A sandbox may refuse the question; then nothing is claimed.
        assert!(nodes.is_empty() || nodes.values().sum::<usize>() == (1 << 20) / page_size());
        assert_eq!(region.huge_bytes(), Ok(0));
    }

    #[test]
    fn refuses_impossible_settings_by_key() {
        let key = |fault: Option<MicroError>| match fault {
            Some(MicroError::Request { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        let map = |bytes, placement| Region::map(bytes, PageSize::System, placement).err();
        assert_eq!(key(map(0, Placement::FirstTouch)), "size");
        assert_eq!(key(map(u64::MAX, Placement::FirstTouch)), "size");
        assert_eq!(key(map(1 << 40 << 10, Placement::FirstTouch)), "size");
        assert_eq!(key(map(4096, Placement::Node(1023))), "place");
        assert_eq!(key(map(4096, Placement::Node(5000))), "place");
    }

    #[test]
    fn huge_pages_are_counted_in_the_overlapping_mappings() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nAnonHugePages:      2048 kB\n\
                     3000-4000 rw-p 0 00:00 0 [heap]\nAnonHugePages:      4096 kB\n\
                     VmFlags: rd wr\n";
        assert_eq!(huge_bytes_in(smaps, &(0x1000..0x3000)), Some(2 << 20));
        assert_eq!(huge_bytes_in(smaps, &(0x2000..0x3001)), Some(6 << 20));
        assert_eq!(huge_bytes_in(smaps, &(0x5000..0x6000)), None);
    }

    #[test]
    fn settings_parse_as_displayed() {
        for pages in [PageSize::System, PageSize::Huge, PageSize::Small, PageSize::Reserved] {
            assert_eq!(pages.to_string().parse(), Ok(pages));
        }
        for place in [Placement::FirstTouch, Placement::Node(3), Placement::Interleave] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        assert!("big".parse::<PageSize>().is_err() && "node:x".parse::<Placement>().is_err());
    }
}
