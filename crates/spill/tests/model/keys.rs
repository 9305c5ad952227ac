//! Keys and values of the model test. The key families are hard on an index that keeps eight bytes
//! of a key, zero-padded beyond its end.

/// A key: its family and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub family: u8,
    pub number: u16,
}

pub const FAMILIES: u8 = 10;

impl Key {
    pub fn bytes(self) -> Vec<u8> {
        let number = usize::from(self.number);
        let pair = self.number.to_be_bytes();
        match self.family % FAMILIES {
            // Only zeros, and the empty key.
            0 => vec![0; number % 12],
            // Prefixes of each other that differ in trailing zeros.
            1 => {
                let tails: [&[u8]; 5] = [b"", b"b", b"\0b", b"b\0", b"\xff"];
                [b"a", &vec![0; number % 7][..], tails[number / 7 % 5]].concat()
            }
            // Each a prefix of the next, up to the longest key.
            2 => vec![b'p'; number % (spill::MAX_KEY_LEN + 1)],
            // A longer common prefix than a page strips, some of maximum length.
            3 => {
                let common = spill::MAX_KEY_LEN - 24;
                [&vec![b'x'; common][..], &pair, &vec![0; number % 23]].concat()
            }
            // A common prefix about as long as a page strips.
            4 => [&vec![b'y'; 118 + number % 24][..], &(self.number / 24).to_be_bytes()].concat(),
            // Zeros where a page's knowledge of a key ends.
            5 => [&[b'z'; 100][..], &vec![0; 20 + number % 30], &[(number % 3) as u8]].concat(),
            // Anything.
            6 => {
                let word = mix(u64::from(self.number));
                (0..1 + word % 40).map(|at| mix(word + at) as u8).collect()
            }
            7 => format!("user{:019}", mix(u64::from(self.number)) >> 4).into_bytes(),
            8 => [&pair[..], &vec![0; number % 4]].concat(),
            // Zeros and ones.
            _ => (0..number % 17).map(|bit| (self.number >> bit) as u8 & 1).collect(),
        }
    }
}

/// A value: its seed and length.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    pub seed: u16,
    pub len: u32,
}

impl Value {
    pub fn bytes(self) -> Vec<u8> {
        let mut word = u64::from(self.seed) + 1;
        let mut bytes = Vec::with_capacity(self.len as usize + 8);
        while bytes.len() < self.len as usize {
            word = mix(word);
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(self.len as usize);
        bytes
    }
}

/// The finaliser of SplitMix64.
pub fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
