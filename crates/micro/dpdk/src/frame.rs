use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::ffi::{self, Mbuf};

/// A frame of a pool, without its checksum. Dropping it returns it to the pool.
#[derive(Debug)]
pub struct Frame {
    mbuf: NonNull<Mbuf>,
    data: NonNull<u8>,
    length: u32,
}

// SAFETY: a frame has one owner, and DPDK's pools take frames back from any thread.
#[allow(unsafe_code)]
unsafe impl Send for Frame {}

impl Frame {
    /// None for null pointers.
    ///
    /// # Safety
    /// `mbuf` is a frame of one segment with no other owner, and has `length` bytes at `data`.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn new(mbuf: *mut Mbuf, data: *mut u8, length: u32) -> Option<Frame> {
        Some(Frame { mbuf: NonNull::new(mbuf)?, data: NonNull::new(data)?, length })
    }

    /// Still ours to free.
    pub(crate) fn pointer(&self) -> *mut Mbuf {
        self.mbuf.as_ptr()
    }
}

impl Deref for Frame {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the data belongs to the frame, which lives as long as `self`, and pools are
        // never taken down while the process runs.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.data.as_ptr(), self.length as usize)
        }
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the frame has no other owner.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.data.as_ptr(), self.length as usize)
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: the frame is ours, and is not used after.
        #[allow(unsafe_code)]
        unsafe {
            ffi::kvm_free(self.mbuf.as_ptr());
        }
    }
}
