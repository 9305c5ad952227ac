//! Registers threads with DPDK, which caches frames per registered thread; others use the pool
//! directly, which is slower.

use crate::ffi;

/// The registration of a thread while this lives.
struct RegisteredThread(bool);

impl Drop for RegisteredThread {
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
    static REGISTERED: RegisteredThread = {
        // SAFETY: the environment runs, for a port exists. DPDK's own threads and those that
        // it already knows are left as they are; where there is no room for one more, the
        // thread works without.
        #[allow(unsafe_code)]
        let known = unsafe { ffi::kvm_thread_register() } == 0;
        RegisteredThread(known)
    };
}

/// Registers the calling thread, once.
pub fn enter() {
    REGISTERED.with(|_| ());
}
