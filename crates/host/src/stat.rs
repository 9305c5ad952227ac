//! The first line of `/proc/stat`: what all CPUs together have done since boot.

use crate::root::{Root, RootError};

pub(crate) const STAT: &str = "/proc/stat";

/// Ticks since boot, summed over the CPUs. Guests' time is already in `user`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    /// User, nice, system, interrupt and soft interrupt time.
    pub busy: u64,
    /// Interrupts and soft interrupts alone.
    pub interrupts: u64,
    pub idle: u64,
    /// Idle while a request to a device was open. The kernel lets it go down.
    pub io_wait: u64,
    /// Runnable while the hypervisor ran something else.
    pub steal: u64,
}

impl CpuTicks {
    pub fn total(&self) -> u64 {
        self.busy + self.idle + self.io_wait + self.steal
    }
}

/// Why two readings of the ticks give no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoShare {
    Backwards,
    ShorterThanATick,
}

/// A share of all CPUs' time between two looks.
pub(crate) fn share(
    before: &CpuTicks,
    after: &CpuTicks,
    of: impl Fn(&CpuTicks) -> u64,
) -> Result<f64, NoShare> {
    let total = after.total().checked_sub(before.total()).ok_or(NoShare::Backwards)?;
    let part = of(after).checked_sub(of(before)).ok_or(NoShare::Backwards)?;
    if total == 0 {
        return Err(NoShare::ShorterThanATick);
    }
    Ok(part as f64 / total as f64)
}

pub(crate) fn cpu_ticks(root: &Root) -> Result<CpuTicks, RootError> {
    let text = root.text(STAT)?;
    parse(&text).ok_or_else(|| RootError::malformed(STAT, &text, "a line of CPU ticks"))
}

fn parse(text: &str) -> Option<CpuTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, idle, io_wait, irq, soft_irq, steal, ..] = *ticks.as_slice() else {
        return None;
    };
    Some(CpuTicks {
        busy: user + nice + system + irq + soft_irq,
        interrupts: irq + soft_irq,
        idle,
        io_wait,
        steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_time_between_two_readings() {
        let before = parse("cpu  100 0 50 800 10 0 40 0 60 0\ncpu0 1 2\n").unwrap();
        let after = parse("cpu  150 0 60 900 10 10 50 20 90 0\n").unwrap();
        assert_eq!(before.total(), 1000);
        assert_eq!(share(&before, &after, |ticks| ticks.steal), Ok(0.1));
        assert_eq!(share(&before, &after, |ticks| ticks.busy), Ok(0.4));
        assert_eq!(share(&before, &after, |ticks| ticks.interrupts), Ok(0.1));
        assert_eq!(share(&before, &before, |t| t.busy), Err(NoShare::ShorterThanATick));
        assert_eq!(share(&after, &before, |t| t.busy), Err(NoShare::Backwards));
    }

    #[test]
    fn a_line_without_steal_is_not_guessed() {
        assert_eq!(parse("cpu  1 2 3 4 5 6 7\n"), None);
        assert_eq!(parse("intr 5\n"), None);
    }
}
