//! Payloads cut into pieces, and put together again.
use bytes::Bytes;

use crate::messages::Piece;

/// Small enough for heartbeats to pass on a slow line, large enough for a fast one.
const PIECE: usize = 64 << 10;

/// The largest assignment that an agent takes, in bytes.
pub const LARGEST_ASSIGNMENT: usize = 64 << 20;
/// The largest outcome that a coordinator takes, in bytes.
pub const LARGEST_OUTCOME: usize = 1 << 30;

/// At least one piece, the last one marked; nothing is copied.
pub fn cut(round: u32, payload: Vec<u8>) -> impl Iterator<Item = Piece> {
    let mut rest = Some(Bytes::from(payload));
    std::iter::from_fn(move || {
        let mut data = rest.take()?;
        if data.len() > PIECE {
            rest = Some(data.split_off(PIECE));
        }
        Some(Piece { round, data, last: rest.is_none() })
    })
}

/// Assembles a payload from its pieces.
#[derive(Debug, Default)]
pub struct PayloadAssembler {
    bytes: Vec<u8>,
}

/// The payload exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct PayloadTooLarge;

impl PayloadAssembler {
    /// The whole payload, after its last piece.
    pub fn add(&mut self, piece: &Piece, most: usize) -> Result<Option<Vec<u8>>, PayloadTooLarge> {
        if self.bytes.len() + piece.data.len() > most {
            self.bytes = Vec::new();
            return Err(PayloadTooLarge);
        }
        self.bytes.extend_from_slice(&piece.data);
        Ok(piece.last.then(|| std::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_payloads_are_reassembled() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7] {
            let payload: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let pieces: Vec<Piece> = cut(4, payload.clone()).collect();
            assert_eq!(pieces.len(), length.div_ceil(PIECE).max(1));
            let mut gather = PayloadAssembler::default();
            for (n, piece) in pieces.iter().enumerate() {
                assert_eq!((piece.round, piece.last), (4, n + 1 == pieces.len()));
                let whole = gather.add(piece, length).unwrap();
                assert_eq!(whole.as_ref(), piece.last.then_some(&payload));
            }
        }
    }

    #[test]
    fn too_large_payloads_are_refused_at_once() {
        let mut gather = PayloadAssembler::default();
        let pieces: Vec<Piece> = cut(1, vec![0; 2 * PIECE]).collect();
        assert_eq!(gather.add(&pieces[0], PIECE), Ok(None));
        assert_eq!(gather.add(&pieces[1], PIECE), Err(PayloadTooLarge));
    }
}
