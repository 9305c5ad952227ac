use super::*;

/// Requests of `bytes`, parsed whole and in pieces of every size up to 40, with equal results.
fn requests(bytes: &[u8]) -> Result<(u32, u32, bool), ParseLost> {
    let cut = |size: usize| {
        let mut position = Position::START;
        let mut parsed = ParsedRequest::default();
        for piece in bytes.chunks(size) {
            position.requests(piece, &mut parsed)?;
        }
        assert!(!position.inside() || parsed.complete == 0, "nothing is left: {position:?}");
        Ok((parsed.complete, parsed.quiet, parsed.stream))
    };
    let whole = cut(bytes.len());
    for size in 1..40 {
        assert_eq!(cut(size), whole, "pieces of {size}");
    }
    whole
}

fn answers(bytes: &[u8]) -> Result<u32, ParseLost> {
    let cut = |size: usize| {
        let mut position = Position::START;
        let mut begun = 0;
        for piece in bytes.chunks(size) {
            position.answers(piece, &mut begun)?;
        }
        assert!(!position.inside(), "nothing is left: {position:?}");
        Ok(begun)
    };
    let whole = cut(bytes.len());
    for size in 1..40 {
        assert_eq!(cut(size), whole, "pieces of {size}");
    }
    whole
}

fn binary(magic: u8, opcode: u8, key: usize, body: usize) -> Vec<u8> {
    let mut message = vec![0; 24 + body];
    message[0] = magic;
    message[1] = opcode;
    message[2..4].copy_from_slice(&(key as u16).to_be_bytes());
    message[8..12].copy_from_slice(&(body as u32).to_be_bytes());
    message[24..].fill(magic);
    message
}

#[test]
fn text_requests_end_with_their_line_or_their_body() {
    assert_eq!(requests(b"get a\r\nget a b c\r\nversion\r\n"), Ok((3, 0, false)));
    assert_eq!(requests(b"set a 0 0 8\r\nget x\r\n\n\r\nget a\n"), Ok((2, 0, false)));
    assert_eq!(requests(b"cas a 0 -1 2 77\r\nxx\r\ngats 1 a\r\n"), Ok((2, 0, false)));
    assert_eq!(requests(b"set a 0 0 0\r\n\r\nget a\r\n"), Ok((2, 0, false)));
    assert_eq!(requests(b"set  a  0  0  5\r\nabcde\r\n"), Ok((1, 0, false)));
}

#[test]
fn a_refused_set_line_has_no_body() {
    assert_eq!(requests(b"set a 0 0 -1\r\nget a\r\n"), Ok((2, 0, false)));
    assert_eq!(requests(b"set a 0\r\nget a\r\n"), Ok((2, 0, false)));
    // An inline command of Redis.
    assert_eq!(requests(b"set a v ex 50\r\nget a\r\n"), Ok((2, 0, false)));
}

#[test]
fn recognises_quiet_requests() {
    assert_eq!(requests(b"set a 0 0 1 noreply\r\nx\r\nget a\r\n"), Ok((2, 1, false)));
    assert_eq!(requests(b"delete noreply\r\ndelete a noreply\r\n"), Ok((2, 2, false)));
    assert_eq!(requests(b"flush_all noreply\r\nquit\r\n"), Ok((2, 2, false)));
    assert_eq!(requests(b"mg a v q\r\nmg qq v\r\nms a 2 q T0\r\nxx\r\nmn\r\n"), Ok((4, 2, false)));
}

#[test]
fn meta_requests_end_with_their_line_or_their_body() {
    assert_eq!(requests(b"mg a v O1\r\nms a 3 T0\r\n\r\n\n\r\nmd a\r\nmn\r\n"), Ok((4, 0, false)));
}

#[test]
fn binary_requests_end_with_their_body() {
    let mut bytes = binary(0x80, 0, 3, 3);
    bytes.extend(binary(0x80, 1, 3, 300));
    bytes.extend(binary(0x80, 0x0d, 3, 3));
    bytes.extend(binary(0x80, 0x0a, 0, 0));
    assert_eq!(requests(&bytes), Ok((4, 1, false)));
    bytes.push(7);
    bytes.extend([0; 60]);
    assert_eq!(requests(&bytes), Err(ParseLost));
}

