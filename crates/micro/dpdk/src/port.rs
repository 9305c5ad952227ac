//! A port with one queue each way.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{NonNull, null_mut};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::eal::{Config, HEADER, spare, text};
use crate::error::DpdkError;
use crate::ffi::{self, Mempool, RawCounts, RawFacts};
use crate::frame::Frame;
use crate::thread::enter;

/// Frames of one burst.
const BURST: usize = 32;
const LONGEST_NAME: usize = 64;

/// A started port, driven by one thread at a time. It is stopped and closed when it is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    name: String,
    pool: NonNull<Mempool>,
    facts: RawFacts,
    spare: u32,
}

// SAFETY: a port's queues may be used by any thread, by one at a time, which `&mut` ensures;
// pools are shared by all threads.
#[allow(unsafe_code)]
unsafe impl Send for Port {}

/// Counters of a port since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub received: u64,
    pub sent: u64,
    /// Frames that arrived while the queue was full.
    pub missed: u64,
    pub receive_errors: u64,
    pub send_errors: u64,
    /// Frames that arrived while the pool was empty.
    pub no_frames: u64,
}

/// The number of a port.
pub(crate) fn find(name: &str) -> Result<u16, DpdkError> {
    let unknown = || DpdkError::NoPort { name: name.to_owned(), known: known() };
    let words = CString::new(name).map_err(|_| unknown())?;
    let mut number = 0;
    // SAFETY: a string that ends, and a place for the number.
    #[allow(unsafe_code)]
    let failed = unsafe { ffi::kvm_port_find(words.as_ptr(), &raw mut number) };
    if failed == 0 { Ok(number) } else { Err(unknown()) }
}

/// The ports that DPDK knows, in words.
fn known() -> String {
    // SAFETY: the environment runs.
    #[allow(unsafe_code)]
    let count = unsafe { ffi::kvm_port_count() };
    let mut names = Vec::new();
    for index in 0..count {
        let mut name: [c_char; LONGEST_NAME] = [0; LONGEST_NAME];
        // SAFETY: the shim writes a string of at most 64 bytes with its end.
        #[allow(unsafe_code)]
        let found = unsafe {
            (ffi::kvm_port_name(index, name.as_mut_ptr()) == 0)
                .then(|| CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned())
        };
        names.extend(found);
    }
    match names.is_empty() {
        true => "it knows none".to_owned(),
        false => format!("it knows {}", names.join(", ")),
    }
}

/// Configures and starts a port.
pub(crate) fn start(
    number: u16,
    name: &str,
    pool: NonNull<Mempool>,
    config: Config,
    ports: u32,
) -> Result<Port, DpdkError> {
    let failed =
        |doing, code: c_int| DpdkError::Port { name: name.to_owned(), doing, why: text(-code) };
    let (mut least, mut most) = (0, 0);
    // SAFETY: two places for the limits of a port that exists.
    #[allow(unsafe_code)]
    let code = unsafe { ffi::kvm_port_limits(number, &raw mut least, &raw mut most) };
    if code != 0 {
        return Err(failed("reading its limits", code));
    }
    let mtu = config.mtu;
    if mtu < least || mtu > most {
        return Err(DpdkError::Mtu { mtu, name: name.to_owned(), least, most });
    }
    let mut facts = RawFacts::default();
    // SAFETY: the port exists and is not started, the pool lives as long as the process, and
    // the shim fills the facts.
    #[allow(unsafe_code)]
    let code = unsafe { ffi::kvm_port_start(number, pool.as_ptr(), mtu, &raw mut facts) };
    if code != 0 {
        return Err(failed("starting it", code));
    }
    let queues = u32::from(facts.receive_descriptors) + u32::from(facts.send_descriptors);
    let mut port = Port { number, name: name.to_owned(), pool, facts, spare: 0 };
    let frames = config.frames;
    port.spare = spare(config, queues, ports)
        .ok_or(DpdkError::FewFrames { frames, least: queues * ports })?;
    Ok(port)
}

