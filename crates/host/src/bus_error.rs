//! Ends a process whose mapped file cannot be read any more: stores that map their files learn of
//! an I/O error by SIGBUS only.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static REPORTED: AtomicBool = AtomicBool::new(false);

/// From now on, mapped memory that cannot be read ends the process with code 1 and a message that
/// names the file and the byte.
///
/// # Errors
/// In words, why the kernel refused.
pub fn report_bus_errors() -> Result<(), String> {
    // On the stack for signals that the standard library gives every thread.
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK;
    let action = SigAction::new(SigHandler::SigAction(handle_sigbus), flags, SigSet::empty());
    // SAFETY: the handler calls nothing but system calls, and does not return.
    match unsafe { sigaction(Signal::SIGBUS, &action) } {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("SIGBUS: {}", error.desc())),
    }
}

/// The signal may arrive during an allocation, so nothing here allocates or locks.
extern "C" fn handle_sigbus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // A failing device affects all threads at once: the first one reports and ends the process.
    while REPORTED.swap(true, Ordering::Relaxed) {
        // SAFETY: a call without arguments.
        unsafe { libc::pause() };
    }
    // SAFETY: the kernel hands a whole structure to a handler that asked for it.
    let address = unsafe { info.as_ref().map_or(0, |info| info.si_addr() as u64) };
    let mut maps = [0_u8; 512];
    let mut line = MapsLine::default();
    let mut mapping = None;
    // SAFETY: the path ends with a zero byte.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY) };
    while file >= 0 && mapping.is_none() {
        // SAFETY: the buffer is as long as it is said to be.
        let read = unsafe { libc::read(file, maps.as_mut_ptr().cast(), maps.len()) };
        if read <= 0 {
            break;
        }
        for byte in &maps[..read as usize] {
            if *byte != b'\n' {
                line.push(*byte);
            } else if let Some(at) = line.place_of(address) {
                mapping = Some(at);
                break;
            } else {
                line = MapsLine::default();
            }
        }
    }
    write_stderr(b"error: ");
    match mapping {
        Some(at) => {
            write_stderr(line.path());
            write_stderr(b": byte ");
            write_stderr(decimal(at, &mut [0; 20]));
        }
        None => write_stderr(b"mapped memory"),
    }
    write_stderr(
        b" cannot be read: the device failed, or the file was cut (SIGBUS). What was finished is \
         kept; the kernel's log (dmesg) names the sector\n",
    );
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(1) }
}

fn write_stderr(text: &[u8]) {
    // SAFETY: the text has the given length. A failed write is ignored.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Writes a number into the end of `digits`.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[from..];
        }
    }
}

/// One line of `/proc/self/maps`: `FROM-TO MODE OFFSET DEVICE INODE   PATH`.
struct MapsLine {
    text: [u8; 1024],
    length: usize,
}

impl Default for MapsLine {
    fn default() -> Self {
        MapsLine { text: [0; 1024], length: 0 }
    }
}

impl MapsLine {
    /// A line that is too long is truncated.
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }

    /// The file offset of an address, if it lies in this mapping.
    fn place_of(&self, address: u64) -> Option<u64> {
        let mut words = self.text().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let mut ends = words.next()?.split(|byte| *byte == b'-');
        let (from, to) = (hex(ends.next()?)?, hex(ends.next()?)?);
        let offset = hex(words.nth(1)?)?;
        (from..to).contains(&address).then(|| offset + (address - from))
    }

    fn path(&self) -> &[u8] {
        let at = self.text().iter().position(|byte| *byte == b'/');
        at.and_then(|at| self.text().get(at..)).unwrap_or(b"memory without a file")
    }
}

fn hex(word: &[u8]) -> Option<u64> {
    word.iter().try_fold(0_u64, |number, digit| {
        Some(number.checked_mul(16)? + u64::from((*digit as char).to_digit(16)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> MapsLine {
        let mut line = MapsLine::default();
        text.bytes().for_each(|byte| line.push(byte));
        line
    }

    #[test]
    fn a_line_gives_file_and_byte() {
        let line = line("7f12e000-7f132000 rw-s 00001000 07:01 12      /mnt/a b/data.mdb");
        assert_eq!(line.place_of(0x7f12_e010), Some(0x1010));
        assert_eq!(line.place_of(0x7f13_2000), None);
        assert_eq!(line.path(), b"/mnt/a b/data.mdb");
    }

    #[test]
    fn other_lines_give_nothing() {
        assert_eq!(line("").place_of(0), None);
        assert_eq!(line("55d0-55e0").place_of(0x55d1), None);
        assert_eq!(line("zz-yy r--p 0 00:00 0").place_of(1), None);
        assert_eq!(line("0-1000 rw-p 0 00:00 0 ").path(), b"memory without a file");
        assert_eq!(line(&"x".repeat(5000)).text().len(), 1024);
    }

    #[test]
    fn numbers_are_written_without_allocation() {
        assert_eq!(decimal(0, &mut [0; 20]), b"0");
        assert_eq!(decimal(u64::MAX, &mut [0; 20]), b"18446744073709551615");
    }
}
