//! The secret of the keyed hash.

use std::path::Path;

use workload::trace::SECRET;

use crate::exit::request;

/// The longest file.
const MOST: u64 = 4 << 10;

/// That of a file, or a random one.
pub fn secret(file: Option<&Path>) -> anyhow::Result<[u8; SECRET]> {
    let mut secret = [0; SECRET];
    let Some(path) = file else {
        getrandom::fill(&mut secret)
            .map_err(|error| anyhow::anyhow!("no random secret: {error}"))?;
        return Ok(secret);
    };
    let wrong = |why: &str| request(format!("--key-secret {}: {why}", path.display()));
    let text = safe_file::read_text(path, MOST).map_err(|error| wrong(&error.why()))?;
    let digits = text.trim().as_bytes();
    let form = "it must hold 32 hexadecimal digits, as `openssl rand -hex 16` prints";
    if digits.len() != 2 * SECRET {
        return Err(wrong(form));
    }
    for (byte, pair) in secret.iter_mut().zip(digits.as_chunks::<2>().0) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16).map(|digit| digit as u8);
        let (high, low) = digit(0).zip(digit(1)).ok_or_else(|| wrong(form))?;
        *byte = high << 4 | low;
    }
    Ok(secret)
}
