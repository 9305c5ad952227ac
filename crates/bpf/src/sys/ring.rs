//! A ring of records that programs in the kernel write and this process reads,
//! `Documentation/bpf/ringbuf.rst`.

use super::{MapCreate, create_map, kernel_name, no_memory};
use crate::error::BpfError;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAP_TYPE_RINGBUF: u32 = 27;
/// Bits of a record's length.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Length and page offset before a record.
const RECORD_HEADER: usize = 8;

/// One consumer reads it. The kernel maps the records twice in a row, so that one that goes over
/// the end is contiguous too.
pub struct Ring {
    descriptor: OwnedFd,
    bytes: usize,
    page: usize,
    /// The page with the consumer's position, which only this process writes.
    consumer: NonNull<u8>,
    /// The page with the producers' position, then the records.
    producer: NonNull<u8>,
}

// SAFETY: the mappings belong to the process; positions are atomic, and records are read by the
// one owner alone.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of `bytes`, a power of two and a multiple of a page.
    pub fn create(name: &str, bytes: usize) -> Result<Ring, BpfError> {
        let mut attributes = MapCreate {
            map_type: MAP_TYPE_RINGBUF,
            max_entries: bytes as u32,
            map_name: kernel_name(name),
            ..MapCreate::default()
        };
        let descriptor = create_map(&mut attributes)?;
        // SAFETY: reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let consumer = map(&descriptor, 0, page, libc::PROT_READ | libc::PROT_WRITE)
            .map_err(|error| no_memory(&error))?;
        let producer = match map(&descriptor, page, page + 2 * bytes, libc::PROT_READ) {
            Ok(producer) => producer,
            Err(error) => {
                unmap(consumer, page);
                return Err(no_memory(&error));
            }
        };
        Ok(Ring { descriptor, bytes, page, consumer, producer })
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Passes the records that are there to `each`, at most as many as fill the ring once; returns
    /// their number.
    pub fn take(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        // SAFETY: the first word of each mapping is a position, page-aligned, changed as a whole.
        let (consumer, producer) = unsafe {
            (self.consumer.cast::<AtomicU64>().as_ref(), self.producer.cast::<AtomicU64>().as_ref())
        };
        let begin = consumer.load(Ordering::Relaxed);
        let end = producer.load(Ordering::Acquire).min(begin + self.bytes as u64);
        let (mut position, mut records) = (begin, 0);
        while position < end {
            let at = self.page + (position as usize & (self.bytes - 1));
            // SAFETY: within the mapping of page and twice the ring; records are aligned to 8.
            let length = unsafe { self.producer.add(at).cast::<AtomicU32>().as_ref() };
            let length = length.load(Ordering::Acquire);
            if length & BUSY != 0 {
                break;
            }
            let bytes = (length & !(BUSY | DISCARDED)) as usize;
            if length & DISCARDED == 0 {
                // SAFETY: the kernel has committed the record, which is shorter than the ring, and
                // writes there only after the consumer's position has passed it.
                let record = unsafe {
                    let first = self.producer.add(at + RECORD_HEADER);
                    std::slice::from_raw_parts(first.as_ptr(), bytes.min(self.bytes))
                };
                each(record);
                records += 1;
            }
            position += (bytes + RECORD_HEADER).next_multiple_of(8) as u64;
            consumer.store(position, Ordering::Release);
        }
        records
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        unmap(self.consumer, self.page);
        unmap(self.producer, self.page + 2 * self.bytes);
    }
}

fn map(
    descriptor: &OwnedFd,
    offset: usize,
    bytes: usize,
    protection: i32,
) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            libc::MAP_SHARED,
            descriptor.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    match NonNull::new(start.cast::<u8>()) {
        Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(start),
        _ => Err(io::Error::last_os_error()),
    }
}

fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: exactly a mapping made above; no borrow outlives its owner.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}
