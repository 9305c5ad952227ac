//! Sanitize of NVMe devices (NVM Express Base Specification 2.0, sections 5.24 and 5.16.1.25):
//! everything on every namespace of the controller is gone, also what is not addressable.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::WriteError;

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)` of `linux/nvme_ioctl.h`.
const NVME_IOCTL_ADMIN_CMD: libc::c_ulong = 0xC048_4E41;
const IDENTIFY: u8 = 0x06;
const GET_LOG_PAGE: u8 = 0x02;
const SANITIZE: u8 = 0x84;
const SANITIZE_STATUS: u32 = 0x81;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;
/// How often the device is asked how far it is.
const EVERY: Duration = Duration::from_secs(1);

/// `struct nvme_admin_cmd`.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

fn command(file: &File, mut command: Command, into: &mut [u8]) -> io::Result<()> {
    command.address = into.as_mut_ptr() as u64;
    command.data_len = into.len() as u32;
    // SAFETY: the structure is the kernel's, and the memory that it names is borrowed for the call.
    match unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &mut command) } {
        0 => Ok(()),
        status if status > 0 => {
            Err(io::Error::other(format!("the device answered with NVMe status {status:#x}")))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// How far a sanitize is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The share that is done.
    Running(f64),
    Done,
    Failed,
}

/// The log page: progress in 1/65536, then the status.
fn state(page: &[u8]) -> State {
    let word = |at: usize| {
        let bytes = page.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
        u16::from_le_bytes(bytes.unwrap_or_default())
    };
    match word(2) & 0b111 {
        2 => State::Running(f64::from(word(0)) / 65536.0),
        3 => State::Failed,
        _ => State::Done,
    }
}

/// The way to erase that a controller offers, by its identification: blocks before keys.
fn action(identification: &[u8]) -> Option<u32> {
    let bytes = identification.get(328..332).and_then(|bytes| bytes.try_into().ok());
    let capabilities = u32::from_le_bytes(bytes.unwrap_or_default());
    match capabilities & 0b11 {
        0b10 | 0b11 => Some(BLOCK_ERASE),
        0b01 => Some(CRYPTO_ERASE),
        _ => None,
    }
}

/// Sanitizes the whole device and waits until it has ended; it goes on by itself when
/// `stop` is raised or `limit` is over.
pub(super) fn sanitize(
    file: &File,
    limit: Instant,
    stop: &AtomicBool,
    told: &mut dyn FnMut(f64),
) -> Result<(), WriteError> {
    let call = |what| move |error| WriteError::Call { what, error };
    let mut page = vec![0; 4096];
    let identify = Command { opcode: IDENTIFY, cdw10: 1, ..Command::default() };
    command(file, identify, &mut page)
        .map_err(call("asking for the controller's identification (sanitize needs NVMe)"))?;
    let action = action(&page).ok_or_else(|| {
        WriteError::Other("the controller offers no sanitize; leave out --sanitize".to_owned())
    })?;
    let erase =
        Command { opcode: SANITIZE, cdw10: action, timeout_ms: 60_000, ..Command::default() };
    command(file, erase, &mut []).map_err(call("starting the sanitize"))?;
    loop {
        std::thread::sleep(EVERY);
        let dwords = 512 / 4 - 1;
        let log = Command {
            opcode: GET_LOG_PAGE,
            namespace: u32::MAX,
            cdw10: SANITIZE_STATUS | dwords << 16,
            ..Command::default()
        };
        command(file, log, &mut page[..512]).map_err(call("asking how far the sanitize is"))?;
        match state(&page) {
            State::Done => return Ok(()),
            State::Failed => {
                return Err(WriteError::Other(
                    "the device says that its sanitize failed".to_owned(),
                ));
            }
            State::Running(share) => told(share),
        }
        if stop.load(Ordering::Relaxed) || Instant::now() > limit {
            return Err(WriteError::Other(
                "the sanitize goes on inside the device; wait for it and begin anew".to_owned(),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_the_kernels() {
        assert_eq!(size_of::<Command>(), 72);
        assert_eq!(std::mem::offset_of!(Command, cdw10), 40);
    }

    #[test]
    fn pages_are_read_as_specified() {
        let mut page = vec![0; 512];
        (page[0], page[1], page[2]) = (0, 0x80, 2);
        assert_eq!(state(&page), State::Running(0.5));
        page[2] = 1;
        assert_eq!(state(&page), State::Done);
        page[2] = 3;
        assert_eq!(state(&page), State::Failed);
        let mut identification = vec![0; 4096];
        assert_eq!(action(&identification), None);
        identification[328] = 1;
        assert_eq!(action(&identification), Some(CRYPTO_ERASE));
        identification[328] = 3;
        assert_eq!(action(&identification), Some(BLOCK_ERASE));
    }
}
