//! CPU time of the machine that was used by others than the measurement.

use model::signal::{BESIDE_CPU, SERVER_CPU};
use model::{Reading, Run};

/// CPU time of what is measured and of co-runners.
const MEASURED_SIGNALS: [&str; 2] = [SERVER_CPU.name, BESIDE_CPU.name];

/// The share of the machine's CPU time that other programs used and, where the hypervisor reports
/// it, other virtual machines. None where it was not read.
pub fn foreign_load_share(run: &Run) -> Option<f64> {
    Some(other_programs_share(&run.readings)?.max(0.0) + run.value("machine.steal").unwrap_or(0.0))
}

/// The share that other programs used. None where it is unknown: the part of a local server that
/// could not be read would count as theirs.
pub fn other_programs_share(readings: &[Reading]) -> Option<f64> {
    let reading = |signal: &str| readings.iter().find(|reading| reading.signal == signal);
    let value = |signal: &str| reading(signal).and_then(Reading::value);
    let known = |signal: &&str| {
        let known = |reading: &Reading| reading.value().is_some() || reading.is_elsewhere();
        reading(signal).is_none_or(known)
    };
    let all = value("machine.neighbours")?;
    MEASURED_SIGNALS.iter().all(known).then(|| all - measured_share(&value))
}

/// The share of local servers and co-runners. The time of all CPUs is the time of this process over
/// its share.
fn measured_share(value: &impl Fn(&str) -> Option<f64>) -> f64 {
    let share = || {
        let own_s = value("cpu.user")? + value("cpu.system")?;
        let own_share = value("machine.busy")? - value("machine.neighbours")?;
        let others_s = MEASURED_SIGNALS.into_iter().filter_map(value);
        Some(others_s.sum::<f64>() * own_share / own_s)
    };
    share().filter(|share| share.is_finite()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_server_is_no_foreign_load() {
        // 10 s on 2 CPUs: this process 8 s, the server 5 s, others 1 s.
        let value = |signal: &str| match signal {
            "cpu.user" => Some(6.0),
            "cpu.system" => Some(2.0),
            "machine.busy" => Some(0.7),
            "machine.neighbours" => Some(0.3),
            "server.cpu" => Some(5.0),
            _ => None,
        };
        assert!((measured_share(&value) - 0.25).abs() < 1e-12);
        assert_eq!(measured_share(&|_: &str| None), 0.0);
    }
}
