//! Resident memory of this process.

use std::time::Duration;

use model::{Reading, Scope, Unavailable, Unit};

use super::{Context, Probe, ProbeSpec, Signal};
use crate::parse::kilobytes;
use crate::root::{Root, RootError};

const STATUS: &str = "/proc/self/status";
const CLEAR: &str = "/proc/self/clear_refs";
/// The documented value that resets the peak to the present size.
const CLEAR_PEAK: &str = "5";

/// The kernel counts pages in batches, so both sizes are a little off.
const SLACK: u64 = 1 << 20;

pub(super) const SPEC: ProbeSpec =
    ProbeSpec::new("memory", SIGNALS, "/proc/self/status, /proc/self/clear_refs", init);

const SIGNALS: &[Signal] = &[PEAK, RESIDENT];
const PEAK: Signal =
    Signal::new("memory.peak", Unit::Bytes, Scope::Process, "/proc/self/status: VmHWM");
const RESIDENT: Signal =
    Signal::new("memory.resident", Unit::Bytes, Scope::Process, "/proc/self/status: VmRSS")
        .at_end();

fn init(root: &Root, _: &Context) -> Result<Box<dyn Probe>, Unavailable> {
    read(root, "VmRSS")?;
    let before = Err(Unavailable::new("the probe was not started", "start it first"));
    Ok(Box::new(Memory { root: root.clone(), reset: false, before }))
}

struct Memory {
    root: Root,
    /// Whether the peak was reset when the window began.
    reset: bool,
    before: Result<u64, Unavailable>,
}

impl Probe for Memory {
    fn start(&mut self) {
        let written = self.root.write(CLEAR, CLEAR_PEAK).is_ok();
        self.before = read(&self.root, "VmHWM");
        let resident = read(&self.root, "VmRSS");
        self.reset = match (&self.before, resident) {
            // A sandbox may accept the write without effect, so check it.
            (Ok(peak), Ok(now)) => written && *peak <= now + now / 16 + SLACK,
            _ => false,
        };
    }

    fn stop(&mut self, window: Duration) -> Vec<Reading> {
        let resident = read(&self.root, "VmRSS");
        vec![
            PEAK.reading(self.peak().map(|bytes| bytes as f64), window),
            RESIDENT.reading(resident.map(|bytes| bytes as f64), window),
        ]
    }
}

impl Memory {
    fn peak(&self) -> Result<u64, Unavailable> {
        let before = self.before.clone()?;
        let after = read(&self.root, "VmHWM")?;
        // Without a reset, only a new peak is of this window.
        if self.reset || after > before {
            return Ok(after);
        }
        Err(Unavailable::new(
            format!(
                "the process was larger before the window ({before} B), and {CLEAR} did not set its peak back"
            ),
            format!("allow writing {CLEAR}, or make this the first run of the process"),
        ))
    }
}

fn read(root: &Root, key: &str) -> Result<u64, Unavailable> {
    let text = root.text(STATUS)?;
    let bytes = kilobytes(&text, key);
    Ok(bytes.ok_or_else(|| RootError::malformed(STATUS, &text, "a status with VmHWM and VmRSS"))?)
}
