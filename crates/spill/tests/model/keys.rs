//! Keys and values of the model test. Keys come in families that are hard on an index which keeps
//! eight bytes of them, zeros for what lies beyond their end.

/// A key: how it is made, and which one of those.
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
            // Only zeros; the empty key.
            0 => vec![0; number % 12],
            // Prefixes of each other that differ in zeros at the end.
            1 => {
                let tails: [&[u8]; 5] = [b"", b"b", b"\0b", b"b\0", b"\xff"];
                [b"a", &vec![0; number % 7][..], tails[number / 7 % 5]].concat()
            }
            // Each a prefix of the next, up to the longest key.
            2 => vec![b'p'; number % (spill::MAX_KEY_LEN + 1)],
            // More in common than a page takes out, some as long as can be.
            3 => {
                let common = spill::MAX_KEY_LEN - 24;
                [&vec![b'x'; common][..], &pair, &vec![0; number % 23]].concat()
            }
            // As much in common as a page takes out, a little less and a little more.
            4 => [&vec![b'y'; 118 + number % 24][..], &(self.number / 24).to_be_bytes()].concat(),
            // Zeros where what a page knows of a key ends.
            5 => [&[b'z'; 100][..], &vec![0; 20 + number % 30], &[(number % 3) as u8]].concat(),
            // Anything.
            6 => {
                let word = mixed(u64::from(self.number));
                (0..1 + word % 40).map(|at| mixed(word + at) as u8).collect()
            }
            7 => format!("user{:019}", mixed(u64::from(self.number)) >> 4).into_bytes(),
            8 => [&pair[..], &vec![0; number % 4]].concat(),
            // Zeros and ones.
            _ => (0..number % 17).map(|bit| (self.number >> bit) as u8 & 1).collect(),
        }
    }
}

/// A value: what is in it, and how long it is.
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
            word = mixed(word);
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(self.len as usize);
        bytes
    }
}

/// The finaliser of SplitMix64.
pub fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