#[test]
fn resp_requests_end_with_their_last_argument() {
    let bytes =
        b"*2\r\n$3\r\nGET\r\n$4\r\n\r\n*1\r\n*1\r\n$4\r\nPING\r\nPING\r\n*0\r\n*1\r\n$0\r\n\r\n";
    assert_eq!(requests(bytes), Ok((4, 0, false)));
    assert_eq!(requests(b"PING\r\n*1\r\n$4\r\nPING\r\nPING\r\n"), Ok((3, 0, false)));
    assert_eq!(requests(b"*2\r\n$9\r\nSuBSCRIBE\r\n$1\r\na\r\n"), Ok((1, 0, true)));
    assert_eq!(requests(b"*1\r\n:4\r\nPING\r\n"), Err(ParseLost));
    assert_eq!(requests(b"*1\r\n$-1\r\n"), Err(ParseLost));
}

#[test]
fn invalid_requests_are_lost() {
    assert_eq!(requests(b"\x16\x03\x01\x02\x00\x01\x00\x01"), Err(ParseLost));
    assert_eq!(requests(b"RCmb\0\0\x08\xb8"), Err(ParseLost));
    assert_eq!(requests(&[b'a'; 80]), Err(ParseLost));
}

#[test]
fn parses_text_answers() {
    assert_eq!(answers(b"VALUE a 0 5\r\nEND\r\n\r\nEND\r\nEND\r\nSTORED\r\n12\r\n"), Ok(4));
    assert_eq!(answers(b"VALUE a 0 1 99\r\nx\r\nVALUE b 0 0\r\n\r\nEND\r\n"), Ok(1));
    assert_eq!(answers(b"VA 4 k1\r\nEN\r\n\r\nHD\r\nEN\r\nMN\r\n"), Ok(4));
    assert_eq!(answers(b"STAT a 1\r\nSTAT b 2\r\nEND\r\nVERSION 1.6.18\r\nRESET\r\n"), Ok(3));
    assert_eq!(answers(b"SERVER_ERROR out of memory storing object\r\nERROR\r\n"), Ok(2));
    assert_eq!(answers(b"VALUE a 0\r\nxx\r\n"), Err(ParseLost));
}

#[test]
fn parses_binary_answers() {
    let mut bytes = binary(0x81, 0, 0, 40);
    bytes.extend(binary(0x81, 0x0d, 3, 12)); // a quiet one's answer
    bytes.extend(binary(0x81, 0x10, 3, 6));
    bytes.extend(binary(0x81, 0x10, 4, 9));
    bytes.extend(binary(0x81, 0x10, 0, 0));
    bytes.extend(binary(0x81, 0x0a, 0, 0));
    assert_eq!(answers(&bytes), Ok(3));
}

#[test]
fn parses_resp_answers() {
    assert_eq!(
        answers(b"+OK\r\n-ERR x\r\n:1\r\n$-1\r\n$0\r\n\r\n$3\r\n\r\n+\r\n*-1\r\n*0\r\n"),
        Ok(8)
    );
    assert_eq!(answers(b"*2\r\n*2\r\n:1\r\n$1\r\na\r\n%1\r\n+a\r\n_\r\n:5\r\n"), Ok(2));
    assert_eq!(answers(b">2\r\n+message\r\n+x\r\n|1\r\n+ttl\r\n:3\r\n+OK\r\n#t\r\n"), Ok(2));
    assert_eq!(answers(b"+OK\r\nOK\r\n"), Err(ParseLost));
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    // A linear congruence is random enough, and always the same.
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    let alphabet = b"getsmqVALUE*$>%|:+-=_#0123456789 \r\n\x80\x81\0\xff";
    for _ in 0..20_000 {
        let bytes: Vec<u8> =
            (0..random() % 120).map(|_| alphabet[random() % alphabet.len()]).collect();
        let (mut requests, mut answers) = (Position::START, Position::START);
        for piece in bytes.chunks(1 + random() % 50) {
            let (mut parsed, mut begun) = (ParsedRequest::default(), 0);
            let _ = requests.requests(piece, &mut parsed);
            let _ = answers.answers(piece, &mut begun);
            assert!(parsed.complete as usize <= piece.len() && begun as usize <= piece.len());
        }
    }
}

#[test]
fn position_round_trips() {
    let mut position = Position::START;
    let mut parsed = ParsedRequest::default();
    position.requests(b"set key 1 0 123 nor", &mut parsed).unwrap();
    let saved = SavedPosition(Default::default());
    saved.store(position);
    assert_eq!(saved.load(), position);
}
