//! kvmeter's side of the shared file: makes it, and reads it while the server runs. Reading takes
//! no lock; it costs the server at most a cache miss for each line that is read and then written
//! again.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions, remove_file};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::{fmt, io};

use crate::layout::{
    BUCKETS, ClockKind, Counter, FILE_BYTES, Header, LANES, Lane, MAGIC, VERSION, bucket_value,
};
use crate::sys;

/// Why a shared file could not be made or read.
#[derive(Debug)]
pub enum ReaderError {
    /// The file system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// The file is not one of these.
    NotATap {
        /// The file.
        path: PathBuf,
    },
    /// The file was made by another version of kvmeter.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// Ours.
        expected: u32,
    },
}

impl fmt::Display for ReaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReaderError::Io { path, action, source } => {
                write!(f, "cannot {action} {}: {source}", path.display())
            }
            ReaderError::NotATap { path } => write!(
                f,
                "{} does not hold server-side latency; make it with kvmeter before the server starts",
                path.display()
            ),
            ReaderError::Version { path, version, expected } => write!(
                f,
                "{} is of version {version}, this kvmeter reads version {expected}; start the server again with this kvmeter",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ReaderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReaderError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The shared file, mapped for reading.
pub struct Reader {
    path: PathBuf,
    header: *const Header,
    made_here: bool,
}

// SAFETY: the mapping is of this process, not of a thread, and everything in
// it is atomic.
unsafe impl Send for Reader {}
// SAFETY: as above.
unsafe impl Sync for Reader {}

impl Reader {
    /// Makes the file anew (mode 0600, sparse, some 8 MiB long) and maps it; it is removed when the
    /// reader is dropped. One file serves one start of one server. It should be in memory
    /// (`/dev/shm`): on a disk its pages would be written back. It must not be shortened while the
    /// server runs.
    ///
    /// # Errors
    /// [`ReaderError::Io`], also when the file is there already.
    pub fn create(path: &Path) -> Result<Reader, ReaderError> {
        let failed =
            |action| move |source| ReaderError::Io { path: path.to_path_buf(), action, source };
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed("make"))?;
        let prepared = file
            .set_len(FILE_BYTES as u64)
            .and_then(|()| {
                let version_at = std::mem::offset_of!(Header, version) as u64;
                file.write_all_at(&VERSION.to_ne_bytes(), version_at)
            })
            .and_then(|()| file.write_all_at(&MAGIC.to_ne_bytes(), 0))
            .and_then(|()| map(&file));
        match prepared {
            Ok(header) => Ok(Reader { path: path.to_path_buf(), header, made_here: true }),
            Err(source) => {
                // The first error is reported.
                let _ = remove_file(path);
                Err(failed("prepare")(source))
            }
        }
    }

    /// Maps a file that another process made.
    ///
    /// # Errors
    /// [`ReaderError`] when it cannot be read or is not of this version.
    pub fn open(path: &Path) -> Result<Reader, ReaderError> {
        let failed =
            |action| move |source| ReaderError::Io { path: path.to_path_buf(), action, source };
        let file = File::open(path).map_err(failed("open"))?;
        let mut start = [0u8; 12];
        let length = file.metadata().map_err(failed("look at"))?.len();
        if length < start.len() as u64 {
            return Err(ReaderError::NotATap { path: path.to_path_buf() });
        }
        file.read_exact_at(&mut start, 0).map_err(failed("read"))?;
        let [m0, m1, m2, m3, m4, m5, m6, m7, v0, v1, v2, v3] = start;
        if u64::from_ne_bytes([m0, m1, m2, m3, m4, m5, m6, m7]) != MAGIC {
            return Err(ReaderError::NotATap { path: path.to_path_buf() });
        }
        let version = u32::from_ne_bytes([v0, v1, v2, v3]);
        if version != VERSION {
            let path = path.to_path_buf();
            return Err(ReaderError::Version { path, version, expected: VERSION });
        }
        if length != FILE_BYTES as u64 {
            return Err(ReaderError::NotATap { path: path.to_path_buf() });
        }
        let header = map(&file).map_err(failed("map"))?;
        Ok(Reader { path: path.to_path_buf(), header, made_here: false })
    }

    /// The file: what [`preload::VARIABLE`](crate::preload::VARIABLE) is set to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped as long as the reader lives, and made of atomics.
        unsafe { &*self.header }
    }

    fn lanes(&self) -> &[Lane] {
        // SAFETY: the file was made or found to be so long; a lane is made of
        // atomics, for which zero is valid.
        unsafe { std::slice::from_raw_parts(self.header.add(1).cast(), LANES) }
    }

    /// The current counts. The counters of a running server are read one after the other and may
    /// differ by a request in progress.
    pub fn snapshot(&self) -> Snapshot {
        let header = self.header();
        let pid = header.pid.load(Acquire);
        let server = ClockKind::from_number(header.clock.load(Relaxed)).map(|clock| Server {
            pid,
            clock,
            ticks_per_s: header.ticks_per_s.load(Relaxed),
        });
        // The server can write all of it, so no number is trusted.
        let used = (header.lanes_used.load(Acquire) as usize).min(LANES);
        let mut buckets = vec![0; BUCKETS];
        let mut threads = Vec::with_capacity(used);
        for lane in self.lanes().iter().take(used) {
            threads.push(Thread {
                id: lane.thread.load(Relaxed),
                running: lane.owned.load(Relaxed) != 0,
                totals: Totals::of(lane),
            });
            for (index, count) in buckets.iter_mut().enumerate() {
                *count = u64::saturating_add(*count, lane.bucket(index));
            }
        }
        Snapshot {
            server: server.filter(|_| pid != 0),
            threads,
            buckets,
            threads_unwatched: header.threads_unwatched.load(Relaxed),
            connections_unwatched: header.connections_unwatched.load(Relaxed),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and not used any more.
        unsafe { sys::munmap(self.header.cast_mut().cast(), FILE_BYTES) };
        if self.made_here {
            // It may be removed already.
            let _ = remove_file(&self.path);
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).finish_non_exhaustive()
    }
}

