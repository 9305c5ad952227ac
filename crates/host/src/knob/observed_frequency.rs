//! The effective frequency of a CPU: APERF counts its cycles, MPERF those at the base frequency,
//! both only while it is not idle (Intel SDM volume 3, "Hardware feedback").

use std::thread;
use std::time::{Duration, Instant};

use super::load;
use super::models::{check_msr, msr};
use crate::facts::cpu;
use crate::root::{Root, RootError};

const MPERF: u64 = 0xe7;
const APERF: u64 = 0xe8;
const LOAD_TIME: Duration = Duration::from_millis(60);
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The ratio of the frequency of a busy CPU to its base frequency, or why it is not known.
pub(super) fn ratio(root: &Root, cpu: u32) -> Result<f64, String> {
    let flags = cpu::flags(root)?;
    if !flags.iter().any(|flag| flag == "aperfmperf") {
        return Err(
            "this CPU has no APERF and MPERF, so its true frequency cannot be observed".into()
        );
    }
    check_msr(root, cpu).map_err(|why| why.to_string())?;
    let path = msr(cpu);
    let look = || -> Result<(u64, u64), RootError> {
        let read = |register| root.bytes_at(&path, register).map(u64::from_le_bytes);
        Ok((read(APERF)?, read(MPERF)?))
    };
    let pair = if root.is_live() {
        load::busy(cpu, LOAD_TIME, look)
            .ok_or_else(|| format!("this process may not run on {cpu}"))?
    } else {
        recorded(look)
    };
    let ((a0, m0), (a1, m1)) =
        (pair.0.map_err(|error| error.to_string())?, pair.1.map_err(|error| error.to_string())?);
    match (a1.wrapping_sub(a0), m1.wrapping_sub(m0)) {
        (_, 0) => Err(format!("MPERF of CPU {cpu} stood still under load")),
        (cycles, base) => Ok(cycles as f64 / base as f64),
    }
}

/// On a recorded machine, waits until a test changes the counters.
fn recorded<T: PartialEq>(look: impl Fn() -> T) -> (T, T) {
    let before = look();
    let limit = Instant::now() + SAMPLE_TIMEOUT;
    loop {
        thread::sleep(LOAD_TIME / 4);
        let after = look();
        if after != before || Instant::now() > limit {
            return (before, after);
        }
    }
}
