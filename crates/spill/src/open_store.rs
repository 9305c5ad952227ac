//! An engine with its background threads, which end when its last handle is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::locks::lock;
use crate::schedule::Mutex;
use crate::schedule::thread::JoinHandle;

/// An engine with its threads.
pub(crate) struct OpenStore {
    pub(crate) engine: Arc<Engine>,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        self.engine.work.is_closing.store(true, Ordering::Release);
        self.engine.work.notify();
        self.engine.flusher.close();
        let _boost = self.engine.priority.boost();
        for thread in lock(&self.threads).drain(..) {
            // A panicked thread has nothing left to do.
            let _ = thread.join();
        }
        // In every mode a closed store is durable, and the next opening has less work and can tell
        // damage from loss. A failure here equals a power failure just before.
        let _ = self.engine.sync_all();
    }
}
