//! The environment abstraction layer, once in a process.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::DpdkError;
use crate::ffi;
use crate::port::{Port, find, start};

/// Settings that all ports share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Frames of the pool, for all ports together.
    pub frames: u32,
    /// The largest payload of a frame, in bytes.
    pub mtu: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config { frames: 16_384, mtu: 1500 }
    }
}

/// Ethernet's header.
pub(crate) const HEADER: u32 = 14;
/// Smallest data room of a frame that many drivers accept.
const MIN_ROOM: u32 = 2048;
/// Bytes of a frame beyond its data room: header, headroom and the pool's overhead.
const OVERHEAD: u32 = 128 + 128 + 64;
/// Frames in the caches of threads: two threads with one and a half times the size of theirs.
const CACHED: u32 = 768;
const RING: u32 = 1024;

/// Arguments that choose the place of the environment's files; with one of them, none is added.
const PLACE_ARGUMENTS: [&str; 5] =
    ["--in-memory", "--file-prefix", "--no-shconf", "--proc-type", "--huge-dir"];

/// The running environment. It runs until the process ends.
#[derive(Debug)]
pub struct Eal {
    pool: Option<NonNull<ffi::Mempool>>,
    config: Config,
}

impl Eal {
    /// Starts it with these arguments (`rte_eal_init`). Without any it takes ordinary memory,
    /// enough for the pool, and no cards.
    ///
    /// # Errors
    /// DPDK refuses; its reasons went to standard error. It may also end the process.
    pub fn start(arguments: &[String], config: Config) -> Result<Eal, DpdkError> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(DpdkError::Again);
        }
        let mut all = vec!["kvmeter".to_owned()];
        let given = |word: &str| arguments.iter().any(|own| own == word);
        if !arguments.iter().any(|word| PLACE_ARGUMENTS.iter().any(|own| word.starts_with(own))) {
            // Nothing is left on disk, and two environments do not meet. Ordinary memory is
            // DPDK's legacy mode, which has another word for it.
            let ordinary = arguments.is_empty() || given("--no-huge");
            all.push(if ordinary { "--no-shconf" } else { "--in-memory" }.to_owned());
            all.push("--no-telemetry".to_owned());
        }
        if arguments.is_empty() {
            let mebibytes = (bytes(config) >> 20) + 64;
            all.extend(["--no-huge", "--no-pci"].map(str::to_owned));
            all.extend(["-m".to_owned(), mebibytes.to_string()]);
        }
        all.extend(arguments.iter().cloned());
        let words: Result<Vec<CString>, DpdkError> = all
            .into_iter()
            .map(|word| CString::new(word.clone()).map_err(|_| DpdkError::Argument(word)))
            .collect();
        // DPDK keeps pointers to its arguments.
        let words: &'static [CString] = Box::leak(words?.into_boxed_slice());
        let mut pointers: Vec<*mut c_char> =
            words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());
        let pointers: &'static mut [*mut c_char] = Box::leak(pointers.into_boxed_slice());
        // SAFETY: the array has one string a word, ends with a null pointer, and lives for
        // ever; the environment was not started before.
        #[allow(unsafe_code)]
        let parsed = unsafe { ffi::kvm_eal_init(words.len() as c_int, pointers.as_mut_ptr()) };
        if parsed < 0 {
            // SAFETY: reads DPDK's own error number of this thread.
            #[allow(unsafe_code)]
            let number = unsafe { ffi::kvm_errno() };
            return Err(DpdkError::Start { why: text(number) });
        }
        Ok(Eal { pool: None, config })
    }

    /// Starts a port by its name: a PCI address or a virtual device's name. `ports` is how many
    /// this process drives.
    ///
    /// # Errors
    /// There is no such port, or it does not start.
    pub fn port(&mut self, name: &str, ports: u32) -> Result<Port, DpdkError> {
        let number = find(name)?;
        let pool = self.pool()?;
        start(number, name, pool, self.config, ports)
    }

    /// Starts two ports that are joined by rings in memory: the client's and the server's.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn ring_pair(&mut self) -> Result<(Port, Port), DpdkError> {
        let mut ports = [0; 2];
        // SAFETY: the array has the two places that the shim fills.
        #[allow(unsafe_code)]
        let failed = unsafe { ffi::kvm_ring_pair(RING, ports.as_mut_ptr()) };
        if failed != 0 {
            let (name, doing) = ("net_ring".to_owned(), "making the rings");
            return Err(DpdkError::Port { name, doing, why: text(-failed) });
        }
        let pool = self.pool()?;
        let client = start(ports[0], "net_ring_client", pool, self.config, 2)?;
        let server = start(ports[1], "net_ring_server", pool, self.config, 2)?;
        Ok((client, server))
    }

    fn pool(&mut self) -> Result<NonNull<ffi::Mempool>, DpdkError> {
        if let Some(pool) = self.pool {
            return Ok(pool);
        }
        let Config { frames, .. } = self.config;
        let least = CACHED * 2;
        if frames < least {
            return Err(DpdkError::FewFrames { frames, least });
        }
        // SAFETY: the environment runs; a null pointer says that it failed.
        #[allow(unsafe_code)]
        let (pool, number) =
            unsafe { (ffi::kvm_pool(frames, room(self.config)), ffi::kvm_errno()) };
        let pool = NonNull::new(pool).ok_or_else(|| DpdkError::Pool {
            frames,
            bytes: bytes(self.config),
            why: text(number),
        })?;
        self.pool = Some(pool);
        Ok(pool)
    }
}

/// Frames that the caller of a port with these queues may hold, of a pool that `ports` share.
pub(crate) fn spare(config: Config, queues: u32, ports: u32) -> Option<u32> {
    config.frames.checked_sub(queues * ports + CACHED * 2).filter(|spare| *spare > 0)
}

fn room(config: Config) -> u32 {
    (u32::from(config.mtu) + HEADER).max(MIN_ROOM)
}

/// Memory of the pool.
fn bytes(config: Config) -> u64 {
    u64::from(config.frames) * u64::from(room(config) + OVERHEAD)
}

/// DPDK's text for an error number.
pub(crate) fn text(number: c_int) -> String {
    // SAFETY: DPDK answers with a string of this thread that lasts until the next call.
    #[allow(unsafe_code)]
    let words = unsafe { CStr::from_ptr(ffi::kvm_error_text(number)) };
    words.to_string_lossy().into_owned()
}
