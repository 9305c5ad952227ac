use std::collections::HashMap;

use model::Expiry;
use proptest::prelude::*;
use proptest::sample::Index;
use store::wire::{KeyList, Kind, ParsedResponse, Protocol, Request, Response};

use crate::cases::case;
use crate::invariants::Case;
use crate::model_server::ModelServer;

fn protocols() -> impl Strategy<Value = Protocol> {
    proptest::sample::select(&Protocol::ALL[..])
}

/// Keys that the protocol takes: short ones, long ones, and with any bytes where it may be.
fn key(protocol: Protocol) -> BoxedStrategy<Vec<u8>> {
    let longest = protocol.longest_key().min(250);
    let printable =
        proptest::collection::vec((0x21..=0xfe_u8).prop_filter("", |b| *b != 0x7f), 1..=longest);
    match protocol.longest_binary_key() {
        0 => printable.boxed(),
        longest => {
            let any = proptest::collection::vec(any::<u8>(), 1..=longest.min(250));
            prop_oneof![printable, any].boxed()
        }
    }
}

type RequestCase = (Kind, Vec<Index>, Vec<u8>, u32);

fn request_case() -> impl Strategy<Value = RequestCase> {
    let kind = proptest::sample::select(vec![Kind::Get, Kind::Set, Kind::Set, Kind::Delete]);
    let keys = proptest::collection::vec(any::<Index>(), 1..6);
    let value = proptest::collection::vec(any::<u8>(), 0..300);
    (kind, keys, value, any::<u32>())
}

fn conversations() -> impl Strategy<Value = (Protocol, Vec<Vec<u8>>, Vec<RequestCase>)> {
    protocols().prop_flat_map(|protocol| {
        let keys = proptest::collection::vec(key(protocol), 1..8);
        (Just(protocol), keys, proptest::collection::vec(request_case(), 1..20))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Pipelined requests are answered in step, with every value, however the bytes are split.
    #[test]
    fn pipelined_requests_round_trip((protocol, names, requests) in conversations()) {
        let mut sent = Vec::new();
        let mut questions = Vec::new();
        for (kind, chosen, value, tag) in &requests {
            let mut keys = KeyList::new();
            let count = if *kind == Kind::Get { chosen.len() } else { 1 };
            chosen[..count].iter().for_each(|index| keys.push(&names[index.index(names.len())]));
            let before = sent.len();
            protocol.write(&Request { kind: *kind, keys: &keys, value, expiry: Expiry::Never, tag: *tag }, &mut sent);
            prop_assert!(sent.len() > before);
            questions.push((*kind, keys, value, *tag));
        }
        let answers = ModelServer::default().serve(protocol, &sent).concat();

        let mut truth: HashMap<&[u8], &[u8]> = HashMap::new();
        let mut at = 0;
        for (kind, keys, value, tag) in &questions {
            let expected: Vec<(usize, Vec<u8>)> = match kind {
                Kind::Get => keys.iter().enumerate()
                    .filter_map(|(place, key)| Some((place, truth.get(key)?.to_vec())))
                    .collect(),
                _ => Vec::new(),
            };
            let answer = match kind {
                Kind::Get => Response::Found(expected.len()),
                Kind::Set => {
                    truth.insert(keys.get(0), value);
                    Response::Stored
                }
                Kind::Delete => Response::Deleted(truth.remove(keys.get(0)).is_some()),
            };
            let mut values = Vec::new();
            let parsed = protocol.read(*kind, keys, *tag, &answers[at..], |place, value| {
                values.push((place, value.to_vec()));
            });
            let Ok(ParsedResponse::Whole { used, answer: got }) = parsed else {
                panic!("{parsed:?} from {:?}", &answers[at..]);
            };
            prop_assert_eq!(got, answer);
            prop_assert_eq!(values, expected);
            let bytes = answers[at..at + used].to_vec();
            Case { protocol, kind: *kind, keys: keys.clone(), tag: *tag, bytes }.check();
            at += used;
        }
        prop_assert_eq!(at, answers.len());
    }

    /// RESP3 servers may push messages before an answer.
    #[test]
    fn messages_before_an_answer_are_skipped(
        pushes in proptest::collection::vec(proptest::sample::select(vec![
            &b">2\r\n+message\r\n$5\r\nhello\r\n"[..],
            b">3\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n_\r\n",
            b"|1\r\n+ttl\r\n:3600\r\n",
            b">1\r\n%1\r\n+a\r\n~2\r\n#t\r\n,1.5\r\n",
        ]), 0..4),
        value in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut keys = KeyList::new();
        keys.push(b"key");
        let answer = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
        let bytes = [pushes.concat(), answer].concat();
        let mut values = Vec::new();
        let parsed = Protocol::Resp3.read(Kind::Get, &keys, 0, &bytes, |_, value| {
            values.push(value.to_vec());
        });
        prop_assert_eq!(parsed, Ok(ParsedResponse::Whole { used: bytes.len(), answer: Response::Found(1) }));
        prop_assert_eq!(values, [value]);
        Case { protocol: Protocol::Resp3, kind: Kind::Get, keys, tag: 0, bytes }.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The checks of the fuzz targets, without a fuzzer.
    #[test]
    fn any_bytes_keep_the_invariants(
        protocol in protocols(),
        data in proptest::collection::vec(any::<u8>(), 3..200),
    ) {
        case(protocol, &data).expect("long enough").check();
    }

    /// The same for bytes that look like answers.
    #[test]
    fn likely_bytes_keep_the_invariants(
        protocol in protocols(),
        head in any::<[u8; 3]>(),
        pieces in proptest::collection::vec(prop_oneof![
            4 => proptest::sample::select(vec![
                "VALUE ", "alpha", "b", "user:42", " ", "0", "3", "12", "-1", "\r\n", "END\r\n",
                "VA ", "HD", "EN", "NF", " kalpha", " O0", " O", "$", "*", ":", "_", "+OK", "-ERR",
                ">", "|", "%", "~", "1", "2", "ERROR", "SERVER_ERROR ", "STORED", "DELETED", "abc",
                "\u{0}", "99999999999",
            ]).prop_map(|piece| piece.as_bytes().to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..4),
        ], 0..30),
    ) {
        let data = [&[head[0] & 0x7f, head[1], head[2] % 2][..], &pieces.concat()].concat();
        case(protocol, &data).expect("long enough").check();
    }

    /// The same for valid answers with a few wrong bytes.
    #[test]
    fn spoiled_answers_keep_the_invariants(
        protocol in protocols(),
        head in any::<[u8; 3]>(),
        spoils in proptest::collection::vec(any::<u8>(), 0..10),
    ) {
        let data = [&[head[0] | 0x80, head[1], head[2]][..], &spoils].concat();
        case(protocol, &data).expect("long enough").check();
    }
}
