use std::fs::File;
use std::os::unix::fs::FileExt;

use super::*;

const MIB: u64 = 1 << 20;

fn blank(bytes: u64) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(bytes).unwrap();
    file
}

/// Bytes at a place.
type Part<'a> = (u64, &'a [u8]);

/// The content detected on a disk of this size with these parts.
fn found(bytes: u64, content: &[Part<'_>]) -> Vec<FoundContent> {
    let file = blank(bytes);
    for (at, part) in content {
        file.write_all_at(part, *at).unwrap();
    }
    inspect(&file, bytes).unwrap()
}

fn only(bytes: u64, content: &[Part<'_>]) -> FoundContent {
    let found = found(bytes, content);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

const UUID: &[u8] = b"\x3f\x2a\x91\xc0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc";

fn ext4(label: &[u8], uuid: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 1024];
    block[24] = 2;
    block[56..58].copy_from_slice(&[0x53, 0xef]);
    block[76] = 1;
    block[96..100].copy_from_slice(&0x2c2_u32.to_le_bytes());
    block[104..120].copy_from_slice(uuid);
    block[120..120 + label.len()].copy_from_slice(label);
    block[136..140].copy_from_slice(b"/srv");
    block
}

#[test]
fn zeros_are_no_content() {
    for bytes in [0, 1, 511, 4096, MIB, 3 * MIB + 1, 64 * MIB + 512] {
        assert_eq!(found(bytes, &[]), [], "{bytes}");
    }
}

#[test]
fn names_known_content_with_its_identifier() {
    let ext = only(64 * MIB, &[(1024, &ext4(b"home", UUID))]);
    assert_eq!(ext.token, "ext4:3f2a91c0");
    assert_eq!(
        ext.description,
        "an ext4 file system `home` (UUID 3f2a91c0-1122-3344-5566-778899aabbcc, last mounted at \
         /srv)"
    );
    let own = only(64 * MIB, &[(1024, &ext4(OWN_LABEL.as_bytes(), UUID))]);
    assert_eq!(own.token, OWN_LABEL);
    // Something else that ends in the same two bytes.
    let mut other = ext4(b"", UUID);
    other[24] = 99;
    assert!(only(64 * MIB, &[(1024, &other)]).is_unknown());

    let cases: &[(&str, &[Part<'_>])] = &[
        ("xfs:3f2a91c0", &[(0, b"XFSB"), (32, UUID), (108, b"data")]),
        ("btrfs:3f2a91c0", &[(65536 + 64, b"_BHRfS_M"), (65536 + 32, UUID)]),
        ("swap:3f2a91c0", &[(4086, b"SWAPSPACE2"), (1036, UUID), (1052, b"spare")]),
        ("swap:3f2a91c0", &[(65526, b"SWAPSPACE2"), (1036, UUID)]),
        ("luks:3f2a91c0", &[(0, b"LUKS\xba\xbe"), (168, b"3f2a91c0-1122-3344-5566-778899aabbcc")]),
        ("lvm:abcdefGH", &[(512, b"LABELONE"), (536, b"LVM2 001"), (544, b"abcdefGH1234")]),
        ("md:3f2a91c0", &[(4096, &0xa92b_4efc_u32.to_le_bytes()), (4112, UUID)]),
        (
            "md:3f2a91c0",
            &[(64 * MIB - 8192, &0xa92b_4efc_u32.to_le_bytes()), (64 * MIB - 8176, UUID)],
        ),
        (
            "bcache:3f2a91c0",
            &[
                (4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
                (4136, UUID),
            ],
        ),
    ];
    for (word, content) in cases {
        let one = only(64 * MIB, content);
        assert_eq!(one.token, *word, "{one:?}");
    }
    let kinds: &[(&str, &[Part<'_>])] = &[
        ("md", &[(64 * MIB - 65536, &0xa92b_4efc_u32.to_le_bytes())]),
        ("zfs", &[(128 << 10, &0x00ba_b10c_u64.to_le_bytes())]),
        ("zfs", &[(64 * MIB - (256 << 10) + (131 << 10), &0x00ba_b10c_u64.to_be_bytes())]),
        ("imsm", &[(64 * MIB - 1024, b"Intel Raid ISM Cfg Sig. 1.0")]),
        ("ddf", &[(64 * MIB - 512, b"\xde\x11\xde\x11")]),
        ("ntfs", &[(3, b"NTFS    "), (510, b"\x55\xaa")]),
        ("vfat", &[(82, b"FAT32   "), (510, b"\x55\xaa")]),
        ("luks", &[(0x4000, b"SKUL\xba\xbe")]),
        ("data", &[(17, b"x")]),
        ("data", &[(64 * MIB - 1, b"x")]),
    ];
    for (kind, content) in kinds {
        let one = only(64 * MIB, content);
        assert_eq!(FoundContent::kind(&one.token), *kind, "{one:?}");
        assert!(one.by_content, "{one:?}");
    }
    let pool = b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01\0\0\0\x04tank";
    let zfs = only(64 * MIB, &[(128 << 10, &0x00ba_b10c_u64.to_le_bytes()), (17 << 10, pool)]);
    assert_eq!(zfs.description, "a member of a ZFS pool `tank`");
}

#[test]
fn a_structure_and_its_copy_count_once() {
    let copies: &[Part<'_>] = &[
        (0, b"LUKS\xba\xbe"),
        (168, b"3f2a91c0-1122-3344-5566-778899aabbcc"),
        (0x4000, b"SKUL\xba\xbe"),
        (0x4000 + 168, b"3f2a91c0-1122-3344-5566-778899aabbcc"),
    ];
    only(64 * MIB, copies);
    let both = found(64 * MIB, &[(1024, &ext4(b"", UUID)), (64 * MIB - 512, b"\xde\x11\xde\x11")]);
    assert_eq!(both.len(), 2, "{both:?}");
}

#[test]
fn a_partition_table_describes_its_partitions() {
    // 2 MiB to 30 MiB, and beyond the end.
    let mut mbr = vec![0; 512];
    mbr[440..444].copy_from_slice(b"\xde\xad\xbe\xef");
    let mut entry = |at: usize, first: u32, sectors: u32| {
        mbr[at + 4] = 0x83;
        mbr[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        mbr[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    };
    entry(446, 4096, 57344);
    entry(462, 4096, 1 << 20);
    mbr[510..].copy_from_slice(b"\x55\xaa");
    let table = only(64 * MIB, &[(0, &mbr), (2 * MIB + 1024, &ext4(b"home", UUID))]);
    assert_eq!(table.token, "mbr:deadbeef");
    for words in ["2 partitions", "an ext4 file system `home`", "beyond the end of the device"] {
        assert!(table.description.contains(words), "{words}: {table:?}");
    }
    // The copy at the end alone, as it is left where only the beginning was wiped.
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"EFI PART");
    header[56..72].copy_from_slice(UUID);
    header[72..80].copy_from_slice(&(64 * MIB / 512 - 33).to_le_bytes());
    header[80..84].copy_from_slice(&128_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    let mut entry = vec![1; 128];
    entry[32..40].copy_from_slice(&4096_u64.to_le_bytes());
    entry[40..48].copy_from_slice(&61439_u64.to_le_bytes());
    entry[56..].fill(0);
    entry[56] = b'r';
    entry[58] = b't';
    let content: &[Part<'_>] = &[
        (64 * MIB - 512, &header),
        (64 * MIB - 33 * 512, &entry),
        (2 * MIB + 1024, &ext4(b"home", UUID)),
    ];
    let table = only(64 * MIB, content);
    assert_eq!(table.token, "gpt:3f2a91c0");
    assert!(
        table.description.contains("1 partition: `rt`: an ext4 file system `home`"),
        "{table:?}"
    );
}

#[test]
fn invalid_tables_end() {
    let mut header = vec![0xff; 512];
    header[..8].copy_from_slice(b"EFI PART");
    assert!(only(4 * MIB, &[(512, &header)]).description.contains("without partitions"));
    header[72..80].copy_from_slice(&2_u64.to_le_bytes());
    let many = vec![0xff; 256 * 128];
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    let table = only(4 * MIB, &[(512, &header), (1024, &many)]);
    assert!(table.description.contains("256 partitions"), "{table:?}");
    // Untrusted names do not reach the terminal raw.
    let named = only(64 * MIB, &[(1024, &ext4(b"\x1b[31mred", UUID))]);
    assert!(named.description.contains("`?[31mred`"), "{named:?}");
}

#[test]
fn preconditioned_blocks_are_no_content() {
    let bytes = 4 * MIB;
    let file = blank(bytes);
    for at in (0..3 * MIB).step_by(BLOCK) {
        let mut block: Vec<u8> = (0..BLOCK).map(|byte| (byte * 7 + 1) as u8 | 1).collect();
        block[..8].copy_from_slice(&at.to_le_bytes());
        file.write_all_at(&block, at).unwrap();
    }
    assert_eq!(inspect(&file, bytes).unwrap(), []);
    file.write_all_at(b"hello", 3 * MIB).unwrap();
    assert!(inspect(&file, bytes).unwrap()[0].is_unknown());
    file.write_all_at(&[0; 5], 3 * MIB).unwrap();
    // Swap leaves the first 1 KiB as it was.
    file.write_all_at(b"SWAPSPACE2", 4086).unwrap();
    assert_eq!(FoundContent::kind(&inspect(&file, bytes).unwrap()[0].token), "swap");
}

#[test]
fn a_disk_is_sampled_between_its_ends() {
    let bytes = 256 * MIB;
    let file = blank(bytes);
    // A file system whose beginning and end were wiped.
    for at in (8 * MIB..200 * MIB).step_by(64 << 10) {
        file.write_all_at(&[7; 64 << 10], at).unwrap();
    }
    assert!(inspect(&file, bytes).unwrap()[0].is_unknown());
}
