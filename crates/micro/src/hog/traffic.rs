//! Kinds of memory traffic.
#![allow(unsafe_code, reason = "streaming stores")]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kind of memory traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// Each line is read once and not changed: every byte counts once.
    #[default]
    Read,
    /// Each line is read and written: every byte counts twice.
    Update,
    /// Each line is written past the caches: every byte counts once. On x86-64 only.
    Write,
}

impl Traffic {
    /// Times that a byte of the buffer crosses the bus.
    pub const fn crossings(self) -> u64 {
        match self {
            Traffic::Read | Traffic::Write => 1,
            Traffic::Update => 2,
        }
    }
}

impl FromStr for Traffic {
    type Err = String;
    fn from_str(text: &str) -> Result<Traffic, String> {
        match text {
            "read" => Ok(Traffic::Read),
            "update" => Ok(Traffic::Update),
            "write" if cfg!(target_arch = "x86_64") => Ok(Traffic::Write),
            "write" => Err("writes past the caches are built for x86-64 only".to_owned()),
            _ => Err(format!("`{text}` is not one of read, update, write")),
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Traffic::Read => "read",
            Traffic::Update => "update",
            Traffic::Write => "write",
        })
    }
}

/// Words of a line of the cache.
const WORDS: usize = 8;

/// Moves a piece that begins on a line and is whole lines long.
pub(super) fn move_piece(traffic: Traffic, piece: &mut [u64]) {
    match traffic {
        Traffic::Read => {
            std::hint::black_box(sum(piece));
        }
        Traffic::Update => {
            piece.iter_mut().for_each(|word| *word = word.wrapping_add(1));
            std::hint::black_box(piece);
        }
        Traffic::Write => write(piece, 1),
    }
}

/// The sum of all words, in as many partial sums as a line has words: no load waits for another.
fn sum(piece: &[u64]) -> u64 {
    let mut sums = [0_u64; WORDS];
    for line in piece.chunks_exact(WORDS) {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

#[cfg(target_arch = "x86_64")]
fn write(piece: &mut [u64], word: i64) {
    use std::arch::x86_64::{__m128i, _mm_set1_epi64x, _mm_sfence, _mm_stream_si128};
    for line in piece.chunks_exact_mut(WORDS) {
        assert!(line.as_ptr().align_offset(16) == 0, "pieces begin on lines of the cache");
        for pair in line.chunks_exact_mut(2) {
            // SAFETY: two words that are borrowed alone, on 16 bytes (asserted: a pair's offset in
            // its line is a multiple of them); SSE2 is part of the architecture.
            unsafe { _mm_stream_si128(pair.as_mut_ptr().cast::<__m128i>(), _mm_set1_epi64x(word)) };
        }
    }
    // SAFETY: a fence touches no memory.
    unsafe { _mm_sfence() };
}

/// [`Traffic::Write`] is refused on this architecture.
#[cfg(not(target_arch = "x86_64"))]
fn write(piece: &mut [u64], word: i64) {
    piece.fill(word as u64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{PageSize, Placement, Region};

    #[test]
    fn every_word_of_a_piece_is_moved() {
        let mut region = Region::map(4096, PageSize::System, Placement::FirstTouch).unwrap();
        let words = region.as_mut_slice::<u64>();
        for (word, i) in words.iter_mut().zip(0..) {
            *word = i;
        }
        assert_eq!(sum(words), 511 * 512 / 2);
        move_piece(Traffic::Read, words);
        assert_eq!(sum(words), 511 * 512 / 2);
        move_piece(Traffic::Update, words);
        assert_eq!(sum(words), 511 * 512 / 2 + 512);
        if cfg!(target_arch = "x86_64") {
            move_piece(Traffic::Write, words);
            assert!(words.iter().all(|word| *word == 1));
        }
    }

    #[test]
    fn kinds_parse_as_displayed() {
        for traffic in [Traffic::Read, Traffic::Update, Traffic::Write] {
            let read = traffic.to_string().parse::<Traffic>();
            assert!(read == Ok(traffic) || !cfg!(target_arch = "x86_64"));
        }
        assert!("all".parse::<Traffic>().is_err());
    }
}
