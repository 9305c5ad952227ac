//! Names of numbered files.

/// `extension` includes its dot.
pub(crate) fn name(number: u32, extension: &str) -> String {
    format!("{number:08}{extension}")
}

/// The number in a file name; `None` if it is not one of our names.
pub(crate) fn number(name: &str, extension: &str) -> Option<u32> {
    let digits = name.strip_suffix(extension)?;
    let number = digits.parse().ok()?;
    (self::name(number, extension) == *name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_round_trip() {
        for is in [0, 7, 99_999_999, 100_000_000, u32::MAX] {
            assert_eq!(number(&name(is, ".log"), ".log"), Some(is));
        }
        let strange = ["7.log", "+0000007.log", "0100000000.log", "00000007.idx", "4294967296.log"];
        for strange in strange {
            assert_eq!(number(strange, ".log"), None, "{strange}");
        }
    }
}
