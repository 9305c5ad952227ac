//! Masks secrets in addresses.

use std::borrow::Cow;

/// Characters that end a word.
const ENDS: [char; 10] = ['"', '\'', '`', ',', '=', '[', ']', '(', ')', '/'];

/// The text with stars for the password of every `user:password@host`, and for all before the `@`
/// of `scheme://secret@host`; as long as it was.
pub fn masked(text: &str) -> Cow<'_, str> {
    starred(text, false)
}

/// The same of the strings in JSON, which stays JSON.
pub(crate) fn masked_json(text: &str) -> Cow<'_, str> {
    starred(text, true)
}

/// One pass, however many `@` there are: results files may come from others.
fn starred(text: &str, json: bool) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut chars: Vec<char> = text.chars().collect();
    // Where a secret would begin: behind the last `://` of a word, where it may hold what ends a
    // word elsewhere, and behind the colon after that; or else behind a colon.
    let (mut url, mut in_url, mut plain) = (None, None, None);
    let mut done = 0;
    let mut at = 0;
    while at < chars.len() {
        let mut wide = 1;
        let mut c = chars[at];
        if json && c == '\\' {
            wide = 2;
            c = match chars.get(at + 1) {
                Some('n' | 'r' | 't') => ' ',
                Some('"') => '\'',
                _ => c,
            };
        }
        match c {
            '@' => {
                let plain = plain.filter(|from| !is_rate(&chars[..at], *from));
                if let Some(from) = in_url.or(url).or(plain) {
                    chars[done.max(from)..at].fill('*');
                    done = at;
                }
            }
            ':' if chars[at..].starts_with(&[':', '/', '/']) => {
                wide = 3;
                (url, in_url, plain) = (Some(at + wide), None, None);
            }
            ':' => {
                plain = plain.or(Some(at + 1));
                in_url = in_url.or(url.map(|_| at + 1));
            }
            c if c.is_whitespace() || (json && c == '"') => {
                (url, in_url, plain) = (None, None, None)
            }
            c if ENDS.contains(&c) => plain = None,
            _ => {}
        }
        at += wide;
    }
    Cow::Owned(chars.into_iter().collect())
}

/// Whether what stands behind a colon is the first rate of a profile: `steps:10k@30s`.
fn is_rate(chars: &[char], from: usize) -> bool {
    let before = &chars[..from - 1];
    let begin = before.iter().rposition(|c| !c.is_alphanumeric()).map_or(0, |at| at + 1);
    let kind: String = before[begin..].iter().collect();
    ["steps", "ramp"].contains(&kind.as_str())
        && chars[from..].iter().all(|c| c.is_ascii_digit() || "._kMGxX".contains(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_starred() {
        for (text, shown) in [
            ("redis://user:secret@host", "redis://user:******@host"),
            ("servers = \"u:p@h:1,v:q@h\"", "servers = \"u:*@h:1,v:*@h\""),
            ("`redis://:secret@host:1/2`", "`redis://:******@host:1/2`"),
            ("http://secret@plug/rpc", "http://******@plug/rpc"),
            ("url=http://user:ab/c=,d@plug/rpc", "url=http://user:*******@plug/rpc"),
            ("see http://host/x, then a:b@c", "see http://host/x, then a:*@c"),
            ("a@b governor=performance@0-3", "a@b governor=performance@0-3"),
            ("/run/a@b.sock at 10:30", "/run/a@b.sock at 10:30"),
            ("steps:10k@30s,40k@30s ramp:0.5x..2x@1m", "steps:10k@30s,40k@30s ramp:0.5x..2x@1m"),
            ("steps:s3cret@host", "steps:******@host"),
            ("redis://steps:10k@host", "redis://steps:***@host"),
            ("redis://u:p@ss@host", "redis://u:****@host"),
            ("redis://host:1/a x:y@h", "redis://host:1/a x:*@h"),
        ] {
            assert_eq!(masked(text), shown);
        }
        assert!(matches!(masked("redis://host:6379"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_json() {
        for (value, shown) in [
            (
                serde_json::json!(["redis://host", "a@b"]),
                serde_json::json!(["redis://host", "a@b"]),
            ),
            (
                serde_json::json!({"url": "redis://u:s\"cret@h", "why": "x\\"}),
                serde_json::json!({"url": "redis://u:*******@h", "why": "x\\"}),
            ),
            (
                serde_json::json!("# http://x.org\ngovernor=\"performance@0-3\"\nx\t= u:p@h"),
                serde_json::json!("# http://x.org\ngovernor=\"performance@0-3\"\nx\t= u:*@h"),
            ),
        ] {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let safe: serde_json::Value = serde_json::from_str(&masked_json(&text)).unwrap();
                assert_eq!(safe, shown, "{text}");
            }
        }
    }

    #[test]
    fn masking_takes_one_pass() {
        let text = "a:b@".repeat(200_000);
        assert!(masked(&text).ends_with("**@"));
    }
}
