//! Erasing by commands of NVMe (NVM Express Base Specification 2.0): sanitize (section 5.24) and
//! format (5.14), if the controller declares them in its identification (5.17.2.1).

#![allow(unsafe_code)]

mod format;
mod sanitize;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::error::WriteError;

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)` of `linux/nvme_ioctl.h`.
const NVME_IOCTL_ADMIN_CMD: libc::c_ulong = 0xC048_4E41;
/// `_IO('N', 0x40)`: the number of the namespace that was opened.
const NVME_IOCTL_ID: libc::c_ulong = 0x4E40;
const IDENTIFY: u8 = 0x06;
/// Target of an identification (CNS): a namespace or the controller.
const OF_NAMESPACE: u32 = 0;
const OF_CONTROLLER: u32 = 1;
const PAGE: usize = 4096;

/// `struct nvme_admin_cmd`.
#[repr(C)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NvmeCommand {
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

/// A receiver of admin commands.
trait NvmeAdmin {
    /// Sends a command; the answer is written to `into`.
    fn submit(&self, command: NvmeCommand, into: &mut [u8]) -> io::Result<()>;
    /// The number of the namespace behind the device that is to be erased.
    fn namespace(&self) -> io::Result<u32>;
}

impl NvmeAdmin for File {
    fn submit(&self, mut command: NvmeCommand, into: &mut [u8]) -> io::Result<()> {
        command.address = into.as_mut_ptr() as u64;
        command.data_len = into.len() as u32;
        // SAFETY: the structure is the kernel's, and the memory that it names is borrowed for the
        // call.
        match unsafe { libc::ioctl(self.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &mut command) } {
            0 => Ok(()),
            status if status > 0 => {
                Err(io::Error::other(format!("the device answered with NVMe status {status:#x}")))
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn namespace(&self) -> io::Result<u32> {
        // SAFETY: the request takes no argument.
        match unsafe { libc::ioctl(self.as_raw_fd(), NVME_IOCTL_ID as _) } {
            number if number > 0 => Ok(number as u32),
            0 => Err(io::Error::other("the device has no namespace")),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A way to erase that the controller declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erasure {
    /// The whole device, by this action.
    Sanitize { action: u32 },
    /// One namespace with the block size that it has, by these words of the command.
    Format { namespace: u32, how: u32, all_namespaces: bool },
}

impl Erasure {
    /// The erasure by `--sanitize`; nothing is changed.
    ///
    /// # Errors
    /// In words: it is not an NVMe device, or declares no sanitize.
    pub(super) fn sanitize(device: &File) -> Result<Erasure, String> {
        sanitize::plan(device)
    }

    /// The erasure by `--format`; nothing is changed.
    ///
    /// # Errors
    /// In words: it is not an NVMe device, or declares no format.
    pub(super) fn format(device: &File) -> Result<Erasure, String> {
        format::plan(device)
    }

    /// Whether more than the named device is erased.
    pub(super) fn reaches_others(self) -> bool {
        !matches!(self, Erasure::Format { all_namespaces: false, .. })
    }

    /// The erasure in words.
    pub(super) fn describe(self) -> String {
        match self {
            Erasure::Sanitize { action } => {
                let by = sanitize::name(action);
                format!("sanitize by {by}: every namespace of its controller is erased")
            }
            Erasure::Format { all_namespaces: true, .. } => {
                "format with erasure of user data: every namespace of its controller is erased"
                    .to_owned()
            }
            Erasure::Format { namespace, .. } => {
                format!("format namespace {namespace} with erasure of its user data")
            }
        }
    }

    /// Erases and waits for the end. `report` gets the share that is done, where the device gives it. A
    /// sanitize continues by itself when `stop` is set or `limit` is over.
    ///
    /// # Errors
    /// The device refused the command or failed.
    pub(super) fn run(
        self,
        file: &File,
        limit: Instant,
        stop: &AtomicBool,
        report: &mut dyn FnMut(f64),
    ) -> Result<(), WriteError> {
        match self {
            Erasure::Sanitize { action } => {
                sanitize::run(file, action, sanitize::POLL_INTERVAL, limit, stop, report)
            }
            Erasure::Format { namespace, how, .. } => format::run(file, namespace, how),
        }
    }
}

/// The identification page (4 KiB) of the controller or of a namespace.
fn identify(admin: &dyn NvmeAdmin, of: u32, namespace: u32) -> Result<Vec<u8>, String> {
    let mut page = vec![0; PAGE];
    let command = NvmeCommand { opcode: IDENTIFY, namespace, cdw10: of, ..NvmeCommand::default() };
    admin.submit(command, &mut page).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTTY | libc::EINVAL) => "is not an NVMe device".to_owned(),
        _ => format!("does not identify itself as an NVMe device: {error}"),
    })?;
    Ok(page)
}
