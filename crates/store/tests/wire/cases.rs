//! Cases from arbitrary bytes: those that a fuzzer or proptest makes up. The fuzz targets use
//! this file as it is.

use model::Expiry;
use store::wire::{KeyList, Kind, Protocol, Request};

use crate::invariants::Case;
use crate::model_server::ModelServer;

/// The keys that are asked for; those with a space or control bytes only where they may be.
const KEYS: [&[u8]; 6] = [b"alpha", b"b", b"user:42", b"nobody", b"\0\xff", b"a b"];

/// A case of a protocol that the bytes choose: their first three say what is asked; what
/// follows either is the answer, or spoils a true answer at places that it names.
pub fn case(protocol: Protocol, data: &[u8]) -> Option<Case> {
    let (&[what, which, tag], rest) = data.split_first_chunk::<3>()?;
    let kind = match what & 3 {
        0 | 1 => Kind::Get,
        2 => Kind::Set,
        _ => Kind::Delete,
    };
    let mut keys = KeyList::new();
    let count = match kind {
        Kind::Get => 1 + usize::from(what >> 2 & 3),
        _ => 1,
    };
    let usable = KEYS.iter().filter(|key| protocol.check_key(key).is_ok());
    usable.cycle().skip(usize::from(which & 7)).take(count).for_each(|key| keys.push(key));
    let tag = u32::from(tag);
    let bytes = match what & 0x80 {
        0 => rest.to_vec(),
        _ => spoiled(protocol, kind, &keys, tag, rest),
    };
    Some(Case { protocol, kind, keys, tag, bytes })
}

/// A true answer in which each three bytes of `spoils` overwrite, insert or remove a byte.
fn spoiled(protocol: Protocol, kind: Kind, keys: &KeyList, tag: u32, spoils: &[u8]) -> Vec<u8> {
    let mut server = ModelServer::default();
    server.values.insert(b"alpha".to_vec(), b"one\r\ntwo".to_vec());
    server.values.insert(b"user:42".to_vec(), vec![b'v'; 120]);
    server.values.insert(b"\0\xff".to_vec(), Vec::new());
    let mut request = Vec::new();
    protocol
        .write(&Request { kind, keys, value: b"new", expiry: Expiry::Never, tag }, &mut request);
    let mut answer = server.serve(protocol, &request).concat();
    for &[how, place, byte] in spoils.as_chunks::<3>().0 {
        let place = usize::from(place) % answer.len().max(1);
        match how % 4 {
            0 if place < answer.len() => answer[place] = byte,
            1 => answer.insert(place, byte),
            2 if place < answer.len() => drop(answer.remove(place)),
            _ => answer.push(byte),
        }
    }
    answer
}
