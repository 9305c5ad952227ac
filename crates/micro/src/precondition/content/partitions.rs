//! Partition tables, whether the kernel has read them or not, and the content of their partitions.

use std::fs::File;
use std::io;

use super::area::{Area, PART, plain};
use super::{FoundContent, digits_of, signature};

/// Partitions that are inspected and listed.
const MAX_LISTED: usize = 16;

struct Partition {
    begin: u64,
    bytes: u64,
    name: Option<String>,
}

/// The table of a device, if it has one.
pub(super) fn table(
    file: &File,
    area: &Area,
    file_systems: &[FoundContent],
) -> io::Result<Option<FoundContent>> {
    let (kind, name, digits, partitions) = match (gpt(area), mbr(area, file_systems)) {
        (Some((digits, partitions)), _) => ("gpt", "a GPT partition table", digits, partitions),
        (None, Some((digits, partitions))) => ("mbr", "an MBR partition table", digits, partitions),
        (None, None) => return Ok(None),
    };
    let count = partitions.len();
    let mut descriptions = Vec::new();
    for partition in partitions.into_iter().take(MAX_LISTED) {
        descriptions.push(partition.describe(file, area.bytes)?);
    }
    if count > MAX_LISTED {
        descriptions.push(format!("and {} more", count - MAX_LISTED));
    }
    let words = match count {
        0 => format!("{name} without partitions"),
        1 => format!("{name} with 1 partition: {}", descriptions.join("; ")),
        _ => format!("{name} with {count} partitions: {}", descriptions.join("; ")),
    };
    Ok(Some(FoundContent::new(kind, Some(digits), area, words)))
}

impl Partition {
    fn describe(&self, file: &File, device: u64) -> io::Result<String> {
        let contents = match self.begin.checked_add(self.bytes) {
            Some(end) if end <= device && self.bytes > 0 => {
                let area = Area::read(file, self.begin, self.bytes, PART)?;
                signature::all(&area).into_iter().map(|found| found.description).collect()
            }
            _ => vec!["beyond the end of the device".to_owned()],
        };
        let contents = match contents.is_empty() {
            true => "nothing of a known kind".to_owned(),
            false => contents.join(" and "),
        };
        Ok(match &self.name {
            Some(name) => format!("`{name}`: {contents}"),
            None => contents,
        })
    }
}

/// The first table, or its copy at the end.
fn gpt(area: &Area) -> Option<(String, Vec<Partition>)> {
    let last = |sector: u64| (area.bytes / sector * sector).checked_sub(sector);
    let headers = [(512, Some(512)), (4096, Some(4096)), (512, last(512)), (4096, last(4096))];
    let (sector, header) = headers
        .into_iter()
        .filter_map(|(sector, at)| Some((sector, at?)))
        .find(|(_, at)| area.is_at(*at, b"EFI PART"))?;
    let digits = digits_of(area.at(header + 56, 16)?);
    let entries = area.u64(header + 72).and_then(|block| block.checked_mul(sector));
    let count = u64::from(area.u32(header + 80)?.min(256));
    let size = u64::from(area.u32(header + 84)?.clamp(128, 4096));
    let entry = |number: u64| {
        let at = entries?.checked_add(number * size)?;
        let is_used = area.at(at, 16)?.iter().any(|byte| *byte != 0);
        let (first, end) = (area.u64(at + 32)?, area.u64(at + 40)?);
        is_used.then(|| Partition {
            begin: first.saturating_mul(sector),
            bytes: (end.saturating_sub(first)).saturating_add(1).saturating_mul(sector),
            name: name(area.at(at + 56, 72).unwrap_or_default()),
        })
    };
    Some((digits, (0..count).filter_map(entry).collect()))
}

/// UTF-16 up to a zero.
fn name(bytes: &[u8]) -> Option<String> {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    plain(&String::from_utf16_lossy(&units))
}

/// The boot sectors of FAT, NTFS and their like end as a table does.
fn mbr(area: &Area, file_systems: &[FoundContent]) -> Option<(String, Vec<Partition>)> {
    const ENTRIES: u64 = 446;
    let boots = ["vfat:", "ntfs:", "exfat:", "bitlocker:"];
    let is_boot = |found: &FoundContent| boots.iter().any(|kind| found.token.starts_with(kind));
    if !area.is_at(510, b"\x55\xaa") || file_systems.iter().any(is_boot) {
        return None;
    }
    let entry = |number: u64| {
        let entry = area.at(ENTRIES + number * 16, 16)?;
        let at = ENTRIES + number * 16;
        let (first, sectors) = (u64::from(area.u32(at + 8)?), u64::from(area.u32(at + 12)?));
        Some((entry[0], entry[4], first * 512, sectors * 512))
    };
    let entries: Vec<_> = (0..4).filter_map(entry).collect();
    // A valid entry is active or not.
    if entries.len() != 4 || entries.iter().any(|(active, ..)| active & 0x7f != 0) {
        return None;
    }
    let used = entries.into_iter().filter(|(_, kind, ..)| *kind != 0);
    let partitions =
        used.map(|(.., begin, bytes)| Partition { begin, bytes, name: None }).collect();
    Some((digits_of(area.at(440, 4)?), partitions))
}
