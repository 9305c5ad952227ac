//! The content of messages, by which the receiver detects wrong, torn, shifted and stale bytes.
//!
//! Message `n` of a connection begins with its number (8 bytes, little end first; a shorter
//! message has the first of them), then, in a flow, the instant of its sending, then words of
//! an arithmetic sequence whose start depends on the connection and on `n`. The words are
//! computed where they are checked: a receiver reads nothing but what it received.

/// Odd, so that all multiples differ; its bytes look like noise.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Messages after which the same words come again.
const PERIOD: u64 = 512;
const WORD: usize = 8;

/// The content of one connection's messages.
#[derive(Debug, Clone, Copy)]
pub struct MessageContent {
    base: u64,
    size: usize,
    /// Bytes 8 to 15 are a time stamp.
    stamped: bool,
}

impl MessageContent {
    /// `stamped` messages of 16 bytes and more hold a time stamp.
    pub fn new(connection: usize, size: u64, stamped: bool) -> MessageContent {
        let base = (connection as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29);
        MessageContent { base, size: size as usize, stamped: stamped && size >= 16 }
    }

    pub fn stamped(&self) -> bool {
        self.stamped
    }

    /// Bytes in front of the words.
    fn head(&self) -> usize {
        if self.stamped { 2 * WORD } else { WORD }
    }

    fn word(&self, message: u64, index: usize) -> u64 {
        let turn = message % PERIOD + index as u64;
        self.base.wrapping_add(turn.wrapping_mul(STEP))
    }

    fn byte(&self, message: u64, at: usize) -> u8 {
        match at / WORD {
            0 => message.to_le_bytes()[at],
            index => self.word(message, index).to_le_bytes()[at % WORD],
        }
    }

    /// Bytes `at..` of a message, as many as fit `into`.
    pub fn write(&self, message: u64, stamp: u64, at: usize, into: &mut [u8]) {
        let mut at = at;
        let mut rest = into;
        // Up to a word's boundary and to the end of the head.
        while !rest.is_empty() && (at < self.head() || !at.is_multiple_of(WORD)) {
            rest[0] = match self.stamped && (WORD..2 * WORD).contains(&at) {
                true => stamp.to_le_bytes()[at - WORD],
                false => self.byte(message, at),
            };
            at += 1;
            rest = &mut rest[1..];
        }
        let mut word = self.word(message, at / WORD);
        let mut chunks = rest.chunks_exact_mut(WORD);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(STEP);
        }
        let tail = chunks.into_remainder();
        let length = tail.len();
        tail.copy_from_slice(&word.to_le_bytes()[..length]);
    }

    /// Whether `bytes` are the message's from `at` on; a time stamp may have any value.
    pub fn matches(&self, message: u64, at: usize, bytes: &[u8]) -> bool {
        let mut at = at;
        let mut rest = bytes;
        while let Some((first, others)) = rest.split_first()
            && (at < self.head() || !at.is_multiple_of(WORD))
        {
            if !self.matches_byte(message, at, *first) {
                return false;
            }
            at += 1;
            rest = others;
        }
        let mut word = self.word(message, at / WORD);
        let mut wrong = 0;
        let mut chunks = rest.chunks_exact(WORD);
        for chunk in &mut chunks {
            let mut read = [0; WORD];
            read.copy_from_slice(chunk);
            wrong |= u64::from_le_bytes(read) ^ word;
            word = word.wrapping_add(STEP);
        }
        let tail = chunks.remainder();
        wrong == 0 && tail == &word.to_le_bytes()[..tail.len()]
    }

    /// Whether a single byte is right.
    pub fn matches_byte(&self, message: u64, at: usize, byte: u8) -> bool {
        let stamp = self.stamped && (WORD..2 * WORD).contains(&at);
        stamp || byte == self.byte(message, at)
    }

    /// The number of a whole datagram. A short one holds only its low bytes: then the nearest number
    /// to `expected` that ends in them.
    pub fn message_number(&self, datagram: &[u8], expected: u64) -> u64 {
        let length = datagram.len().min(WORD);
        let mut bytes = expected.to_le_bytes();
        bytes[..length].copy_from_slice(&datagram[..length]);
        let read = u64::from_le_bytes(bytes);
        if length == WORD {
            return read;
        }
        // The nearest number that ends in these bytes.
        let turn = 1_i128 << (8 * length);
        let candidates = [-turn, 0, turn].map(|shift| i128::from(read) + shift);
        let near = candidates
            .into_iter()
            .filter(|number| *number >= 0)
            .min_by_key(|number| (number - i128::from(expected)).abs());
        near.map_or(read, |number| number as u64)
    }
}

