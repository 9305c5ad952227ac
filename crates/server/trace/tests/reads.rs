//! A capture of what this very process reads; one test, since others would see each other's calls.

#![allow(clippy::unwrap_used)]

use std::io::{IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use syscall_trace::{BpfError, ReadCapture, UnavailableReason};

#[test]
fn each_form_of_a_read_is_copied_with_its_place_in_the_connection() {
    if let Err(why) = syscall_trace::available() {
        assert!(!matches!(why, UnavailableReason::Bpf(BpfError::Rejected { .. })), "{why}");
        eprintln!("SKIPPED: {why}");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut capture = ReadCapture::attach(std::process::id()).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut events: Vec<(u64, u32, Vec<u8>)> = Vec::new();
    let mut taken = |capture: &mut ReadCapture| {
        events.clear();
        let own = server.as_raw_fd() as u32;
        capture.take(|read| {
            if read.descriptor == own {
                events.push((read.position, read.length, read.bytes.to_vec()));
            }
        });
        std::mem::take(&mut events)
    };
    assert_eq!(taken(&mut capture), [(0, 0, vec![])]);

    client.write_all(b"get a\r\n").unwrap();
    let mut buffer = [0; 7];
    (&server).read_exact(&mut buffer).unwrap();
    assert_eq!(taken(&mut capture), [(0, 7, b"get a\r\n".to_vec())]);

    // Of a vector the first part; the others are a gap of known length.
    client.write_all(b"abcdef").unwrap();
    let (mut first, mut second) = ([0; 2], [0; 4]);
    let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!((&server).read_vectored(&mut parts).unwrap(), 6);
    assert_eq!(taken(&mut capture), [(7, 6, b"ab".to_vec())]);

    // Of a long read the first 16 KiB. What the client reads is not copied.
    let long: Vec<u8> = (0..40_000u32).map(|i| i as u8).collect();
    client.write_all(&long).unwrap();
    let mut buffer = vec![0; long.len()];
    (&server).read_exact(&mut buffer).unwrap();
    let got = taken(&mut capture);
    let mut position = 13;
    for (at, length, bytes) in &got {
        let begin = (*at - 13) as usize;
        assert_eq!((*at, bytes.len()), (position, (*length as usize).min(16 << 10)));
        assert_eq!(bytes[..], long[begin..begin + bytes.len()]);
        position += u64::from(*length);
    }
    assert_eq!(position, 40_013);
    server.write_all(b"END\r\n").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    assert_eq!(capture.take(|read| panic!("{read:?}")), 0);
    assert_eq!(capture.losses().reads(), 0);
    assert!(!capture.exited());
}
