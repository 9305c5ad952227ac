//! Parsers of the kernel's text formats.

/// The value of `key: value` or `key value` at the start of a line.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let value = rest.strip_prefix(':')?.trim();
        (!value.is_empty()).then_some(value)
    })
}

/// The bytes of a `key: N kB` line of `/proc/meminfo` or `/proc/self/status`.
pub(crate) fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let value = field(text, key)?.strip_suffix("kB")?.trim();
    value.parse::<u64>().ok()?.checked_mul(1024)
}

/// The word in brackets of `always [madvise] never`.
pub(crate) fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    let (choice, _) = rest.split_once(']')?;
    Some(choice)
}

/// A cache size such as `32K` or `1M`, in bytes.
pub(crate) fn cache_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_shl(shift)
}

/// Undoes the octal escapes of blanks in `/proc/self/mountinfo`.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = text.get(at + 1..at + 4).and_then(|d| u8::from_str_radix(d, 8).ok());
        match (bytes[at], octal) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                at += 4;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "MemTotalX: 1 kB\nMemTotal:   2048 kB\nmodel\t\t: 2\nmodel name\t: Some CPU\n";
        assert_eq!(kilobytes(text, "MemTotal"), Some(2048 * 1024));
        assert_eq!(field(text, "model"), Some("2"));
        assert_eq!(field(text, "model name"), Some("Some CPU"));
        assert_eq!(field(text, "Mem"), None);
    }

    #[test]
    fn choices_sizes_and_escapes() {
        assert_eq!(bracketed("none [mq-deadline] bfq"), Some("mq-deadline"));
        assert_eq!(bracketed("none"), None);
        assert_eq!(cache_size("25344K"), Some(25_344 << 10));
        assert_eq!(cache_size("1X"), None);
        assert_eq!(unescape("/a\\040b\\134c\\"), "/a b\\c\\");
    }
}
