use store::wire::Protocol::{MemcachedBinary, MemcachedMeta, MemcachedText, Resp2, Resp3};
use store::wire::{KeyList, Kind, ParsedResponse, Protocol, Refusal, Response, WireError};

use crate::invariants::Case;

const TAG: u32 = 7;

fn keys(names: &[&str]) -> KeyList {
    let mut keys = KeyList::new();
    names.iter().for_each(|name| keys.push(name.as_bytes()));
    keys
}

fn read(
    protocol: Protocol,
    kind: Kind,
    names: &[&str],
    bytes: &[u8],
) -> Result<ParsedResponse, WireError> {
    let keys = keys(names);
    let case = Case { protocol, kind, keys: keys.clone(), tag: TAG, bytes: bytes.to_vec() };
    case.check();
    protocol.read(kind, &keys, TAG, bytes, |_, _| {})
}

fn packet(opcode: u8, status: u8, opaque: u32, extras: &[u8], key: &str, value: &str) -> Vec<u8> {
    let mut packet = vec![0x81, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, status];
    let body = extras.len() + key.len() + value.len();
    packet.extend_from_slice(&(body as u32).to_be_bytes());
    packet.extend_from_slice(&opaque.to_be_bytes());
    packet.extend_from_slice(&[0; 8]);
    [&packet, extras, key.as_bytes(), value.as_bytes()].concat()
}

#[test]
fn refusals_are_classified_and_keep_the_connection() {
    use Refusal::{Auth, Busy, Other, OutOfMemory, ReadOnly, TooLarge};
    let memcached = [
        ("SERVER_ERROR out of memory storing object", OutOfMemory),
        ("SERVER_ERROR Out of memory during read", OutOfMemory),
        ("SERVER_ERROR object too large for cache", TooLarge),
        ("CLIENT_ERROR line too long", TooLarge),
        ("CLIENT_ERROR bad command line format", Other),
        ("CLIENT_ERROR unauthenticated", Auth),
        ("ERROR", Other),
        ("ERROR Too many open connections", Busy),
    ];
    let redis = [
        ("OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
        ("NOAUTH Authentication required.", Auth),
        ("WRONGPASS invalid username-password pair or user is disabled.", Auth),
        ("NOPERM this user has no permissions to run the 'set' command", Auth),
        ("LOADING Redis is loading the dataset in memory", Busy),
        ("MOVED without a slot", Other),
        ("READONLY You can't write against a read only replica.", ReadOnly),
        ("CLUSTERDOWN Hash slot not served", Busy),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Other),
        ("ERR Protocol error: invalid bulk length", TooLarge),
        ("ERR max number of clients reached", Busy),
    ];
    let lines = [MemcachedText, MemcachedMeta]
        .iter()
        .flat_map(|protocol| memcached.map(|(words, why)| (*protocol, words, "", why)))
        .chain([Resp2, Resp3].iter().flat_map(|p| redis.map(|(words, why)| (*p, words, "-", why))));
    for (protocol, words, sign, why) in lines {
        let bytes = format!("{sign}{words}\r\n").into_bytes();
        for kind in [Kind::Get, Kind::Set, Kind::Delete] {
            let answer = Response::Refused { why, words: words.into() };
            let whole = Ok(ParsedResponse::Whole { used: bytes.len(), answer });
            assert_eq!(read(protocol, kind, &["a"], &bytes), whole, "{protocol:?}");
        }
    }
    let statuses = [(0x82, OutOfMemory), (3, TooLarge), (0x20, Auth), (0x85, Busy), (0x81, Other)];
    for (status, why) in statuses {
        for (kind, opcode) in [(Kind::Get, 0x0c), (Kind::Set, 1), (Kind::Delete, 4)] {
            let bytes = packet(opcode, status, TAG, b"", "", "in words");
            let answer = Response::Refused { why, words: "in words".into() };
            let whole = Ok(ParsedResponse::Whole { used: bytes.len(), answer });
            assert_eq!(read(MemcachedBinary, kind, &["a"], &bytes), whole);
        }
    }
    let error = b"!21\r\nSYNTAX invalid syntax\r\n";
    let answer = Response::Refused { why: Other, words: "SYNTAX invalid syntax".into() };
    let whole = Ok(ParsedResponse::Whole { used: error.len(), answer });
    assert_eq!(read(Resp3, Kind::Get, &["a"], error), whole);
}

/// A refusal of one of several gets ends the others in the text protocol, but not in meta and
/// binary; `used` must end at the next answer.
#[test]
fn a_refusal_among_several_values() {
    let text = b"VALUE a 0 1\r\nx\r\nSERVER_ERROR out of memory writing get response\r\n";
    let meta = b"VA 1 ka O7\r\nx\r\nSERVER_ERROR out of memory\r\nVA 1 kc O7\r\nz\r\n";
    let binary = [
        packet(0x0c, 0, TAG, &[0; 4], "a", "x"),
        packet(0x0c, 0x82, TAG, b"", "", "Out of memory"),
        packet(0x0c, 0, TAG, &[0; 4], "c", "z"),
    ]
    .concat();
    for (protocol, bytes) in
        [(MemcachedText, &text[..]), (MemcachedMeta, meta), (MemcachedBinary, &binary)]
    {
        let Ok(ParsedResponse::Whole { used, answer: Response::Refused { why, .. } }) =
            read(protocol, Kind::Get, &["a", "b", "c"], bytes)
        else {
            panic!("{protocol:?} does not refuse");
        };
        assert_eq!((used, why), (bytes.len(), Refusal::OutOfMemory), "{protocol:?}");
    }
}

