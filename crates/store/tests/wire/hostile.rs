use store::wire::{KeyList, Kind, LONGEST_VALUE, ParsedResponse, Protocol, WireError};

use crate::invariants::Case;

fn read(protocol: Protocol, bytes: &[u8]) -> Result<ParsedResponse, WireError> {
    let mut keys = KeyList::new();
    keys.push(b"a");
    let case =
        Case { protocol, kind: Kind::Get, keys: keys.clone(), tag: 7, bytes: bytes.to_vec() };
    case.check();
    protocol.read(Kind::Get, &keys, 7, bytes, |_, _| {})
}

#[test]
fn refuses_huge_lengths_at_once() {
    use Protocol::{MemcachedBinary, MemcachedMeta, MemcachedText, Resp2, Resp3};
    let mut binary = vec![0x81, 0x0c, 0, 1, 4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 7];
    binary.extend_from_slice(&[0; 8]);
    let cases = [
        (MemcachedText, b"VALUE a 0 536870913\r\n".to_vec()),
        (MemcachedText, b"VALUE a 0 99999999999999999999999999\r\n".to_vec()),
        (MemcachedText, b"VALUE a 0 -1\r\n".to_vec()),
        (MemcachedMeta, b"VA 9999999999999 ka O7\r\n".to_vec()),
        (MemcachedMeta, b"VA -1 ka O7\r\n".to_vec()),
        (MemcachedBinary, binary),
        (Resp2, b"$536870913\r\n".to_vec()),
        (Resp2, b"$-2\r\n".to_vec()),
        (Resp2, b"$9223372036854775808\r\n".to_vec()),
        (Resp3, b">9223372036854775807\r\n".to_vec()),
        (Resp3, b"|-5\r\n".to_vec()),
        (Resp3, b"!99999999999\r\n".to_vec()),
    ];
    for (protocol, bytes) in cases {
        assert!(read(protocol, &bytes).is_err(), "{protocol:?} waits for {bytes:?}");
    }
}

/// The largest allowed length is accepted and allocates nothing until the bytes arrive.
#[test]
fn announced_length_allocates_nothing() {
    let line = format!("VALUE a 0 {LONGEST_VALUE}\r\n");
    let needs = line.len() + LONGEST_VALUE + 7;
    let parsed = read(Protocol::MemcachedText, line.as_bytes());
    assert_eq!(parsed, Ok(ParsedResponse::Incomplete { needs }));
    let many = b">1000000\r\n";
    assert!(matches!(read(Protocol::Resp3, many), Ok(ParsedResponse::Incomplete { .. })));
}

/// Pushed messages are buffered until the answer, and their elements take more memory than their
/// bytes.
#[test]
fn push_messages_are_bounded() {
    for start in
        [">500000000\r\n", "*500000000\r\n", ">1\r\n*500000000\r\n", ">1\r\n$400000000\r\n"]
    {
        let read = read(Protocol::Resp3, start.as_bytes());
        assert!(matches!(read, Err(WireError::TooLong { .. })), "{start:?}: {read:?}");
    }
    let pushes = ">2\r\n+message\r\n:1\r\n".repeat(300_000);
    let read = read(Protocol::Resp3, pushes.as_bytes());
    assert!(matches!(read, Err(WireError::TooLong { .. })), "{read:?}");
}

#[test]
fn push_messages_answer_nothing() {
    let pushes = b">2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n|1\r\n+ttl\r\n:7\r\n";
    let length = Some(pushes.len());
    for more in [&b""[..], b"$1\r\nx\r\n"] {
        assert_eq!(Protocol::Resp3.read_pushes(&[pushes, more].concat()), Ok(length));
        assert_eq!(Protocol::Resp2.read_pushes(&[pushes, more].concat()), Ok(Some(0)));
    }
    let asked = [&pushes[..], b"+OK\r\n"].concat();
    for end in 1..asked.len() {
        assert_eq!(Protocol::Resp3.read_asking(&asked[..end]), Ok(None), "{end}");
    }
    assert_eq!(Protocol::Resp3.read_asking(&asked), Ok(Some(asked.len())));
    assert!(Protocol::Resp2.read_asking(&asked).is_err());
    assert_eq!(Protocol::Resp3.read_pushes(&pushes[..pushes.len() - 1]), Ok(None));
}

#[test]
fn line_length_of_servers_is_limited() {
    for protocol in Protocol::ALL {
        for start in ["", "VALUE a 0 1", "VALUE ", "VA 1 ", "+", "-", "$1", ":1", ">1\r\n+"] {
            let bytes = [start.as_bytes(), &[b'1'; 1 << 16]].concat();
            assert!(read(protocol, &bytes).is_err(), "{protocol:?} waits after {start:?}");
        }
    }
}

#[test]
fn nesting_depth_is_limited() {
    for nest in ["*1\r\n", ">1\r\n", "%1\r\n:1\r\n", "|1\r\n:1\r\n", "~1\r\n"] {
        let bytes = nest.repeat(100_000);
        let head = [">1\r\n", &bytes].concat();
        assert!(read(Protocol::Resp3, head.as_bytes()).is_err(), "{nest:?}");
        assert!(read(Protocol::Resp2, bytes.as_bytes()).is_err(), "{nest:?}");
    }
}

#[test]
fn refuses_misplaced_line_ends() {
    use Protocol::{MemcachedMeta, MemcachedText, Resp2, Resp3};
    let cases = [
        (MemcachedText, &b"END\n"[..]),
        (MemcachedText, b"VALUE a 0 1\r\nxEND\r\n"),
        (MemcachedText, b"VALUE a 0 1\nx\r\nEND\r\n"),
        (MemcachedText, b"VALUE a 0\r\nx\r\nEND\r\n"),
        (MemcachedMeta, b"EN\n"),
        (MemcachedMeta, b"VA 1 ka O7\r\nxx\r\n"),
        (Resp2, b"$1\r\nxy\r\n"),
        (Resp2, b"$1\nx\r\n"),
        (Resp2, b"$\r\n"),
        (Resp2, b"_\r\n"),
        (Resp3, b"_x\r\n"),
    ];
    for (protocol, bytes) in cases {
        let read = read(protocol, bytes);
        assert!(matches!(read, Err(WireError::Garbage { .. })), "{protocol:?} {bytes:?}: {read:?}");
    }
}
