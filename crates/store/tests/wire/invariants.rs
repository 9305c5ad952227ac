//! Invariants of every codec for arbitrary bytes. The fuzz targets include this file.

use store::wire::{KeyList, Kind, ParsedResponse, Protocol, Response, WireError};

/// A request and bytes that may be its answer.
#[derive(Debug, Clone)]
pub struct Case {
    pub protocol: Protocol,
    pub kind: Kind,
    pub keys: KeyList,
    pub tag: u32,
    pub bytes: Vec<u8>,
}

type Values = Vec<(usize, Vec<u8>)>;

impl Case {
    fn read(&self, bytes: &[u8]) -> (Result<ParsedResponse, WireError>, Values) {
        let mut values = Values::new();
        let read = self.protocol.read(self.kind, &self.keys, self.tag, bytes, |place, value| {
            values.push((place, value.to_vec()));
        });
        (read, values)
    }

    /// Checks that
    /// - an answer is incomplete until its last byte is there, reports how much it needs at least,
    ///   and yields no value before;
    /// - bytes after an answer change nothing;
    /// - an error stays an error, whatever follows.
    ///
    /// # Panics
    /// If one of these does not hold.
    pub fn check(&self) {
        let bytes = &self.bytes;
        let (read, values) = self.read(bytes);
        match read {
            Ok(ParsedResponse::Whole { used, answer }) => {
                assert!(used <= bytes.len(), "uses {used} of {} bytes", bytes.len());
                self.check_prefixes(used, used);
                if used < bytes.len() {
                    let alone = self.read(&bytes[..used]);
                    assert_eq!(alone.0, Ok(ParsedResponse::Whole { used, answer: answer.clone() }));
                    assert_eq!(alone.1, values);
                }
                assert!(values.windows(2).all(|two| two[0].0 < two[1].0), "in order, each once");
                assert!(values.iter().all(|(place, _)| *place < self.keys.len()));
                match answer {
                    Response::Found(found) => assert_eq!(found, values.len()),
                    _ => assert!(values.is_empty(), "a value without a find"),
                }
            }
            Ok(ParsedResponse::Incomplete { needs }) => {
                assert!(needs > bytes.len(), "needs {needs} and has {}", bytes.len());
                assert!(values.is_empty(), "a value of an answer that is not whole");
                self.check_prefixes(bytes.len(), usize::MAX);
            }
            Err(error) => {
                assert!(values.is_empty(), "a value of an answer that is wrong");
                assert!(!error.to_string().is_empty());
                for more in [&b"\r\n"[..], b"0", b"END\r\n", &[0; 64]] {
                    let longer = [bytes, more].concat();
                    assert!(self.read(&longer).0.is_err(), "was wrong before {more:?}: {error}");
                }
            }
        }
    }

    /// Checks the beginnings of an answer that has `length` bytes here and `whole` in all.
    fn check_prefixes(&self, length: usize, whole: usize) {
        // All of a short one; of a long one, those where headers lie and a sample of the rest.
        let step = (length / 512).max(1);
        let ends = (0..length.min(256)).chain((256..length).step_by(step));
        for end in ends.chain(length.saturating_sub(64)..length) {
            let (read, values) = self.read(&self.bytes[..end]);
            let Ok(ParsedResponse::Incomplete { needs }) = read else {
                panic!("{end} of {length} bytes: {read:?}");
            };
            assert!(needs > end, "needs {needs} and has {end}");
            assert!(needs <= whole, "needs {needs} of {whole}");
            assert!(values.is_empty(), "a value of an answer that is not whole");
        }
    }
}