#[test]
fn detects_a_value_of_another_key() {
    let hit = |key: &str| packet(0x0c, 0, TAG, &[0; 4], key, "x");
    let cases = [
        (MemcachedText, b"VALUE b 0 1\r\nx\r\nEND\r\n".to_vec()),
        (MemcachedText, b"VALUE aa 0 1\r\nx\r\nEND\r\n".to_vec()),
        (MemcachedMeta, b"VA 1 kb O7\r\nx\r\n".to_vec()),
        (MemcachedMeta, b"VA 1 kab O7\r\nx\r\n".to_vec()),
        (MemcachedMeta, b"EN kb O7\r\n".to_vec()),
        (MemcachedBinary, hit("b")),
        (MemcachedBinary, packet(0x0c, 1, TAG, b"", "b", "")),
    ];
    for (protocol, bytes) in cases {
        let error = read(protocol, Kind::Get, &["a"], &bytes).expect_err("another key");
        let WireError::OtherKey { expected, got } = error else { panic!("{protocol:?}: {error}") };
        assert_eq!(expected, "a");
        assert!(["b", "aa", "ab"].contains(&&got[..]), "{got}");
    }
    // The server answers in order.
    let swapped = b"VALUE b 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n";
    let error = read(MemcachedText, Kind::Get, &["a", "b"], swapped).expect_err("swapped");
    assert!(matches!(error, WireError::OutOfStep { .. }), "{error}");
}

#[test]
fn answer_to_another_request_is_out_of_step() {
    let cases = [
        (MemcachedText, Kind::Get, b"STORED\r\n".to_vec()),
        (MemcachedText, Kind::Set, b"END\r\n".to_vec()),
        (MemcachedText, Kind::Set, b"NOT_FOUND\r\n".to_vec()),
        (MemcachedText, Kind::Delete, b"STORED\r\n".to_vec()),
        (MemcachedText, Kind::Delete, b"VALUE a 0 1\r\n".to_vec()),
        (MemcachedText, Kind::Get, b"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n".to_vec()),
        (MemcachedMeta, Kind::Get, b"HD O7\r\n".to_vec()),
        (MemcachedMeta, Kind::Get, b"VA 1 ka O8\r\nx\r\n".to_vec()),
        (MemcachedMeta, Kind::Get, b"EN ka O6\r\n".to_vec()),
        (MemcachedMeta, Kind::Set, b"HD O70\r\n".to_vec()),
        (MemcachedMeta, Kind::Set, b"HD O\r\n".to_vec()),
        (MemcachedMeta, Kind::Set, b"NS O7\r\n".to_vec()),
        (MemcachedMeta, Kind::Delete, b"VA 1 ka O7\r\nx\r\n".to_vec()),
        (MemcachedBinary, Kind::Get, packet(1, 0, TAG, b"", "", "")),
        (MemcachedBinary, Kind::Set, packet(1, 0, TAG + 1, b"", "", "")),
        (MemcachedBinary, Kind::Delete, packet(1, 0, TAG, b"", "", "")),
        (Resp2, Kind::Get, b"+OK\r\n".to_vec()),
        (Resp2, Kind::Get, b"*1\r\n$1\r\nx\r\n".to_vec()),
        (Resp2, Kind::Set, b"+QUEUED\r\n".to_vec()),
        (Resp2, Kind::Set, b"$-1\r\n".to_vec()),
        (Resp2, Kind::Delete, b":2\r\n".to_vec()),
        (Resp3, Kind::Get, b"%1\r\n+a\r\n+b\r\n".to_vec()),
        (Resp3, Kind::Delete, b"_\r\n".to_vec()),
    ];
    for (protocol, kind, bytes) in cases {
        let read = read(protocol, kind, &["a"], &bytes);
        assert!(matches!(read, Err(WireError::OutOfStep { .. })), "{protocol:?} {kind}: {read:?}");
    }
    for protocol in [Resp2, Resp3] {
        for bytes in [&b"*1\r\n$1\r\nx\r\n"[..], b"*3\r\n", b"*-1\r\n", b"$1\r\nx\r\n"] {
            let read = read(protocol, Kind::Get, &["a", "b"], bytes);
            assert!(matches!(read, Err(WireError::OutOfStep { .. })), "{read:?}");
        }
    }
}

#[test]
fn messages_show_escaped_excerpts() {
    let bytes = [b"HTTP/1.1 400 \x1b[31m".as_slice(), &[0; 300], b"\r\n"].concat();
    for protocol in Protocol::ALL {
        let error = read(protocol, Kind::Get, &["a"], &bytes).expect_err("no such protocol");
        let WireError::Garbage { got, .. } = &error else { panic!("{error}") };
        assert!(got.len() <= 80 && got.starts_with("HTTP/1.1 400 \\x1b[31m"), "{got}");
    }
}