impl Port {
    /// Waits until the link is up, `limit` at most.
    ///
    /// # Errors
    /// It is not within `limit`.
    pub fn wait_up(&self, limit: Duration) -> Result<(), DpdkError> {
        let until = Instant::now() + limit;
        loop {
            // SAFETY: the port is started.
            #[allow(unsafe_code)]
            let state = unsafe { ffi::kvm_port_is_up(self.number) };
            if state == 1 {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(DpdkError::Down { name: self.name.clone(), limit });
            }
            sleep(Duration::from_millis(10));
        }
    }

    pub fn address(&self) -> [u8; 6] {
        self.facts.mac
    }

    /// Bytes of the longest frame, header included, checksum not.
    pub fn max_frame_len(&self) -> usize {
        usize::from(self.facts.mtu) + HEADER as usize
    }

    /// Frames that the caller may hold while the port goes on receiving.
    pub fn spare_frames(&self) -> usize {
        self.spare as usize
    }

    /// A frame of `length` bytes with any content; none if the pool is empty.
    pub fn frame(&mut self, length: usize) -> Option<Frame> {
        enter();
        let mut data = null_mut();
        let length = u16::try_from(length).ok()?;
        // SAFETY: the pool is alive; the shim answers with null, or with a frame of this length
        // that is ours alone. Its bytes have been written since the process began: the memory
        // that DPDK maps is zeroed by the kernel.
        #[allow(unsafe_code)]
        unsafe {
            let mbuf = ffi::kvm_frame(self.pool.as_ptr(), length, &raw mut data);
            Frame::new(mbuf, data, u32::from(length))
        }
    }

    /// Appends a burst of what has arrived.
    pub fn receive(&mut self, into: &mut VecDeque<Frame>) {
        enter();
        let mut mbufs = [null_mut(); BURST];
        let mut data = [null_mut(); BURST];
        let mut lengths = [0_u32; BURST];
        // SAFETY: each array has as many places as the shim may fill, and frames that it
        // answers with are ours, in one piece of the length that it tells.
        #[allow(unsafe_code)]
        unsafe {
            let count = ffi::kvm_receive(
                self.number,
                mbufs.as_mut_ptr(),
                data.as_mut_ptr(),
                lengths.as_mut_ptr(),
                BURST as u16,
            );
            for at in 0..usize::from(count) {
                into.extend(Frame::new(mbufs[at], data[at], lengths[at]));
            }
        }
    }

    /// Sends as many frames from the front as the queue takes; the others stay.
    pub fn send(&mut self, frames: &mut VecDeque<Frame>) {
        while !frames.is_empty() {
            let mut mbufs = [null_mut(); BURST];
            let count = frames.len().min(BURST);
            for (place, frame) in mbufs.iter_mut().zip(frames.iter()) {
                *place = frame.pointer();
            }
            // SAFETY: so many frames are in the array, and each is ours. Those that the driver
            // took are its own from here on, and are forgotten below.
            #[allow(unsafe_code)]
            let sent = unsafe { ffi::kvm_send(self.number, mbufs.as_mut_ptr(), count as u16) };
            for frame in frames.drain(..usize::from(sent)) {
                std::mem::forget(frame);
            }
            if usize::from(sent) < count {
                return;
            }
        }
    }

    /// The counters, if the driver has them.
    pub fn counts(&self) -> Option<Counts> {
        let mut raw = RawCounts::default();
        // SAFETY: the shim fills the structure.
        #[allow(unsafe_code)]
        let failed = unsafe { ffi::kvm_port_counts(self.number, &raw mut raw) };
        (failed == 0).then_some(Counts {
            received: raw.received,
            sent: raw.sent,
            missed: raw.missed,
            receive_errors: raw.receive_errors,
            send_errors: raw.send_errors,
            no_frames: raw.no_frames,
        })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the port is started and not used any more; frames that are still held
        // belong to the pool and not to the port.
        #[allow(unsafe_code)]
        unsafe {
            ffi::kvm_port_close(self.number);
        }
    }
}
