//! DPDK keeps frames for each thread that it knows; others take the slow way to the pool.

use crate::ffi;

/// Made known while it lives.
struct Known(bool);

impl Drop for Known {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread registered itself, and ends.
            #[allow(unsafe_code)]
            unsafe {
                ffi::kvm_thread_unregister();
            }
        }
    }
}

thread_local! {
    static KNOWN: Known = {
        // SAFETY: the environment runs, for a port exists. DPDK's own threads and those that
        // it already knows are left as they are; where there is no room for one more, the
        // thread works without.
        #[allow(unsafe_code)]
        let known = unsafe { ffi::kvm_thread_register() } == 0;
        Known(known)
    };
}

/// Makes the calling thread known, once.
pub fn enter() {
    KNOWN.with(|_| ());
}
