//! The table of signatures, with the offsets of label and identifier.

use super::area::Area;
use super::{FoundContent, OWN_LABEL, digits_of};

/// The offset of a structure.
#[derive(Debug, Clone, Copy)]
enum SignatureOffset {
    Begin(u64),
    /// Before the end of the device, whose size is rounded down to a multiple of the second.
    End(u64, u64),
}

/// The offset of an identifier from the signature's base.
#[derive(Debug, Clone, Copy)]
enum IdentifierOffset {
    /// 16 bytes.
    Uuid(u64),
    /// Text of this length.
    Text(u64, usize),
    /// No known identifier: a hash of the content is used.
    None,
}

struct Signature {
    kind: &'static str,
    /// With an article, for a sentence.
    name: &'static str,
    /// Possible bases of the structure.
    bases: &'static [SignatureOffset],
    /// From the base.
    magic_at: u64,
    magic: &'static [u8],
    id: IdentifierOffset,
    label: Option<(u64, usize)>,
}

const fn signature(
    (kind, name): (&'static str, &'static str),
    bases: &'static [SignatureOffset],
    (magic_at, magic): (u64, &'static [u8]),
    id: IdentifierOffset,
    label: Option<(u64, usize)>,
) -> Signature {
    Signature { kind, name, bases, magic_at, magic, id, label }
}

use SignatureOffset::{Begin, End};

const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const MD: &[u8] = &0xa92b_4efc_u32.to_le_bytes();
const MD_BIG: &[u8] = &0xa92b_4efc_u32.to_be_bytes();
const PAGES: &[SignatureOffset] = &[Begin(4096), Begin(8192), Begin(16384), Begin(65536)];
const LVM: &[SignatureOffset] = &[Begin(0), Begin(512), Begin(1024), Begin(1536)];
/// Second headers of LUKS 2.
const LUKS: &[SignatureOffset] =
    &[Begin(0x4000), Begin(0x8000), Begin(0x1_0000), Begin(0x2_0000), Begin(0x4_0000)];

/// Formats as their programs write them. `ext` and partition tables are detected elsewhere, as
/// their magic numbers have two bytes only.
const ALL: &[Signature] = &[
    signature(
        ("xfs", "an XFS file system"),
        &[Begin(0)],
        (0, b"XFSB"),
        IdentifierOffset::Uuid(32),
        Some((108, 12)),
    ),
    signature(
        ("btrfs", "a member of a btrfs file system"),
        &[Begin(65536)],
        (64, b"_BHRfS_M"),
        IdentifierOffset::Uuid(32),
        Some((299, 64)),
    ),
    signature(
        ("bcachefs", "a member of a bcachefs file system"),
        &[Begin(4096)],
        (24, BCACHEFS),
        IdentifierOffset::Uuid(56),
        Some((72, 32)),
    ),
    signature(
        ("bcache", "a bcache device"),
        &[Begin(4096)],
        (24, BCACHE),
        IdentifierOffset::Uuid(40),
        Some((72, 32)),
    ),
    signature(
        ("f2fs", "an F2FS file system"),
        &[Begin(1024), Begin(5120)],
        (0, &0xF2F5_2010_u32.to_le_bytes()),
        IdentifierOffset::Uuid(108),
        None,
    ),
    signature(
        ("jfs", "a JFS file system"),
        &[Begin(32768)],
        (0, b"JFS1"),
        IdentifierOffset::Uuid(136),
        None,
    ),
    signature(
        ("reiserfs", "a ReiserFS file system"),
        &[Begin(65536), Begin(8192)],
        (52, b"ReIsEr"),
        IdentifierOffset::Uuid(84),
        Some((100, 16)),
    ),
    signature(
        ("ocfs2", "an OCFS2 file system"),
        &[Begin(1024), Begin(2048), Begin(4096), Begin(8192)],
        (0, b"OCFSV2"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("gfs2", "a GFS2 file system"),
        &[Begin(65536)],
        (0, b"\x01\x16\x19\x70\0\0\0\x01"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("erofs", "an EROFS file system"),
        &[Begin(1024)],
        (0, &0xE0F5_E1E2_u32.to_le_bytes()),
        IdentifierOffset::Uuid(48),
        None,
    ),
    signature(
        ("squashfs", "a SquashFS image"),
        &[Begin(0)],
        (0, b"hsqs"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("iso9660", "an ISO 9660 image"),
        &[Begin(32768)],
        (1, b"CD001"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("ntfs", "an NTFS file system"),
        &[Begin(0)],
        (3, b"NTFS    "),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("exfat", "an exFAT file system"),
        &[Begin(0)],
        (3, b"EXFAT   "),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("bitlocker", "a volume encrypted by BitLocker"),
        &[Begin(0)],
        (3, b"-FVE-FS-"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("vfat", "a FAT file system"),
        &[Begin(0)],
        (82, b"FAT32"),
        IdentifierOffset::None,
        Some((71, 11)),
    ),
    signature(
        ("vfat", "a FAT file system"),
        &[Begin(0)],
        (54, b"FAT1"),
        IdentifierOffset::None,
        Some((43, 11)),
    ),
    signature(
        ("apfs", "an APFS container"),
        &[Begin(0)],
        (32, b"NXSB"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("hfsplus", "an HFS+ file system"),
        &[Begin(1024)],
        (0, b"H+\0\x04"),
        IdentifierOffset::None,
        None,
    ),
    signature(("swap", "swap space"), PAGES, (0, b""), IdentifierOffset::None, None),
    signature(
        ("luks", "a volume encrypted by LUKS"),
        &[Begin(0)],
        (0, b"LUKS\xba\xbe"),
        IdentifierOffset::Text(168, 36),
        Some((24, 40)),
    ),
    signature(
        ("luks", "the second header of a volume encrypted by LUKS"),
        LUKS,
        (0, b"SKUL\xba\xbe"),
        IdentifierOffset::Text(168, 36),
        None,
    ),
    signature(
        ("lvm", "a physical volume of LVM"),
        LVM,
        (24, b"LVM2 001"),
        IdentifierOffset::Text(32, 32),
        None,
    ),
    signature(
        ("md", "a member of an md array"),
        &[Begin(0), Begin(4096), End(8192, 4096)],
        (0, MD),
        IdentifierOffset::Uuid(16),
        Some((32, 32)),
    ),
    signature(
        ("md", "a member of an md array (0.90)"),
        &[End(65536, 65536)],
        (0, MD),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("md", "a member of an md array (0.90)"),
        &[End(65536, 65536)],
        (0, MD_BIG),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("imsm", "a member of an Intel RAID"),
        &[End(1024, 512), End(8192, 4096)],
        (0, b"Intel Raid ISM Cfg Sig. "),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("ddf", "a member of a DDF RAID"),
        &[End(512, 512)],
        (0, b"\xde\x11\xde\x11"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("drbd", "a DRBD device"),
        &[End(4096, 4096)],
        (60, b"\x83\x74\x02"),
        IdentifierOffset::None,
        None,
    ),
    signature(
        ("stratis", "a Stratis device"),
        &[Begin(512), Begin(4608)],
        (4, b"!Stra0tis\x86\xff\x02^\x41rh"),
        IdentifierOffset::Text(32, 32),
        None,
    ),
    signature(
        ("bluestore", "a Ceph BlueStore device"),
        &[Begin(0)],
        (0, b"bluestore block device"),
        IdentifierOffset::Text(23, 36),
        None,
    ),
    signature(
        ("verity", "hashes of dm-verity"),
        &[Begin(0)],
        (0, b"verity\0\0"),
        IdentifierOffset::Uuid(16),
        None,
    ),
    signature(
        ("integrity", "a dm-integrity device"),
        &[Begin(0)],
        (0, b"integrt\0"),
        IdentifierOffset::None,
        None,
    ),
    signature(("vdo", "a VDO volume"), &[Begin(0)], (0, b"dmvdo001"), IdentifierOffset::None, None),
    signature(
        ("asm", "a disk of Oracle ASM"),
        &[Begin(0)],
        (32, b"ORCLDISK"),
        IdentifierOffset::None,
        Some((40, 24)),
    ),
];

/// All content that has a known signature.
pub(super) fn all(area: &Area) -> Vec<FoundContent> {
    let mut found: Vec<FoundContent> = Vec::new();
    found.extend(Ext4::of(area).map(|ext| ext.found(area)));
    found.extend(zfs(area));
    for signature in ALL {
        found.extend(signature.bases.iter().filter_map(|base| signature.found(area, *base)));
    }
    // A structure and its copy count once.
    let mut tokens: Vec<String> = Vec::new();
    found.retain(|one| {
        let new = !tokens.contains(&one.token);
        tokens.push(one.token.clone());
        new
    });
    found
}

impl SignatureOffset {
    fn offset(self, area: &Area) -> Option<u64> {
        match self {
            Begin(offset) => Some(offset),
            End(before, multiple) => (area.bytes / multiple * multiple).checked_sub(before),
        }
    }
}

impl Signature {
    fn found(&self, area: &Area, base: SignatureOffset) -> Option<FoundContent> {
        let base = base.offset(area)?;
        if self.kind == "swap" {
            return swap(area, base);
        }
        if !area.is_at(base + self.magic_at, self.magic) {
            return None;
        }
        let (digits, uuid) = match self.id {
            IdentifierOffset::Uuid(at) => of_uuid(area.at(base + at, 16)?),
            IdentifierOffset::Text(at, length) => of_text(area.text(base + at, length)),
            IdentifierOffset::None => (None, None),
        };
        let label = self.label.and_then(|(at, length)| area.text(base + at, length));
        let words = described(self.name, label.as_deref(), uuid.as_deref(), None);
        Some(FoundContent::new(self.kind, digits, area, words))
    }
}

/// A name with label and identifier.
fn described(name: &str, label: Option<&str>, uuid: Option<&str>, more: Option<String>) -> String {
    let label = label.map(|label| format!(" `{label}`")).unwrap_or_default();
    let uuid = uuid.map(|uuid| format!("UUID {uuid}"));
    let more: Vec<String> = uuid.into_iter().chain(more).collect();
    match more.is_empty() {
        true => format!("{name}{label}"),
        false => format!("{name}{label} ({})", more.join(", ")),
    }
}

type Identifier = (Option<String>, Option<String>);

/// The digits of a token and the whole identifier.
fn of_uuid(bytes: &[u8]) -> Identifier {
    if bytes.iter().all(|byte| *byte == 0) {
        return (None, None);
    }
    (Some(digits_of(bytes)), Some(uuid(bytes)))
}

fn of_text(text: Option<String>) -> Identifier {
    let digits: String = text
        .iter()
        .flat_map(|text| text.chars())
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect();
    (Some(digits).filter(|digits| digits.len() == 8), text)
}

/// In the usual form of 36 letters.
fn uuid(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default().to_owned();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}

/// `end` is that of the first page, whose size is the machine's that made it.
fn swap(area: &Area, end: u64) -> Option<FoundContent> {
    let is = |magic: &[u8; 10]| area.is_at(end - 10, magic);
    if !is(b"SWAPSPACE2") && !is(b"SWAP-SPACE") {
        return None;
    }
    let (digits, uuid) = of_uuid(area.at(1036, 16)?);
    let label = area.text(1052, 16);
    let words = described("swap space", label.as_deref(), uuid.as_deref(), None);
    Some(FoundContent::new("swap", digits, area, words))
}

/// Labels of ZFS stand twice at each end; the uberblocks in them have the magic number, in the
/// order of bytes of the machine that wrote them.
fn zfs(area: &Area) -> Option<FoundContent> {
    const LABEL: u64 = 256 << 10;
    let end = area.bytes / LABEL * LABEL;
    let bases = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let magic = 0x00ba_b10c_u64;
    let is_label = |base: &u64| {
        let mut uberblocks = (0..128).map(|at| base + (128 << 10) + at * 1024);
        uberblocks
            .any(|at| area.is_at(at, &magic.to_le_bytes()) || area.is_at(at, &magic.to_be_bytes()))
    };
    let base = bases.into_iter().flatten().find(is_label)?;
    // The name of the pool in the label's list of pairs: its key, the type of a text, one of it.
    let pairs = area.at(base + (16 << 10), 112 << 10)?;
    let key = b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01";
    let at = pairs.windows(key.len()).position(|part| part == key);
    let name = at.and_then(|at| {
        let from = at + key.len();
        let length = u32::from_be_bytes(pairs.get(from..from + 4)?.try_into().ok()?);
        let text = pairs.get(from + 4..(from + 4).checked_add(length.min(64) as usize)?)?;
        super::area::plain(&String::from_utf8_lossy(text))
    });
    let words = described("a member of a ZFS pool", name.as_deref(), None, None);
    Some(FoundContent::new("zfs", None, area, words))
}

/// The superblock of ext2, ext3 or ext4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::precondition) struct Ext4 {
    kind: &'static str,
    pub(in crate::precondition) label: Option<String>,
    /// 36 letters.
    pub(in crate::precondition) uuid: String,
    digits: Option<String>,
    mounted: Option<String>,
}

impl Ext4 {
    pub(super) fn of(area: &Area) -> Option<Ext4> {
        const AT: u64 = 1024;
        // A size of blocks and a revision that there are: two bytes may be there by chance.
        let is_block_size = area.u32(AT + 24)? <= 6;
        if area.u16(AT + 56)? != 0xEF53 || !is_block_size || area.u32(AT + 76)? > 1 {
            return None;
        }
        let (compatible, incompatible) = (area.u32(AT + 92)?, area.u32(AT + 96)?);
        let kind = match (incompatible & 0x2c0 != 0, compatible & 4 != 0) {
            (true, _) => "ext4",
            (false, true) => "ext3",
            (false, false) => "ext2",
        };
        let id = area.at(AT + 104, 16)?;
        Some(Ext4 {
            kind,
            label: area.text(AT + 120, 16),
            uuid: uuid(id),
            digits: of_uuid(id).0,
            mounted: area.text(AT + 136, 64),
        })
    }

    /// That of a device.
    pub(in crate::precondition) fn read(
        file: &std::fs::File,
        bytes: u64,
    ) -> std::io::Result<Option<Ext4>> {
        Ok(Ext4::of(&Area::read(file, 0, bytes.min(1 << 16), super::area::PART)?))
    }

    fn found(&self, area: &Area) -> FoundContent {
        let name = format!("an {} file system", self.kind);
        let mounted = self.mounted.as_ref().map(|place| format!("last mounted at {place}"));
        let words = described(&name, self.label.as_deref(), Some(&self.uuid), mounted);
        let mut found = FoundContent::new(self.kind, self.digits.clone(), area, words);
        if self.label.as_deref() == Some(OWN_LABEL) {
            // It has no value beyond the evaluation, so a script may name it.
            found.token = OWN_LABEL.to_owned();
        }
        found
    }
}
