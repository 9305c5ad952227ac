//! A server whose time is known, built by the tests: each connection has a thread, which sleeps 2
//! ms between the read and the writes that answer it, one a line. Input that does not begin with a
//! letter is answered in one write.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_default();
    for stream in UnixListener::bind(path)?.incoming() {
        let stream = stream?;
        std::thread::spawn(move || serve(stream));
    }
    Ok(())
}

fn serve(mut stream: UnixStream) -> std::io::Result<()> {
    // None of these may count.
    let (mut one, mut other) = UnixStream::pair()?;
    let (mut from, mut to) = std::io::pipe()?;
    let mut piece = [0; 4096];
    loop {
        let bytes = stream.read(&mut piece)?;
        let received = &piece[..bytes];
        if received.is_empty() {
            return Ok(());
        }
        let mut status = String::new();
        std::fs::File::open("/proc/self/stat")?.read_to_string(&mut status)?;
        to.write_all(b"get a\r\n")?;
        from.read_exact(&mut [0; 7])?;
        one.write_all(b"get a\r\n")?;
        other.read_exact(&mut [0; 7])?;
        std::thread::sleep(Duration::from_millis(2));
        if received[0].is_ascii_alphabetic() {
            for _ in received.iter().filter(|byte| **byte == b'\n') {
                stream.write_all(b"HD\r\n")?;
            }
        } else {
            stream.write_all(b"\x17\x03\x03")?;
        }
    }
}
