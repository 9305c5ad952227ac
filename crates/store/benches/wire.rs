//! The cost of the codecs: a request written and its answer read, for keys of 30 bytes and values
//! of 200.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use model::Expiry;
use store::wire::{KeyList, Kind, ParsedResponse, Protocol, Request, Ring};

const KEY: &[u8] = b"user:000000000000000000000042:";
const TAG: u32 = 123_456;

/// The answer to a get of the key, as the server sends it.
fn hit(protocol: Protocol, value: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let text = |answer: &mut Vec<u8>, head: String| {
        answer.extend_from_slice(head.as_bytes());
        answer.extend_from_slice(value);
        answer.extend_from_slice(b"\r\n");
    };
    let key = std::str::from_utf8(KEY).expect("a text key");
    let length = value.len();
    match protocol {
        Protocol::MemcachedText => {
            text(&mut answer, format!("VALUE {key} 0 {length}\r\n"));
            answer.extend_from_slice(b"END\r\n");
        }
        Protocol::MemcachedMeta => text(&mut answer, format!("VA {length} k{key} O{TAG}\r\n")),
        Protocol::MemcachedBinary => {
            let body = 4 + KEY.len() + length;
            answer.extend_from_slice(&[0x81, 0x0c, 0, KEY.len() as u8, 4, 0, 0, 0]);
            answer.extend_from_slice(&(body as u32).to_be_bytes());
            answer.extend_from_slice(&TAG.to_be_bytes());
            answer.extend_from_slice(&[0; 12]);
            answer.extend_from_slice(KEY);
            answer.extend_from_slice(value);
        }
        Protocol::Resp2 | Protocol::Resp3 => text(&mut answer, format!("${length}\r\n")),
    }
    answer
}

fn stored(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::MemcachedText => b"STORED\r\n".to_vec(),
        Protocol::MemcachedMeta => format!("HD O{TAG}\r\n").into_bytes(),
        Protocol::MemcachedBinary => {
            let mut answer = vec![0x81, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            answer.extend_from_slice(&TAG.to_be_bytes());
            answer.extend_from_slice(&[0; 8]);
            answer
        }
        Protocol::Resp2 | Protocol::Resp3 => b"+OK\r\n".to_vec(),
    }
}

fn codecs(criterion: &mut Criterion) {
    let value = [b'v'; 200];
    let mut keys = KeyList::new();
    keys.push(KEY);
    for protocol in Protocol::ALL {
        let mut group = criterion.benchmark_group(protocol.name());
        for (kind, answer) in [(Kind::Get, hit(protocol, &value)), (Kind::Set, stored(protocol))] {
            let request =
                Request { kind, keys: &keys, value: &value, expiry: Expiry::Never, tag: TAG };
            let mut out = Vec::with_capacity(4096);
            group.bench_function(format!("write {kind}"), |bencher| {
                bencher.iter(|| {
                    out.clear();
                    black_box(protocol).write(black_box(&request), &mut out);
                    out.len()
                });
            });
            group.bench_function(format!("read {kind}"), |bencher| {
                bencher.iter(|| {
                    let mut bytes = 0;
                    let parsed = black_box(protocol)
                        .read(kind, &keys, TAG, black_box(&answer), |_, value| bytes += value.len())
                        .expect("the answer is right");
                    assert!(matches!(parsed, ParsedResponse::Whole { .. }));
                    bytes
                });
            });
        }
        group.finish();
    }
}

fn ring(criterion: &mut Criterion) {
    let names: Vec<String> = (0..8).map(|server| format!("10.0.0.{server}:11211")).collect();
    let ring = Ring::new(&names);
    criterion.bench_function("ring of 8 servers", |bencher| {
        bencher.iter(|| ring.server_of(black_box(KEY)));
    });
}

criterion_group!(benches, codecs, ring);
criterion_main!(benches);
