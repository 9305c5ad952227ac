//! The syntax of Java's property files, as `java.util.Properties` reads them.

use super::YcsbError;

/// One property: name, value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Property {
    pub name: String,
    pub value: String,
    /// The line on which it begins, from 1.
    pub line: usize,
}

/// A line with those that continue it, without the backslashes and indents between them.
struct LogicalLine<'a> {
    parts: Vec<&'a [u8]>,
    line: usize,
}

/// Reads all properties in their order. Bytes are ISO 8859-1, as in Java, so that none is invalid.
///
/// # Errors
/// A `\u` without four hexadecimal digits, or an unpaired surrogate.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Property>, YcsbError> {
    logical_lines(bytes).into_iter().map(|line| property(&line.parts.concat(), line.line)).collect()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

/// Lines end with a line feed, a carriage return, or both.
fn natural_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&rest[..end]);
        let both = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(both)..];
    }
    lines.push(rest);
    lines
}

fn logical_lines(bytes: &[u8]) -> Vec<LogicalLine<'_>> {
    let mut lines = Vec::new();
    let mut open: Option<LogicalLine> = None;
    for (index, natural) in natural_lines(bytes).into_iter().enumerate() {
        let indent = natural.iter().take_while(|byte| is_blank(**byte)).count();
        let text = &natural[indent..];
        // In a line that continues another, `#` is no comment.
        if open.is_none() && (text.is_empty() || matches!(text[0], b'#' | b'!')) {
            continue;
        }
        let mut line = open.take().unwrap_or(LogicalLine { parts: Vec::new(), line: index + 1 });
        // Two backslashes are an escaped one.
        let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 1 {
            line.parts.push(&text[..text.len() - 1]);
            // A lone backslash does not begin a logical line.
            open = Some(line).filter(|line| line.parts.iter().any(|part| !part.is_empty()));
        } else {
            line.parts.push(text);
            lines.push(line);
        }
    }
    lines.extend(open);
    lines
}

/// The name ends at the first `=`, `:` or blank without a backslash before it.
fn property(text: &[u8], line: usize) -> Result<Property, YcsbError> {
    let mut end = 0;
    while end < text.len() && !is_blank(text[end]) && !matches!(text[end], b'=' | b':') {
        end += if text[end] == b'\\' { 2 } else { 1 };
    }
    let end = end.min(text.len());
    let skip_blanks =
        |from: usize| from + text[from..].iter().take_while(|byte| is_blank(**byte)).count();
    let mut begin = skip_blanks(end);
    if begin < text.len() && matches!(text[begin], b'=' | b':') {
        begin = skip_blanks(begin + 1);
    }
    let name = unescape(&text[..end], line)?;
    // Java keeps blanks behind a value, and then cannot read it as a number.
    let value = unescape(&text[begin..], line)?.trim_end().to_owned();
    Ok(Property { name, value, line })
}

fn unescape(text: &[u8], line: usize) -> Result<String, YcsbError> {
    let wrong = || {
        let problem = "a `\\u` takes the four hexadecimal digits of a whole character, as in \
                       `\\u00e4`";
        YcsbError::at(line, problem)
    };
    let mut units = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        let unit = match (byte, if byte == b'\\' { bytes.next() } else { None }) {
            (_, Some(b't')) => u16::from(b'\t'),
            (_, Some(b'n')) => u16::from(b'\n'),
            (_, Some(b'r')) => u16::from(b'\r'),
            (_, Some(b'f')) => 0x0c,
            (_, Some(b'u')) => {
                let mut unit = 0;
                for _ in 0..4 {
                    let digit = bytes.next().and_then(|digit| char::from(digit).to_digit(16));
                    unit = unit * 16 + digit.ok_or_else(wrong)? as u16;
                }
                unit
            }
            (_, Some(other)) => u16::from(other),
            (byte, None) => u16::from(byte),
        };
        units.push(unit);
    }
    String::from_utf16(&units).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, values and lines.
    fn read(bytes: &[u8]) -> Vec<(String, String, usize)> {
        let all = parse(bytes).unwrap();
        all.into_iter().map(|property| (property.name, property.value, property.line)).collect()
    }

    fn one(text: &str) -> (String, String) {
        let mut all = read(text.as_bytes());
        assert_eq!(all.len(), 1, "{text}: {all:?}");
        let (name, value, _) = all.remove(0);
        (name, value)
    }

    #[test]
    fn every_way_to_part_name_and_value_is_read() {
        for text in [
            "a=b",
            "a:b",
            "a b",
            "  a = b",
            "a\t:\tb",
            "a=\\\n   b",
            "\\\n\ta=b",
            "\\\n#c\na=b",
            "a=b  ",
        ] {
            assert_eq!(one(text), ("a".to_owned(), "b".to_owned()), "{text:?}");
        }
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(one("a"), pair("a", ""));
        assert_eq!(one("a="), pair("a", ""));
        assert_eq!(one("a= =b"), pair("a", "=b"));
        assert_eq!(one("a\\=b\\:c\\ d=e"), pair("a=b:c d", "e"));
        assert_eq!(one("a=b\\\\"), pair("a", "b\\"));
        assert_eq!(one("a=one \\\n    # two"), pair("a", "one # two"));
        assert_eq!(one("a=b\\"), pair("a", "b"));
        assert_eq!(one("\\u0061=\\u00e4\\ud83d\\ude00\\t\\q"), pair("a", "ä😀\tq"));
    }

    #[test]
    fn comments_and_ends_of_lines_are_those_of_java() {
        let text = b"# a=1\n\n  ! b=2 \\\r\nc=3\rd=4\r\n\r\n   \t\n\\\n\ne=\xe4\n";
        let expected = [("c", "3", 4), ("d", "4", 5), ("e", "\u{e4}", 10)]
            .map(|(name, value, line)| (name.to_owned(), value.to_owned(), line));
        assert_eq!(read(text), expected);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn half_characters_are_refused_with_their_line() {
        for text in ["a=\\u12", "a=\\u00zz", "a=\\ud83d", "\\u", "a=\\u00\\\n"] {
            let error = parse(format!("x=1\n{text}").as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line 2: a `\\u` takes"), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0u8..=255, 0..200)) {
            drop(parse(&bytes));
        }
    }
}