fn map(file: &File) -> io::Result<*const Header> {
    let (protection, fd) = (sys::PROT_READ, file.as_raw_fd());
    // SAFETY: a new mapping of an open file.
    let mapped =
        unsafe { sys::mmap(std::ptr::null_mut(), FILE_BYTES, protection, sys::MAP_SHARED, fd, 0) };
    if sys::map_failed(mapped) {
        return Err(io::Error::last_os_error());
    }
    Ok(mapped.cast_const().cast())
}

/// The process that is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server {
    /// Its process number: the newest, if several attached themselves.
    pub pid: u32,
    /// The clock of the intervals.
    pub clock: ClockKind,
    /// Ticks of that clock a second, as calibrated when it started.
    pub ticks_per_s: u64,
}

/// One thread of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Its number (of the newest thread, where a lane was reused).
    pub id: u32,
    /// Whether it has not ended.
    pub running: bool,
    /// Its counts. Requests count where they were read, intervals where they were answered,
    /// possibly in another thread.
    pub totals: Totals,
}

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident: $counter:ident,)*) => {
        /// Sums since the server started, or since an earlier snapshot.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Totals {
            fn of(lane: &Lane) -> Totals {
                Totals { $($field: lane.get(Counter::$counter),)* }
            }

            fn combine(self, other: Totals, combine: impl Fn(u64, u64) -> u64) -> Totals {
                Totals { $($field: combine(self.$field, other.$field),)* }
            }
        }
    };
}

totals! {
    /// Whole requests that arrived.
    requests: Requests,
    /// Of these, requests without answers (noreply, quiet); not timed.
    quiet: Quiet,
    /// Of these, answered before their last byte came; not timed.
    early: Early,
    /// Intervals recorded.
    answered: Answered,
    /// Sum of the recorded intervals, ns.
    sum_ns: SumNs,
    /// Reads that completed at least one request with an answer: `requests / batches` is how deep
    /// clients pipeline.
    batches: Batches,
    /// Of the intervals, those of batches of an unknown protocol. Not 0: the histogram is of
    /// batches, not of requests.
    opaque: Opaque,
    /// Connections with an unknown protocol.
    opaque_connections: OpaqueConnections,
    /// Connections from which something was read.
    connections: Connections,
    /// Connections that became streams of messages; not timed.
    streams: Streams,
    /// Answers that no request was waiting for; not timed.
    unsolicited: Unsolicited,
    /// Batches counted into the one before: their intervals are too long.
    merged: Merged,
    /// Negative intervals, taken as 0: the CPUs' clocks differ.
    backwards: Backwards,
    /// Intervals of 137 s and more, counted in the last bucket.
    beyond: Beyond,
    /// Reads of connections that brought something.
    reads: Reads,
    /// Bytes of these reads.
    bytes_in: BytesIn,
    /// Writes to connections that took something.
    writes: Writes,
    /// Bytes of these writes.
    bytes_out: BytesOut,
    /// Reads and writes of connections that moved nothing.
    empty_calls: EmptyCalls,
    /// Waits for events that brought some, of threads that serve connections.
    wake_ups: WakeUps,
    /// Events of these returns.
    events: Events,
    /// Calls whose own cost was sampled (one in 61).
    sampled: Sampled,
    /// The library's own time in the sampled calls, ns.
    sampled_own_ns: SampledOwnNs,
    /// Writes whose own duration was sampled.
    sampled_writes: SampledWrites,
    /// The duration of the sampled writes, ns.
    sampled_write_ns: SampledWriteNs,
}

