//! Sanitises text of others (servers' versions, names, notes, errors) for display. One rule for
//! terminals, Markdown, pages, spreadsheets and messages: control characters are shown as U+FFFD,
//! and passwords in addresses are masked.

use std::borrow::Cow;

use crate::mask::{masked, masked_json};

/// The replacement of control characters.
const UNSHOWN: char = '\u{fffd}';

/// Whether a character must not be shown: terminal controls (C0, DEL, C1), Unicode's bidirectional
/// controls, zero-width and tag characters, and invisible line ends. Line feed and tab are among
/// them.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text in one line: line ends and tabs are blanks, other controls U+FFFD.
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |c| match c {
        '\n' | '\r' | '\t' => ' ',
        _ => UNSHOWN,
    })
}

/// The text with its line feeds and tabs; other controls are U+FFFD.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |c| match c {
        '\n' | '\t' => c,
        _ => UNSHOWN,
    })
}

/// The text as a cell of a spreadsheet: [`lines`], and what such a program would take for a
/// formula begins with an apostrophe, as OWASP has it ("CSV Injection"). Numbers stay numbers.
pub fn cell(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    let number = || text.parse::<f64>().is_ok_and(f64::is_finite);
    match formula && !number() {
        true => Cow::Owned(format!("'{}", lines(text))),
        false => lines(text),
    }
}

/// A word that a POSIX shell takes as it is.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// JSON without the passwords of addresses, in which every control stands as an escape of four
/// digits: otherwise the same values, and nothing of them steers the terminal that it is printed
/// on. serde_json escapes those below U+0020 alone.
pub fn json(text: &str) -> Cow<'_, str> {
    let raw = |c: char| c != '\n' && is_control(c);
    let text = masked_json(text);
    if !text.chars().any(raw) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if raw(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn shown(text: &str, instead: impl Fn(char) -> char) -> Cow<'_, str> {
    let text = masked(text);
    if !text.chars().any(is_control) {
        return text;
    }
    Cow::Owned(text.chars().map(|c| if is_control(c) { instead(c) } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn removes_terminal_controls() {
        let nasty = "a\u{1b}]0;b\u{7}c\n\td\u{9b}31m";
        assert_eq!(line(nasty), "a\u{fffd}]0;b\u{fffd}c  d\u{fffd}31m");
        assert_eq!(lines("a\n\tb\rc"), "a\n\tb\u{fffd}c");
        assert_eq!(line("abc\u{202e}txt.exe"), "abc\u{fffd}txt.exe");
        assert_eq!(line("at redis://u:pw@h\n"), "at redis://u:**@h ");
        assert!(matches!(line("µs → 5 %, ünïcode, 漢字"), Cow::Borrowed(_)));
    }

    #[test]
    fn spreadsheet_formulas_become_text() {
        for formula in ["=1+1", "+cmd|'/c calc'!A0", "-2+3+cmd", "@SUM(1)", "\t=1", "\r=1", "＝1"]
        {
            assert!(cell(formula).starts_with('\''), "{formula:?}");
        }
        for number in ["-3.5", "+1e5", "-0", "7"] {
            assert_eq!(cell(number), number);
        }
        assert_eq!(cell("-inf"), "'-inf");
        assert_eq!(cell("redis 7.0 = fast"), "redis 7.0 = fast");
    }

    proptest! {
        #[test]
        fn json_keeps_its_meaning(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            let safe = json(&written);
            prop_assert!(!safe.chars().any(is_control));
            let read = serde_json::from_str::<String>(&safe).unwrap();
            prop_assert!(text.contains('@') || read == text, "{}", read);
        }

        #[test]
        fn removes_control_characters(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_control));
            prop_assert!(!lines(&text).chars().any(|c| is_control(c) && !"\n\t".contains(c)));
            prop_assert!(!cell(&text).starts_with(['=', '@', '\t']));
        }
    }

    #[test]
    fn a_shell_takes_every_word_as_it_is() {
        for word in ["plain", "", "two words", "it's", "$HOME `id` \"x\" \\", "a\nb", "*", "~", "é"]
        {
            let script = format!("printf %s {}", shell_word(word));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
        assert_eq!(shell_word("--rate=20k"), "--rate=20k");
        assert_eq!(shell_word("rocksdb:/d?cache=1GiB&x"), "'rocksdb:/d?cache=1GiB&x'");
    }
}
