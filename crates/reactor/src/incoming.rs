use std::io;

/// Initial receive buffer of a connection, in bytes.
const FIRST: usize = 16 << 10;

/// Free space below which unconsumed bytes are moved to the front.
const LITTLE: usize = 4 << 10;

/// Bytes that were received and not consumed, in one piece; grows by doubling
/// and never shrinks.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Drops the first `bytes` (or all).
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start += bytes.min(self.len());
        if self.start == self.end {
            self.clear();
        }
    }

    /// Free space of at least `least` bytes after the content; the caller fills some of it and
    /// calls [`Incoming::filled`].
    pub(crate) fn room(&mut self, least: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < least {
            self.make_room(least);
        }
        &mut self.bytes[self.end..]
    }

    /// Room for a read from a socket: never none, more as answers prove larger.
    pub(crate) fn room_to_read(&mut self) -> &mut [u8] {
        self.room(LITTLE)
    }

    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
        debug_assert!(self.end <= self.bytes.len());
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled(bytes.len());
    }

    /// Reads all that `source` has at the moment; returns the number of bytes.
    pub(crate) fn fill_from(&mut self, source: &mut impl io::Read) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            match source.read(self.room_to_read()) {
                Ok(0) => return Ok(taken),
                Ok(bytes) => {
                    self.filled(bytes);
                    taken += bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                Err(error) => return Err(error),
            }
        }
    }

    #[cold]
    fn make_room(&mut self, least: usize) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // Half of it free after the move, or large answers would be moved for every few bytes.
        let capacity = (self.end + least).max(self.end * 2).max(FIRST);
        if self.bytes.len() < capacity {
            self.bytes.resize(capacity.next_power_of_two(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconsumed_bytes_stay_in_order() {
        let mut incoming = Incoming::default();
        let (mut written, mut read) = (0u32, 0u32);
        for round in 0..2_000usize {
            for _ in 0..round % 97 {
                incoming.append(&written.to_le_bytes());
                written += 1;
            }
            let whole = incoming.len() / 4;
            for _ in 0..whole.saturating_sub(round % 5) {
                let word: [u8; 4] = incoming.as_slice()[..4].try_into().unwrap();
                assert_eq!(u32::from_le_bytes(word), read);
                incoming.consume(4);
                read += 1;
            }
        }
        assert!(read > 90_000);
        assert_eq!(incoming.bytes.len(), FIRST);
    }

    #[test]
    fn grows_only_for_unconsumed_bytes() {
        let mut incoming = Incoming::default();
        incoming.append(&[7; 100]);
        assert_eq!(incoming.bytes.len(), FIRST);
        incoming.append(&vec![8; 1 << 20]);
        assert!((1 << 20..=4 << 20).contains(&incoming.bytes.len()));
        incoming.consume(100);
        assert_eq!(incoming.as_slice(), vec![8; 1 << 20]);
        incoming.consume(usize::MAX);
        assert_eq!(incoming.len(), 0);
        assert!(!incoming.room_to_read().is_empty());
    }
}
