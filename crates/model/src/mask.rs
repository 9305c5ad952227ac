//! Secrets that stand in addresses: what is shown of a text holds none.

/// What ends a word in which an address may stand.
const ENDS: [char; 10] = ['"', '\'', '`', ',', '=', '[', ']', '(', ')', '/'];

/// The text with stars for the password of every `user:password@host`, and for all before the `@`
/// of `scheme://secret@host`; as long as it was.
pub fn masked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut shown = chars.clone();
    for (at, _) in chars.iter().enumerate().filter(|(_, c)| **c == '@') {
        let ends = |c: &char| c.is_whitespace() || ENDS.contains(c);
        // Behind `://` a secret may hold what ends a word elsewhere.
        let word = chars[..at].iter().rposition(|c| c.is_whitespace()).map_or(0, |end| end + 1);
        let url = chars[word..at].windows(3).rposition(|three| three == [':', '/', '/']);
        let begin = match url {
            Some(scheme) => word + scheme + 3,
            None => chars[..at].iter().rposition(ends).map_or(0, |end| end + 1),
        };
        let colon = chars[begin..at].iter().position(|c| *c == ':');
        let in_url = url.is_some();
        let from = match colon {
            Some(colon) => begin + colon + 1,
            None if in_url => begin,
            None => continue,
        };
        shown[from..at].fill('*');
    }
    shown.into_iter().collect()
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
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
