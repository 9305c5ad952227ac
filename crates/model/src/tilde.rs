//! `~` before a path: a shell expands it only at the beginning of a word.

/// Why this is no path that anybody means, if it begins with `~` as only a shell reads it.
pub fn unexpanded(path: &str) -> Option<String> {
    let rest = path.strip_prefix('~')?;
    let user = rest.split('/').next().unwrap_or_default();
    let is_user = user.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    (is_user && (user.is_empty() || rest.contains('/'))).then(|| {
        format!(
            "`{path}`: the shell did not replace `~` here; write `$HOME{rest}`, the whole path in a \
             file, or `./{path}` for a folder of that name"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_unexpanded_shell_syntax() {
        for path in ["~", "~/db", "~root/db"] {
            assert!(unexpanded(path).is_some_and(|why| why.contains("$HOME")), "{path}");
        }
        for path in ["", "db~", "a/~/b", "./~/db", "~backup", "~ 3 MB"] {
            assert_eq!(unexpanded(path), None, "{path}");
        }
    }
}