impl Totals {
    /// The library's own time, ns, from its samples; `None` before the first.
    /// The calls through it, a few ns each, are not in it.
    pub fn own_ns(&self) -> Option<f64> {
        let calls = self.reads as f64 + self.writes as f64;
        (self.sampled > 0).then(|| self.sampled_own_ns as f64 * calls / self.sampled as f64)
    }

    /// Mean duration of a write call, ns, from the samples: what the interval
    /// would be longer by if it ended with the return of the write.
    pub fn mean_write_ns(&self) -> Option<f64> {
        (self.sampled_writes > 0).then(|| self.sampled_write_ns as f64 / self.sampled_writes as f64)
    }

    /// Mean of the recorded intervals, ns, from their exact sum.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.answered > 0).then(|| self.sum_ns as f64 / self.answered as f64)
    }
}

/// Counts at one instant, or between two.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The watched server; `None` while none has attached itself: it has not
    /// started, was not started with the library, or could not use the file.
    pub server: Option<Server>,
    /// Threads that read or wrote connections.
    pub threads: Vec<Thread>,
    /// Threads that are not watched: there were more than 256.
    pub threads_unwatched: u64,
    /// Connections that are not watched: descriptors of 2^20 and above.
    pub connections_unwatched: u64,
    buckets: Vec<u64>,
}

impl Snapshot {
    /// The difference to `earlier`, of the same file.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let mut later = self.clone();
        for (thread, before) in later.threads.iter_mut().zip(&earlier.threads) {
            thread.totals = thread.totals.combine(before.totals, u64::saturating_sub);
        }
        for (count, before) in later.buckets.iter_mut().zip(&earlier.buckets) {
            *count = count.saturating_sub(*before);
        }
        later.threads_unwatched = later.threads_unwatched.saturating_sub(earlier.threads_unwatched);
        later.connections_unwatched =
            later.connections_unwatched.saturating_sub(earlier.connections_unwatched);
        later
    }

    /// Sums over all threads.
    pub fn totals(&self) -> Totals {
        let sums = self.threads.iter().map(|thread| thread.totals);
        sums.fold(Totals::default(), |sum, one| sum.combine(one, u64::saturating_add))
    }

    /// The histogram: `(value_ns, count)` of each bucket that is not empty, in
    /// rising order. The value is the bucket's middle: exact below 256 ns,
    /// within 0.4 % above.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(index, count)| (bucket_value(index), *count))
    }

    /// Intervals in the histogram.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The interval, ns, that a share of `quantile` (0 to 1) does not exceed,
    /// within 0.4 %; `None` when there are none.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let rank = (self.count() as f64 * quantile.clamp(0.0, 1.0)).ceil().max(1.0);
        let mut cumulative = 0;
        self.buckets().find_map(|(value, count)| {
            cumulative = count.saturating_add(cumulative);
            (cumulative as f64 >= rank).then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server maps the file too, and can write any number.
    #[test]
    fn shared_counters_are_not_trusted() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("kvmeter-tap-reader-{}", std::process::id()));
        let reader = Reader::create(&path).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let lanes_used = std::mem::offset_of!(Header, lanes_used) as u64;
        file.write_all_at(&u32::MAX.to_ne_bytes(), lanes_used).unwrap();
        for lane in 0..2 {
            let lane = (size_of::<Header>() + lane * size_of::<Lane>()) as u64;
            file.write_all_at(&[0xff; size_of::<Lane>()], lane).unwrap();
        }
        let before = reader.snapshot();
        assert_eq!(before.threads.len(), LANES);
        assert_eq!(before.count(), u64::MAX);
        let none = reader.snapshot().since(&before);
        assert_eq!((none.count(), none.totals().requests), (0, 0));
        assert!(before.quantile_ns(0.99).is_some() && before.totals().own_ns().is_some());
    }
}
