//! A power meter of the MCP39F511 family behind a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::pty::{OpenptyResult, openpty};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::ttyname;

use crate::common::Recorded;

/// The question of the data sheet for 44 bytes from 0x02.
const QUESTION: [u8; 8] = [0xA5, 0x08, 0x41, 0x00, 0x02, 0x4E, 0x2C, 0x6A];

/// What the simulator does with one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Play {
    Watts(f64),
    /// The right answer, in pieces.
    Slowly(f64),
    Nak,
    ChecksumFailed,
    BadChecksum,
    Short,
    Noise,
    Silence,
}

/// A machine with a meter on `/dev/ttyUSB0` that plays its script, and the last of it forever.
pub struct Simulated {
    pub machine: Recorded,
    /// How often it was asked.
    pub asked: Arc<AtomicUsize>,
    /// Keeps the line open.
    _slave: File,
}

pub fn simulated(script: &[Play]) -> Simulated {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    let mut raw = tcgetattr(&slave).unwrap();
    cfmakeraw(&mut raw);
    tcsetattr(&slave, SetArg::TCSANOW, &raw).unwrap();
    let mut machine = Recorded::empty();
    machine.root = machine.root.with_device("/dev/ttyUSB0", ttyname(&slave).unwrap());
    let (mut line, script) = (File::from(master), script.to_vec());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    // Ends when the line is closed at the other end.
    thread::spawn(move || {
        let mut question = [0; QUESTION.len()];
        while line.read_exact(&mut question).is_ok() {
            assert_eq!(question, QUESTION);
            let at = count.fetch_add(1, Ordering::SeqCst);
            let play = script[at.min(script.len() - 1)];
            if answer(&mut line, play).is_err() {
                return;
            }
        }
    });
    Simulated { machine, asked, _slave: File::from(slave) }
}

fn answer(line: &mut File, play: Play) -> std::io::Result<()> {
    match play {
        Play::Watts(watts) => line.write_all(&frame(watts)),
        Play::Slowly(watts) => frame(watts).chunks(9).try_for_each(|part| {
            line.write_all(part)?;
            thread::sleep(Duration::from_millis(3));
            Ok(())
        }),
        Play::Nak => line.write_all(&[0x15]),
        Play::ChecksumFailed => line.write_all(&[0x51]),
        Play::BadChecksum => {
            let mut frame = frame(100.0);
            frame[20] ^= 0x40;
            line.write_all(&frame)
        }
        Play::Short => line.write_all(&frame(100.0)[..30]),
        Play::Noise => line.write_all(&[0xFF; 12]),
        Play::Silence => Ok(()),
    }
}

/// Both variants' registers: the power of a 511A, and a third and two thirds of it on a 511N.
fn frame(watts: f64) -> Vec<u8> {
    let steps = (watts * 100.0).round() as u32;
    let mut bytes = vec![0; 46];
    (bytes[0], bytes[1]) = (0x06, 47);
    for (register, value) in [(0x12, steps), (0x16, steps / 3), (0x1A, steps / 3 * 2)] {
        bytes[register..register + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes.push(bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
    bytes
}
