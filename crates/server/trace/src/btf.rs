//! Finds a type in the kernel's own type information (BTF), by which a program
//! names the tracepoint that it attaches to. Format: `Documentation/bpf/btf.rst`.

pub(crate) const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
pub(crate) const KIND_TYPEDEF: u32 = 8;

/// Why type information could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BtfError {
    #[error("it is cut short")]
    Short,
    #[error("it does not start as type information does")]
    Magic,
    #[error("it has a kind of type, {0}, that this program does not know")]
    Kind(u32),
}

fn word(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    four.map(|four| u32::from_ne_bytes(*four)).ok_or(BtfError::Short)
}

/// Bytes that follow the 12 of a type's common part.
fn further_bytes(kind: u32, members: usize) -> Result<usize, BtfError> {
    Ok(match kind {
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * members,
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        unknown => return Err(BtfError::Kind(unknown)),
    })
}

/// The numbers of the types of `kind` with these names, in order.
pub(crate) fn find<const N: usize>(
    btf: &[u8],
    kind: u32,
    names: [&str; N],
) -> Result<[Option<u32>; N], BtfError> {
    if word(btf, 0)? as u16 != MAGIC {
        return Err(BtfError::Magic);
    }
    let header = word(btf, 4)? as usize;
    let part = |offset_at: usize| -> Result<&[u8], BtfError> {
        let start = header.saturating_add(word(btf, offset_at)? as usize);
        let end = start.saturating_add(word(btf, offset_at + 4)? as usize);
        btf.get(start..end).ok_or(BtfError::Short)
    };
    let (types, strings) = (part(8)?, part(16)?);
    let mut found = [None; N];
    let (mut at, mut number) = (0, 1);
    while at < types.len() {
        let info = word(types, at + 4)?;
        let this_kind = info >> 24 & 0x1f;
        if this_kind == kind {
            let name = strings.get(word(types, at)? as usize..).unwrap_or_default();
            for (slot, prefix) in found.iter_mut().zip(names) {
                let is_it = name.strip_prefix(prefix.as_bytes()).and_then(<[u8]>::first);
                if is_it == Some(&0) {
                    *slot = Some(number);
                }
            }
        }
        at += 12 + further_bytes(this_kind, (info & 0xffff) as usize)?;
        number += 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An int (16 bytes), a typedef `ab`, a typedef `a`.
    fn sample() -> Vec<u8> {
        let strings = b"\0ab\0a\0";
        let types: [u32; 10] = [0, 1 << 24, 4, 32, 1, 8 << 24, 1, 4, 8 << 24, 1];
        let types_bytes = types.len() as u32 * 4;
        let header: [u32; 6] =
            [u32::from(MAGIC) | 1 << 16, 24, 0, types_bytes, types_bytes, strings.len() as u32];
        let words = header.iter().chain(&types).flat_map(|word| word.to_ne_bytes());
        words.chain(*strings).collect()
    }

    #[test]
    fn finds_whole_names() {
        let found = find(&sample(), KIND_TYPEDEF, ["a", "ab", "b"]);
        assert_eq!(found, Ok([Some(3), Some(2), None]));
    }

    #[test]
    fn damaged_input_is_an_error_not_a_panic() {
        let whole = sample();
        for length in 0..whole.len() {
            assert!(find(&whole[..length], KIND_TYPEDEF, ["a"]).is_err());
        }
        let mut wrong = whole.clone();
        wrong[24 + 7] = 31;
        assert_eq!(find(&wrong, KIND_TYPEDEF, ["a"]), Err(BtfError::Kind(31)));
        wrong[0] = 0;
        assert_eq!(find(&wrong, KIND_TYPEDEF, ["a"]), Err(BtfError::Magic));
    }
}