/// A reusable buffer for the messages of one connection.
pub struct MessageSource {
    content: MessageContent,
    words: Vec<u8>,
    head: [u8; 2 * WORD],
    message: u64,
}

impl MessageSource {
    pub fn new(content: MessageContent) -> MessageSource {
        let words = PERIOD as usize + content.size / WORD + 1;
        let mut bytes = Vec::with_capacity(words * WORD);
        for index in 0..words {
            bytes.extend_from_slice(&content.word(0, index).to_le_bytes());
        }
        MessageSource { content, words: bytes, head: [0; 2 * WORD], message: 0 }
    }

    /// Makes `message` the current one.
    pub fn set(&mut self, message: u64, stamp: u64) {
        self.message = message;
        self.head[..WORD].copy_from_slice(&message.to_le_bytes());
        self.head[WORD..].copy_from_slice(&stamp.to_le_bytes());
    }

    /// The message from `at` on, in two parts.
    pub fn parts(&self, at: usize) -> (&[u8], &[u8]) {
        let size = self.content.size;
        let head = self.content.head().min(size);
        let from = (self.message % PERIOD) as usize * WORD;
        let body = &self.words[from + at.max(head)..from + size];
        (self.head.get(at..head).unwrap_or_default(), body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn accepts_what_was_written_and_rejects_any_flipped_bit(
            connection in 0_usize..100,
            size in 1_u64..300,
            message in 0_u64..2000,
            stamped: bool,
            cut in 0_usize..300,
            flip in 0_usize..300,
        ) {
            let content = MessageContent::new(connection, size, stamped);
            let size = size as usize;
            let (cut, flip) = (cut % size, flip % size);
            let mut bytes = vec![0; size];
            content.write(message, u64::MAX, 0, &mut bytes);
            prop_assert!(content.matches(message, 0, &bytes));
            prop_assert!(content.matches(message, cut, &bytes[cut..]));
            prop_assert!(content.matches(message, 0, &bytes[..cut]));
            let mut part = vec![0; size - cut];
            content.write(message, u64::MAX, cut, &mut part);
            prop_assert_eq!(&part, &bytes[cut..]);

            let mut source = MessageSource::new(content);
            source.set(message, u64::MAX);
            let (head, body) = source.parts(cut);
            prop_assert_eq!([head, body].concat(), part);
            prop_assert_eq!(content.message_number(&bytes, message), message);

            let in_stamp = content.stamped() && (8..16).contains(&flip);
            bytes[flip] ^= 0x40;
            prop_assert_eq!(content.matches(message, 0, &bytes), in_stamp);
            prop_assert_eq!(content.matches_byte(message, flip, bytes[flip]), in_stamp);
        }

        #[test]
        fn rejects_the_content_of_another_message(
            size in 1_u64..100, message in 0_u64..1000, off in 1_u64..250, shift in 1_usize..8,
        ) {
            let content = MessageContent::new(3, size, false);
            let mut bytes = vec![0; size as usize];
            content.write(message, 0, 0, &mut bytes);
            prop_assert!(!content.matches(message + off, 0, &bytes));
            let other = MessageContent::new(4, size, false);
            prop_assert!(size < 9 || !other.matches(message, 0, &bytes));
            // A byte that is lost in the middle shows.
            let mut stream = bytes.clone();
            stream.extend(vec![0; 8]);
            prop_assert!(size < 24 || !content.matches(message, 0, &stream[shift..shift + size as usize]));
        }
    }

    #[test]
    fn short_datagrams_give_the_number_nearest_to_the_expected() {
        let content = MessageContent::new(0, 1, false);
        for (message, expected) in [(255_u64, 256), (256, 255), (511, 512), (0, 0), (300, 299)] {
            let mut byte = [0];
            content.write(message, 0, 0, &mut byte);
            assert_eq!(content.message_number(&byte, expected), message);
        }
    }
}
