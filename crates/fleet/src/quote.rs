//! Words for a POSIX shell.

/// A word that a POSIX shell takes as it is.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::quoted;

    #[test]
    fn a_shell_takes_every_word_as_it_is() {
        for word in ["plain", "", "two words", "it's", "$HOME `id` \"x\" \\", "a\nb", "*", "~", "é"]
        {
            let script = format!("printf %s {}", quoted(word));
            let output = Command::new("sh").args(["-c", &script]).output().expect("sh");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }
}
