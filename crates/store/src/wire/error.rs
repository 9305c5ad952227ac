use thiserror::Error;

/// The bytes of a server are not the answer to the request. The connection is unusable: the start
/// of the next answer is unknown. Excerpts are escaped and cut to 80 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// Not this protocol.
    #[error("the server's answer is not {expected}: `{got}`")]
    Garbage { expected: &'static str, got: String },
    /// A value of another key.
    #[error("the server answered for the key `{got}` where `{expected}` was requested")]
    OtherKey { expected: String, got: String },
    /// An answer of this protocol, but to another request.
    #[error("the server's answer is out of sequence: {got} where {expected} was expected")]
    OutOfStep { expected: String, got: String },
    /// A length or a line beyond the limit.
    #[error("the server announced {what} of {bytes} bytes or more; the limit is {limit}")]
    TooLong { what: &'static str, bytes: u64, limit: usize },
}

/// A key that a protocol cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error("a key has at least one byte")]
    Empty,
    #[error(
        "a key of {bytes} bytes is too long for {protocol}, which takes {longest} of its kind; \
         shorten the workload's keys"
    )]
    TooLong { protocol: &'static str, bytes: usize, longest: usize },
    #[error(
        "{protocol} takes no key with spaces or control bytes; \
         use text keys, or the meta or binary protocol"
    )]
    NotPrintable { protocol: &'static str },
}

/// The longest excerpt of received bytes in a message, after escaping.
const EXCERPT: usize = 80;

/// Received bytes for a message: escaped, cut, and marked where cut.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let mut text = String::new();
    // The length to cut to if the text becomes too long.
    let mut cut = 0;
    for &byte in bytes {
        match byte {
            b'\'' | b'"' => text.push(char::from(byte)),
            _ => text.extend(std::ascii::escape_default(byte).map(char::from)),
        }
        if text.len() <= EXCERPT - 3 {
            cut = text.len();
        }
        if text.len() > EXCERPT {
            text.truncate(cut);
            text.push_str("...");
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_escaped_and_cut() {
        assert_eq!(excerpt(b"ERROR\r\n"), "ERROR\\r\\n");
        assert_eq!(excerpt(&[b'a'; 80]), "a".repeat(80));
        assert_eq!(excerpt(&[b'a'; 81]), format!("{}...", "a".repeat(77)));
        for length in 0..200 {
            assert!(excerpt(&vec![0; length]).len() <= EXCERPT);
        }
    }
}
