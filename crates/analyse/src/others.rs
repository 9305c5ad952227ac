//! How much of the machine others took from a run.

use model::Reading;
use record::Run;

/// CPU time of what is measured and what the study put beside it.
const MEASURED: [&str; 2] = ["server.cpu", "beside.cpu"];

/// The share of the machine's CPU time that neither the harness nor what is measured took: of
/// other programs and, where the hypervisor tells, of other machines. None where it was not read.
pub fn others_share(run: &Run) -> Option<f64> {
    Some(neighbours_share(&run.readings)?.max(0.0) + run.value("machine.steal").unwrap_or(0.0))
}

/// The share that other programs took, without what is measured. None where that is not known:
/// a server's own part that could not be read would count as theirs. One on another machine has
/// no part.
pub fn neighbours_share(readings: &[Reading]) -> Option<f64> {
    let reading = |signal: &str| readings.iter().find(|reading| reading.signal == signal);
    let value = |signal: &str| reading(signal).and_then(Reading::value);
    let known = |signal: &&str| {
        let known = |reading: &Reading| reading.value().is_some() || reading.is_elsewhere();
        reading(signal).is_none_or(known)
    };
    let all = value("machine.neighbours")?;
    MEASURED.iter().all(known).then(|| all - servers_share(&value))
}

/// The share of the machine that the servers took, if they run here, and what the study put beside
/// them: they are what is measured, no neighbours. All CPUs' time is what this process used over
/// its share of it.
fn servers_share(value: &impl Fn(&str) -> Option<f64>) -> f64 {
    let share = || {
        let own_s = value("cpu.user")? + value("cpu.system")?;
        let own_share = value("machine.busy")? - value("machine.neighbours")?;
        let others_s = MEASURED.into_iter().filter_map(value);
        Some(others_s.sum::<f64>() * own_share / own_s)
    };
    share().filter(|share| share.is_finite()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_the_same_machine_is_no_neighbour() {
        // 10 s on 2 CPUs: this process 8 s, the server 5 s, others 1 s.
        let value = |signal: &str| match signal {
            "cpu.user" => Some(6.0),
            "cpu.system" => Some(2.0),
            "machine.busy" => Some(0.7),
            "machine.neighbours" => Some(0.3),
            "server.cpu" => Some(5.0),
            _ => None,
        };
        assert!((servers_share(&value) - 0.25).abs() < 1e-12);
        assert_eq!(servers_share(&|_: &str| None), 0.0);
    }
}
