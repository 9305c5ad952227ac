//! What decides which thread goes on: locks, threads, and places where another may come first.
//!
//! Those of the operating system; or, with the feature `shuttle`, those of a scheduler that tries
//! many orders and can repeat each (`tests/interleavings.rs`). Atomics in memory that no
//! constructor runs over (the nodes of L0) are the processor's in both: [`yield_point`] stands at those
//! places.

#[cfg(not(feature = "shuttle"))]
mod os {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::{hint, thread};

    /// A value that is swapped as a whole.
    pub(crate) type AtomicArc<T> = arc_swap::ArcSwap<T>;

    /// Another thread may go on here.
    #[inline(always)]
    pub(crate) fn yield_point() {}
}

#[cfg(feature = "shuttle")]
mod shuttled {
    use std::sync::Arc;

    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use shuttle::{hint, thread};

    pub(crate) fn yield_point() {
        // Every use of one of its atomics is such a place.
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
