//! Errors that show a position in a text: line, column and the line itself.

use std::ops::Range;

use crate::masked;

/// `words`, then the position as a compiler shows it: origin, line and column counted from 1
/// (columns in characters), the line itself, and a mark under the part of `span` (bytes of `text`)
/// on it.
pub fn shown(origin: &str, text: &str, span: Range<usize>, words: &str) -> String {
    let start = span.start.min(text.len());
    let before = &text[..start];
    let number = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let line = masked(line);
    let column = text[line_start..start].chars().count();
    let length = text[start..span.end.clamp(start, text.len())]
        .lines()
        .next()
        .map_or(1, |text| text.chars().count().max(1));
    let margin = " ".repeat(number.to_string().len());
    format!(
        "{words}\n{margin} --> {origin}:{number}:{}\n{margin} |\n{number} | {line}\n{margin} | {}{}",
        column + 1,
        " ".repeat(column),
        "^".repeat(length)
    )
}

/// As [`shown`], if the position is known; otherwise the origin and the words.
pub fn shown_if(origin: &str, text: &str, span: Option<Range<usize>>, words: &str) -> String {
    match span {
        Some(span) => shown(origin, text, span, words),
        None => format!("{origin}: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_counts_characters() {
        let text = "a = 1\nä = 22\n";
        let span = text.find("22").unwrap();
        assert_eq!(
            shown("x.toml", text, span..span + 2, "too much"),
            "too much\n  --> x.toml:2:5\n  |\n2 | ä = 22\n  |     ^^"
        );
    }

    #[test]
    fn position_past_the_end_is_clamped() {
        assert!(shown("x", "ab", 9..12, "cut").ends_with("1 | ab\n  |   ^"));
        assert_eq!(shown_if("x", "ab", None, "cut"), "x: cut");
    }
}
