//! The checksum of a file's content.

use std::fmt::Write;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// SHA-256 of all that is left to read, in hexadecimal digits, as `sha256sum` prints it.
///
/// # Errors
/// It cannot be read.
pub fn sha256(mut content: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut part = vec![0; 256 << 10];
    loop {
        match content.read(&mut part)? {
            0 => break,
            length => hash.update(&part[..length]),
        }
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    /// Source: FIPS 180-4, the example of one block.
    #[test]
    fn the_published_example_holds() {
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(super::sha256(&b"abc"[..]).unwrap(), sum);
    }
}
