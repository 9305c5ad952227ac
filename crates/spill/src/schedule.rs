//! Locks, atomics and threads, and the points where another thread may run.
//!
//! They come from the operating system or, with the feature `shuttle`, from a scheduler that tries
//! many interleavings and can replay each (`tests/interleavings.rs`). Memtable nodes use the CPU's
//! atomics in both cases, since no constructor runs over their memory; [`yield_point`] marks the
//! places.

#[cfg(not(feature = "shuttle"))]
mod os {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::{hint, thread};

    /// An `Arc` that is replaced atomically.
    pub(crate) type AtomicArc<T> = arc_swap::ArcSwap<T>;

    /// Another thread may run here.
    #[inline(always)]
    pub(crate) fn yield_point() {}
}

#[cfg(feature = "shuttle")]
mod shuttled {
    use std::sync::Arc;

    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use shuttle::{hint, thread};

    pub(crate) fn yield_point() {
        // Every access to one of shuttle's atomics is such a point.
        atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
    }

    pub(crate) struct AtomicArc<T>(arc_swap::ArcSwap<T>);

    impl<T> AtomicArc<T> {
        pub(crate) fn from_pointee(value: T) -> Self {
            AtomicArc(arc_swap::ArcSwap::from_pointee(value))
        }

        pub(crate) fn load(&self) -> Arc<T> {
            yield_point();
            self.0.load_full()
        }

        pub(crate) fn load_full(&self) -> Arc<T> {
            self.load()
        }

        pub(crate) fn store(&self, value: Arc<T>) {
            yield_point();
            self.0.store(value);
        }
    }
}

#[cfg(not(feature = "shuttle"))]
pub(crate) use os::*;
#[cfg(feature = "shuttle")]
pub(crate) use shuttled::*;
