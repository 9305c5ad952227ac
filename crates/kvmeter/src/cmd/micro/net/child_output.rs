//! What a child process prints.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Longest output in bytes.
const MAX_OUTPUT: u64 = 64 << 20;

/// The lines of a stream as they come.
pub fn lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (say, hear) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            for line in BufReader::new(stream.take(MAX_OUTPUT)).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
    }
    hear
}

/// All of a stream, when it is over.
pub fn text(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (say, hear) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // On an error, what was read until then is returned.
            let _ = stream.take(MAX_OUTPUT).read_to_end(&mut bytes);
            let _ = say.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    hear
}
